"""The human rows of the paper's tables from the embedded corpus, beside the figures the paper prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from paper.printed import TABLES
from scalegrad.data import completion_blocks, encode_corpus, gpt2_tokenizer, language_modelling_chunks, wikitext103
from scalegrad.metrics import clean_up_spaces, human_next_token, repetition

if TYPE_CHECKING:
    from rich.console import Console

LANGUAGE_MODELLING = "language modelling, 1,024 targets a chunk"
BLOCKS_150 = "completion, 150-token blocks (what the paper's row is taken on)"
BLOCKS_100 = "completion, 100-token blocks (comparable with 100-token continuations)"

_TITLES = {"uniq": "uniq", "rep_window_16": "Rep/16", "rep_window_32": "Rep/32", "rep_window_128": "Rep/128"}
_TITLES |= {"rep_1": "Rep-1", "rep_2": "Rep-2", "rep_3": "Rep-3", "uniq_w": "uniq-w"}

_READING = (
    "gap: here, rounded as the paper rounds, minus the paper; 'none' where both print the same. Repetition grows with "
    "length: hold continuations of 100 tokens against the 100-token row, not against the paper's."
)


@dataclass(frozen=True)
class CorpusRow:
    """A human row: which split, taken on what, the figures here, and the paper's (None where it has none)."""

    split: str
    taken_on: str
    figures: dict[str, float]
    paper: dict[str, float] | None

    @property
    def gap(self) -> dict[str, float] | None:
        """Here, rounded as the paper rounds, minus the paper: 0 where the two print the same."""
        if self.paper is None:
            return None
        return {name: _as_printed(name, self.figures[name]) - paper for name, paper in self.paper.items()}


def corpus_rows(name: str = "wikitext-103") -> list[CorpusRow]:
    """All human rows of a corpus: language modelling, 150-token and 100-token completion, for test and valid.

    Completion rows are decoded with the clean-up of tokenisation spaces, which decides uniq-w.

    >>> row = corpus_rows()[0]
    >>> row.split, {name: round(figure, 5) for name, figure in row.figures.items()}
    ('test', {'uniq': 18271, 'rep_window_16': 0.17747, 'rep_window_32': 0.28479, 'rep_window_128': 0.47993})
    """
    if name != "wikitext-103":
        raise ValueError(f"corpus is {name!r}; the human rows that can be taken here are those of wikitext-103")
    tokenizer = gpt2_tokenizer()
    rows = []
    for split in ("test", "valid"):
        ids = encode_corpus(wikitext103(split), tokenizer)
        found = {LANGUAGE_MODELLING: human_next_token(language_modelling_chunks(ids)[:, 1:])}
        for taken_on, length in ((BLOCKS_150, 150), (BLOCKS_100, 100)):
            texts = tokenizer.decode_batch(completion_blocks(ids, length).tolist())
            found[taken_on] = repetition(map(clean_up_spaces, texts))
        for taken_on, figures in found.items():
            kept = {name: figures[name] for name in _TITLES if name in figures}
            rows.append(CorpusRow(split, taken_on, kept, _paper(split, taken_on, kept)))
    return rows


def _paper(split: str, taken_on: str, figures: dict[str, float]) -> dict[str, float] | None:
    """The paper's human row, in the columns of `figures`: Rep to .001, uniq and uniq-w to 10."""
    if taken_on == BLOCKS_100:
        return None
    row = TABLES[f"wikitext-103 {split}"].rows["Human"]
    return {name: row[name] for name in figures}


def rows_as_dict(rows: list[CorpusRow]) -> list[dict[str, Any]]:
    """The rows as plain JSON values."""
    return [vars(row) | {"gap": row.gap} for row in rows]


def print_corpus_rows(rows: list[CorpusRow], console: Console) -> None:
    """Print a table for each kind of row: here, the paper, and the gap where they differ."""
    from rich import box
    from rich.table import Table

    for taken_on in dict.fromkeys(row.taken_on for row in rows):
        chosen = [row for row in rows if row.taken_on == taken_on]
        console.print(f"[bold]{taken_on}[/bold]")
        table = Table(box=box.SIMPLE_HEAD, show_edge=False)
        for heading in ("WikiText-103", "", *(_TITLES[name] for name in chosen[0].figures)):
            table.add_column(heading, justify="right" if heading else "left")
        table.columns[0].justify = "left"
        for row in chosen:
            names = list(row.figures)
            table.add_row(row.split, "here", *(_exact(name, row.figures[name]) for name in names))
            if row.paper is not None and row.gap is not None:
                table.add_row("", "paper", *(_rounded(name, row.paper[name]) for name in names))
                table.add_row("", "gap", *(_gap(name, row.gap[name]) for name in names), style="dim")
            table.add_section()
        console.print(table)
        console.print()
    console.print(_READING)


def _is_count(name: str) -> bool:
    return name.startswith("uniq")


def _as_printed(name: str, value: float) -> float:
    return round(value, -1) if _is_count(name) else round(value, 3)


def _exact(name: str, value: float) -> str:
    return f"{value:,.0f}" if _is_count(name) else f"{value:.5f}".removeprefix("0")


def _rounded(name: str, value: float) -> str:
    return f"{value / 1000:.2f}k" if _is_count(name) else f"{value:.3f}".removeprefix("0")


def _gap(name: str, value: float) -> str:
    if abs(value) < 1e-9:
        return "none"
    return ("−" if value < 0 else "+") + _rounded(name, abs(value))
