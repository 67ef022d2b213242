"""The documentation keeps its word: its code runs, and every test, function and file it names exists."""

import ast
import doctest
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"^<!-- not run: [^\n]+ -->\n```.*?^```$", re.MULTILINE | re.DOTALL)  # needs what is not here
TEST_NAME = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
PYTHON_NAME = re.compile(r"`(scalegrad(?:\.\w+)+)`")
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)[^)]*\)")

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def prose(page):
    return FENCE.sub("", page.read_text())


def missing_tests(text):
    """Tests named as `path::name` that are not there."""
    named = set(TEST_NAME.findall(text))
    return [f"{path}::{name}" for path, name in sorted(named) if name not in functions(ROOT / path)]


def functions(path):
    if not path.is_file():
        return set()
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


def missing_names(text):
    """Modules, classes and functions named in full that cannot be imported."""
    return [name for name in sorted(set(PYTHON_NAME.findall(text))) if not exists(name)]


def exists(name):
    parts = name.split(".")
    for split in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for part in parts[split:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


@each_page
def test_named_tests_exist(page):
    assert missing_tests(page.read_text()) == []


@each_page
def test_named_functions_exist(page):
    assert missing_names(page.read_text()) == []


@each_page
def test_linked_files_exist(page):
    assert [link for link in LINK.findall(prose(page)) if not (page.parent / link).exists()] == []


@each_page
def test_code_blocks_run(page, tmp_path, monkeypatch):
    """`python` blocks run one after another in one namespace; `pycon` blocks must print what they show."""
    monkeypatch.chdir(tmp_path)  # a page may write files
    space = {"__name__": page.stem}
    for language, code in FENCE.findall(NOT_RUN.sub("", page.read_text())):
        if language == "python":
            exec(compile(code, str(page), "exec", dont_inherit=True), space)
        elif language == "pycon":
            example = doctest.DocTestParser().get_doctest(code, space, page.name, str(page), 0)
            example.globs = space  # what one block defines, the next may use
            told = []
            flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
            doctest.DocTestRunner(optionflags=flags).run(example, out=told.append, clear_globs=False)
            assert "".join(told) == ""


def test_what_is_missing_is_found():
    assert missing_tests("`tests/test_docs.py::test_no_such`, `tests/none.py::test_a`") == [
        "tests/none.py::test_a",
        "tests/test_docs.py::test_no_such",
    ]
    assert missing_names("`scalegrad.sets.Seen`, `scalegrad.sets.Sene`, `scalegrad.none.at_all`") == [
        "scalegrad.none.at_all",
        "scalegrad.sets.Sene",
    ]
