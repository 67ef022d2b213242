"""What the Markdown of docs/ needs to become a site, so that it can stay what a code host shows well.

- A pattern in the navigation stands for all pages that fit it and are not named elsewhere (`pages_of`).
- A link that leaves docs/ (source, tests, the changelog) leads to a page or a copy made of that file.
- Formulas, written as a code host wants them ($`…`$ and ```math), become MathML, which browsers draw without a script.
- A figure in a table stays whole, and its interval and deviation go below it where a table has many columns.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
FENCE = re.compile(r"^(```+)(\w*)[^\n]*\n(.*?)^\1$\n?", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")
INLINE_FORMULA = re.compile(r"\$`(.+?)`\$", re.DOTALL)
TAG = re.compile(r"\s*\\tag\{([^}]*)\}")
FIGURES = re.compile(r'(<t[hd] style="text-align: right;">)(.*?)(?=</t[hd]>)', re.DOTALL)
BETWEEN_TAGS = re.compile(r"(?<![^>])[^<>]+")
PICTURES = (".png", ".svg", ".jpg")

# ---- navigation ------------------------------------------------------------------------------------------------------


def pages_of(nav: list[Any]) -> list[str]:
    """The pages of a navigation in order, patterns written out, relative to docs/."""
    return list(_leaves(expanded(nav)))


def expanded(nav: list[Any]) -> list[Any]:
    """The navigation without patterns: each becomes the pages that fit and stand nowhere else, by name."""
    named = {page for page in _leaves(nav) if "*" not in page}
    return _expand(nav, lambda pattern: sorted(_matching(pattern) - named))


def _matching(pattern: str) -> set[str]:
    return {path.relative_to(DOCS).as_posix() for path in DOCS.glob(pattern)}


def _expand(entries: list[Any], find: Callable[[str], list[str]]) -> list[Any]:
    found: list[Any] = []
    for entry in entries:
        if isinstance(entry, str):
            found += find(entry) if "*" in entry else [entry]
        else:
            ((title, below),) = entry.items()
            found.append({title: _expand(below, find) if isinstance(below, list) else below})
    return found


def _leaves(entries: list[Any]) -> Iterator[str]:
    for entry in entries:
        below = next(iter(entry.values())) if isinstance(entry, dict) else entry
        if isinstance(below, list):
            yield from _leaves(below)
        else:
            yield below


# ---- files that are not in docs/ -------------------------------------------------------------------------------------


def linked_outside(page: Path, text: str) -> Iterator[Path]:
    """The files beyond docs/ that a page of the repository links to."""
    for link in LINK.finditer(FENCE.sub("", text)):
        target = (page.parent / link[1]).resolve()
        if target.is_file() and ROOT in target.parents and DOCS not in target.parents:
            yield target


def address(path: Path) -> str:
    """Where a file of the repository lies in the site, before Markdown becomes HTML."""
    if DOCS in path.parents:
        return path.relative_to(DOCS).as_posix()
    inside = path.relative_to(ROOT).as_posix()
    if path.suffix == ".md":
        return f"repository/{inside}"
    return f"repository/{inside}" if path.suffix in PICTURES else f"repository/{inside}.md"


def as_page(path: Path) -> str:
    """A file as Markdown: itself, or its lines as code."""
    text = path.read_text()
    if path.suffix == ".md":
        return text
    language = {".py": "python", ".csv": "text"}.get(path.suffix, path.suffix.lstrip(".") or "text")
    return f"# {path.relative_to(ROOT).as_posix()}\n\n````{language}\n{text}\n````\n"


def relinked(text: str, page: Path) -> str:
    """Links as they must be in the site; those within docs/ stay as they are."""
    here = PurePosixPath(address(page)).parent

    def link(found: re.Match[str]) -> str:
        target = (page.parent / found[1]).resolve()
        if not target.is_file() or (DOCS in target.parents and DOCS in page.parents):
            return found[0]
        return os.path.relpath(address(target), here) + (found[2] or "")

    return outside_fences(text, lambda prose: LINK.sub(link, prose))


def outside_fences(text: str, change: Callable[[str], str]) -> str:
    parts, end = [], 0
    for fence in FENCE.finditer(text):
        parts += [change(text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, change(text[end:])])


# ---- formulas --------------------------------------------------------------------------------------------------------


def with_formulas(text: str) -> str:
    """The text with its formulas as MathML."""
    text = FENCE.sub(lambda fence: displayed(fence[3]) if fence[2] == "math" else fence[0], text)
    return outside_fences(text, lambda prose: INLINE_FORMULA.sub(lambda found: mathml(found[1], "inline"), prose))


def displayed(formula: str) -> str:
    number = TAG.search(formula)
    told = f'<span class="number">({number[1]})</span>' if number else ""
    return f'<div class="formula">{mathml(TAG.sub("", formula).strip(), "block")}{told}</div>\n'


def mathml(formula: str, display: str) -> str:
    from latex2mathml.converter import convert

    made: str = convert(
        re.sub(r"\\mathrm\{(\w+)\}", r"\\operatorname{\1}", formula.replace("\n", " ")), display=display
    )
    made = re.sub(r"<mo>(\w{2,})</mo>", r"<mi>\1</mi>", made)  # a name, not an operator with air on both sides
    made = re.sub(r"(<mi>\w{2,}</mi>)(?!<mo[^>]*>&#x00028;)", r'\1<mspace width="0.167em" />', made)  # log p, log(p)
    made = made.replace("<mi>&#x029F5;</mi>", "<mo>&#x029F5;</mo>")  # set difference
    return (
        made if display == "block" else f'<span class="inline-formula">{made}</span>'
    )  # may begin a line of a paragraph


# ---- tables ----------------------------------------------------------------------------------------------------------


def with_whole_figures(html: str) -> str:
    """Each word of a right-aligned cell in a span that does not break; between them a line may."""

    def spans(text: re.Match[str]) -> str:
        return re.sub(r"\S+", r'<span class="figure">\g<0></span>', text[0])

    return FIGURES.sub(lambda cell: cell[1] + BETWEEN_TAGS.sub(spans, cell[2]), html)


# ---- what mkdocs calls -----------------------------------------------------------------------------------------------


def on_config(config: Any) -> Any:
    from pymdownx.slugs import slugify

    config.nav = _sited(expanded(config.nav))
    config.mdx_configs.setdefault("toc", {})["slugify"] = slugify(case="lower")  # γ stays, as on a code host
    return config


def _sited(entries: list[Any]) -> list[Any]:
    """Pages that lie outside docs/ by their place in the site."""

    def place(entry: Any) -> Any:
        if isinstance(entry, str):
            return address((DOCS / entry).resolve())
        return {title: _sited(below) if isinstance(below, list) else place(below) for title, below in entry.items()}

    return [place(entry) for entry in entries]


_OUTSIDE: dict[str, Path] = {}  # place in the site: file


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    known = [DOCS / file.src_uri for file in files.documentation_pages()]
    known += [
        ROOT / place.removeprefix("repository/") for place in _leaves(config.nav) if place.startswith("repository/")
    ]
    waiting, done = list(known), set[Path]()
    while waiting:
        path = waiting.pop()
        if path in done:
            continue
        done.add(path)
        if DOCS not in path.parents:
            _OUTSIDE[address(path)] = path
            files.append(_generated(File, config, path))
        if path.suffix == ".md":
            waiting += linked_outside(path, path.read_text())
    return files


def _generated(kind: Any, config: Any, path: Path) -> Any:
    from mkdocs.structure.files import InclusionLevel

    if path.suffix in PICTURES:
        return kind.generated(config, address(path), abs_src_path=str(path))
    file = kind.generated(config, address(path), content=as_page(path))
    file.inclusion = InclusionLevel.NOT_IN_NAV  # unless the navigation names it
    return file


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    path = _OUTSIDE.get(page.file.src_uri, DOCS / page.file.src_uri)
    if path.suffix != ".md":
        return markdown  # lines of code: nothing in them is a link or a formula
    return with_formulas(relinked(markdown, path))


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    return with_whole_figures(html)
