"""The documentation keeps its word: its code runs, its commands exist, and so does every test, name, file and page."""

import ast
import doctest
import importlib
import importlib.util
import json
import re
import shlex
from pathlib import Path

import pytest
import torch
import yaml

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.glob("**/*.md")), ROOT / "README.md"]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"^<!-- not run: [^\n]+ -->\n```.*?^```$", re.MULTILINE | re.DOTALL)  # needs what is not here
TEST_NAME = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
PYTHON_NAME = re.compile(r"`(scalegrad(?:\.\w+)+)`")
DIRECTIVE = re.compile(r"^::: (\S+)$", re.MULTILINE)  # stands for the docstrings of a module or of one name in it
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?[^)]*\)")
OWN_ID = re.compile(r"<a id=\"([^\"]+)\">")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
COMMAND = re.compile(r"^(?:\$ )?((?:scalegrad|python -m paper) (?:.*\\\n)*.*)$", re.MULTILINE)

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


@pytest.fixture(scope="module")
def hooks():
    """What turns docs/ into a site; this part of it needs no mkdocs."""
    spec = importlib.util.spec_from_file_location("hooks", ROOT / "docs_build" / "hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def known():
    """The options of every verb, by the words that are typed for it."""
    cli, paper = importlib.import_module("scalegrad.cli"), importlib.import_module("paper.__main__")
    verbs = {**cli.verbs(cli.command(), "scalegrad"), **cli.verbs(paper.app, "python -m paper")}
    options = {words: {name for one in cli.arguments(verb) for name in one.names} for words, verb in verbs.items()}
    return {
        words: names | {"--help"} | {cli.SHORT[n[2:]] for n in names if n[2:] in cli.SHORT}
        for words, names in options.items()
    }


def prose(page):
    return FENCE.sub("", page.read_text())


# ---- names -----------------------------------------------------------------------------------------------------------


def missing_tests(text):
    """Tests named as `path::name` that are not there."""
    named = set(TEST_NAME.findall(text))
    return [f"{path}::{name}" for path, name in sorted(named) if name not in functions(ROOT / path)]


def functions(path):
    if not path.is_file():
        return set()
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


def missing_directives(text):
    """Modules and classes that the reference shows and that are not there; looked for without importing them."""
    return [name for name in DIRECTIVE.findall(text) if not (is_module(name) or is_class(*name.rsplit(".", 1)))]


def is_module(name):
    path = ROOT / "src" / name.replace(".", "/")
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def is_class(module, name):
    path = (ROOT / "src" / module.replace(".", "/")).with_suffix(".py")
    tree = ast.parse(path.read_text() if path.is_file() else "")
    return any(isinstance(node, ast.ClassDef) and node.name == name for node in tree.body)


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
    assert missing_directives(page.read_text()) == []


def test_every_public_package_is_in_the_reference():
    """What names its public names in `__all__` promises them."""
    promising = [path.parent for path in ROOT.glob("src/scalegrad/*/__init__.py") if "__all__" in path.read_text()]
    shown = "".join(page.read_text() for page in (DOCS / "api").glob("*.md"))
    assert len(promising) > 5
    assert [folder.name for folder in promising if f"::: scalegrad.{folder.name}\n" not in shown] == []


# ---- links and navigation --------------------------------------------------------------------------------------------


def broken_links(page, text):
    """Links of a page to files that are not there, or to headings that those files do not have."""
    return [
        f"{path}#{heading}" if heading else path
        for path, heading in LINK.findall(FENCE.sub("", text))
        if not leads_somewhere(page.parent / path if path else page, heading)
    ]


def leads_somewhere(target, anchor):
    return target.exists() and (not anchor or anchor in anchors(prose(target)))


def anchors(text):
    """What a link may point at: headings, and places that carry an id of their own."""
    return {slug(heading) for heading in HEADING.findall(text)} | set(OWN_ID.findall(text))


def slug(heading):
    """The anchor that a code host and the site both give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@each_page
def test_links_lead_somewhere(page):
    assert broken_links(page, page.read_text()) == []


def test_every_page_is_in_the_navigation_and_there(hooks):
    named = hooks.pages_of(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    assert len(named) == len(set(named))
    assert [name for name in named if not (DOCS / name).is_file()] == []
    assert [page for page in PAGES if DOCS in page.parents and page.relative_to(DOCS).as_posix() not in named] == []


def test_a_pattern_is_what_is_not_named(hooks):
    nav = [{"Results": ["results/index.md", "results/*.md", "none*.md"]}, {"Log": "../CHANGELOG.md"}]
    written_out = hooks.expanded(nav)
    assert written_out[0]["Results"][:2] == ["results/index.md", sorted(pages("results") - {"results/index.md"})[0]]
    assert set(written_out[0]["Results"]) == pages("results")
    assert written_out[1] == {"Log": "../CHANGELOG.md"}


def pages(folder):
    return {path.relative_to(DOCS).as_posix() for path in (DOCS / folder).glob("*.md")}


def test_links_out_of_docs_lead_to_pages_made_of_the_files(hooks):
    page = DOCS / "api" / "sets.md"
    text = "[a](../../src/scalegrad/nn.py) [b](../math.md#x) [c](../../CHANGELOG.md)\n```\n[d](../../Makefile)\n```\n"
    assert [path.name for path in hooks.linked_outside(page, text)] == ["nn.py", "CHANGELOG.md"]
    assert hooks.relinked(text, page) == (
        "[a](../repository/src/scalegrad/nn.py.md) [b](../math.md#x) [c](../repository/CHANGELOG.md)\n"
        "```\n[d](../../Makefile)\n```\n"
    )
    # a page that is not in docs/ finds its way back
    assert hooks.relinked("[e](docs/math.md)", ROOT / "CHANGELOG.md") == "[e](../math.md)"


def test_figures_of_tables_stay_whole_and_lines_break_between_them(hooks):
    cells = '<td>a b</td><td style="text-align: right;">.5 ±.1</td><td style="text-align: right;"><b>7</b></td>'
    assert hooks.with_whole_figures(cells) == (
        '<td>a b</td><td style="text-align: right;"><span class="figure">.5</span> <span class="figure">±.1</span>'
        '</td><td style="text-align: right;"><b><span class="figure">7</span></b></td>'
    )


# ---- code and commands -----------------------------------------------------------------------------------------------


def test_quick_start_logs_the_perplexity_of_the_targets_that_count():
    """Its loop, with the labels of a prompt masked: what it calls `perplexity` is exp of the mean over the others."""
    code = next(code for language, code in FENCE.findall((DOCS / "quick-start.md").read_text()) if language == "python")
    masked = code.replace("loss_function(logits, ids[:, 1:])", "loss_function(logits, labels)")
    masked = masked.replace("logits = ", "labels = ids[:, 1:].clone()\nlabels[:, :40] = -100\nlogits = ")
    space = {}
    exec(compile(masked, "quick-start.md", "exec", dont_inherit=True), space)
    logits, labels = space["logits"].detach(), space["labels"]
    expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten()).exp()
    assert labels[:, 0].tolist() == [-100] * 8
    assert float(space["perplexity"]) == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.filterwarnings("ignore:'pin_memory' argument:UserWarning")  # Trainer's default, without a GPU
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


def wrong_commands(text, known):
    """`scalegrad …` and `python -m paper …` lines whose verb or options there are not."""
    wrong = []
    for line in (line for _, block in FENCE.findall(text) for line in COMMAND.findall(block)):
        words = shlex.split(line.replace("\\\n", " "), comments=True)
        wrong += wrong_in(words, known)
    return wrong


def wrong_in(words, known):
    for place, word in enumerate(words[1:], 1):
        if word == "scalegrad":  # two commands on one line
            return wrong_in(words[1:place], known) + wrong_in(words[place:], known)
    typed = next((verb for size in (3, 2) if (verb := " ".join(words[:size])) in known), None)
    if typed is None:
        return [] if len(words) > 1 and words[1].startswith("--") else [" ".join(words[1:]) or "no verb"]
    rest = words[len(typed.split()) :]
    return [word for word in rest if re.match(r"--?[a-z]", word) and word.split("=")[0] not in known[typed]]


@each_page
def test_commands_exist(page, known):
    assert wrong_commands(page.read_text(), known) == []


def test_the_page_of_commands_is_what_the_commands_have():
    """`python docs_build/commands.py` writes it."""
    spec = importlib.util.spec_from_file_location("commands", ROOT / "docs_build" / "commands.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text() == module.page()


# ---- the checks can fail ---------------------------------------------------------------------------------------------


def test_what_is_missing_is_found(known):
    assert missing_tests("`tests/test_docs.py::test_no_such`, `tests/none.py::test_a`") == [
        "tests/none.py::test_a",
        "tests/test_docs.py::test_no_such",
    ]
    assert missing_names("`scalegrad.sets.Seen`, `scalegrad.sets.Sene`, `scalegrad.none.at_all`") == [
        "scalegrad.none.at_all",
        "scalegrad.sets.Sene",
    ]
    assert missing_directives(
        "::: scalegrad.nn.ScaleGradLoss\n::: scalegrad.nn.Sum\n::: scalegrad.runs\n::: a.b\n"
    ) == [
        "scalegrad.nn.Sum",
        "a.b",
    ]
    links = "[a](math.md#no-such-heading) [b](none.md) [c](math.md#2-scalegrad) [d](#own) [e](https://a.b/c)"
    assert broken_links(DOCS / "sets.md", links) == ["math.md#no-such-heading", "none.md", "#own"]
    lines = [
        "scalegrad measure a.jsonl --no-such  # --html",
        "$ scalegrad no-such",
        "scalegrad study new s \\\n  --maybe",
        "python -m paper gradients --gamma 0.5 --gama 0.2",
    ]
    block = "\n".join(["```", *lines, "```"])
    assert wrong_commands(block, known) == ["--no-such", "no-such", "--maybe", "--gama"]


# ---- figures ---------------------------------------------------------------------------------------------------------


def test_the_page_of_the_demonstration_is_what_its_figures_give():
    """From the headline on; what stands above it says where the figures come from."""
    from scalegrad.results.comparison import Comparison, System
    from scalegrad.results.comparison.terminal import markdown

    stored = json.loads((DOCS / "results" / "demo.json").read_text())
    rows = [System(**row) for row in stored["rows"]]
    page = (DOCS / "results" / "demo.md").read_text()
    assert page[page.index("**Of 100") :] == markdown(Comparison(rows, stored["corpus"], stored["notes"]))
