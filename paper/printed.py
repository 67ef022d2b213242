"""The figures that the paper prints, as rows of the record with the run "paper", to be set beside what a machine gives.

Metrics carry the names that `scalegrad.metrics` gives them; counts are whole numbers (the paper prints 12.54k for
12,540).

>>> [row.value for row in printed(1) if (row.objective, row.metric) == ("sg", "rep_window_128")], TABLES[1].title
([0.522], 'Open-ended generation, WikiText-103 test (GPT-2 medium, greedy, mean of 3 seeds)')
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from scalegrad import decoding, objectives
from scalegrad.runs import Row

PAPER = "paper"
SEEDS = 3  # behind the deviations that the paper prints
_SUMMARIES = ("rouge_1", "rouge_2", "rouge_l", "moverscore_1")
_OPEN_ENDED = (
    "ppl", "uniq", "rep_window_16", "rep_window_32", "rep_window_128", "rep_1", "rep_2", "rep_3", "uniq_w",
)  # fmt: skip


@dataclass(frozen=True)
class PaperTable:
    """One table: what it shows, and its figures."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Judged:
    """Which of two systems raters prefer, and how far they agree."""

    first: str
    second: str
    win_rate: float
    agreement: float
    ac1: float

    @property
    def name(self) -> str:
        """As a table names the pair."""
        return f"{self.first} vs {self.second}"

    @property
    def figures(self) -> dict[str, float]:
        """Under the names of columns."""
        return {"win_rate": self.win_rate, "agreement": self.agreement, "ac1": self.ac1}


def printed(table: int, corpus: str | None = None) -> list[Row]:
    """The rows of a table by its number; of one corpus, if it has several."""
    return [row for row in TABLES[table].rows if corpus in (None, row.corpus)]


def _read(text: str, metrics: tuple[str, ...], task: str, corpus: str) -> tuple[Row, ...]:
    """Rows of "objective decoding | figures"; a dash is a figure that the paper does not print.

    The decoding is there only in tables that vary it.

    >>> for row in _read("ul=1.0 top_k=40 | 16.06 31.89k", ("ppl", "uniq_w"), "open_ended", "wikitext-103"):
    ...     print(row.objective, row.strength, row.decoding, row.metric, row.value)
    ul 1.0 top_k=40 ppl 16.06
    ul 1.0 top_k=40 uniq_w 31890.0
    """
    rows = []
    for line in text.strip().splitlines():
        system, cells = line.split("|")
        name, *how = system.split()
        trained = None if name == "human" else objectives.parse(name)
        about = Row(
            "", None, PAPER, task, objective=trained.name if trained else name,
            strength=trained.value if trained else None, corpus=corpus, split="test",
        )  # fmt: skip
        for strategy in map(decoding.parse, how):
            about = replace(about, decoding=strategy.decoding, penalty=strategy.penalty)
        for metric, cell in zip(metrics, cells.split(), strict=True):
            if cell != "-":
                rows.append(replace(about, metric=metric, value=_number(cell)))
    return tuple(rows)


def _number(cell: str) -> float:
    return round(float(cell[:-1]) * 1000) * 1.0 if cell.endswith("k") else float(cell)


def _open_ended(text: str, corpus: str, split: str | None = "test") -> tuple[Row, ...]:
    return tuple(replace(row, split=split) for row in _read(text, _OPEN_ENDED, "open_ended", corpus))


def _with_deviations(rows: tuple[Row, ...], deviations: tuple[Row, ...]) -> tuple[Row, ...]:
    sd = {replace(row, value=None): row.value for row in deviations}
    return tuple(replace(row, sd=sd[key], n=SEEDS) if (key := replace(row, value=None)) in sd else row for row in rows)


TABLES: dict[int, PaperTable] = {
    1: PaperTable(
        "Open-ended generation, WikiText-103 test (GPT-2 medium, greedy, mean of 3 seeds)",
        _with_deviations(
            _open_ended("""
mle    | 13.241 12.54k .234 .380 .619 .661 .500 .424 16.83k
ul=1.0 | 16.062 13.18k .212 .341 .558 .559 .363 .291 19.11k
sg=0.2 | 14.203 13.61k .197 .317 .522 .443 .215 .143 22.25k
human  | -      18.27k .177 .285 .480 .382 .096 .037 27.55k
""", "wikitext-103"),
            # From table 10, which repeats this one with deviations (ppl there to two digits).
            _open_ended("""
mle    | 2e-4 4   5e-6 8e-6 7e-6 1e-5 3e-5 7e-5 100
ul=1.0 | 2e-2 6   1e-6 1e-7 9e-6 6e-5 2e-4 3e-4 70
sg=0.2 | 2e-2 2   6e-7 1e-6 4e-6 9e-7 2e-6 4e-6 20
""", "wikitext-103"),
        ),
    ),
    2: PaperTable(
        "Open-ended generation, Penn Treebank test, models fine-tuned on WikiText-103",
        _open_ended("""
mle    | 33.952 5.60k .157 .292 .530 .652 .493 .424 6.46k
ul=1.0 | 41.232 5.96k .139 .260 .476 .533 .333 .259 7.60k
sg=0.2 | 40.731 6.15k .126 .231 .426 .417 .198 .131 8.42k
human  | -      8.84k .118 .222 .421 .362 .089 .033 11.32k
""", "ptb"),
    ),
    4: PaperTable(
        "Image paragraph captioning, Visual Genome test, with and without trigram blocking",
        _read("""
mle                 | 10.51
ul=0.5              | 14.65
sg=0.5              | 19.42
mle greedy,soft_block=3    | 22.77
ul=0.5 greedy,soft_block=3 | 22.25
sg=0.5 greedy,soft_block=3 | 24.62
""", ("cider",), "captioning", "visual genome"),
    ),
    5: PaperTable(
        "Summarization with BertSum, CNN/DM and NYT50 test",
        _read("""
mle    | 41.87 19.42 38.93 19.89
ul=0.5 | 42.03 19.36 39.09 20.21
sg=0.8 | 42.19 19.53 39.25 20.23
""", _SUMMARIES, "summarization", "cnn/dm")
        + _read("""
mle    | 48.73 31.00 45.23 28.73
ul=0.5 | 48.54 30.73 44.99 28.50
sg=0.8 | 49.29 31.30 45.78 29.14
""", _SUMMARIES, "summarization", "nyt50"),
    ),
    8: PaperTable(
        "Stochastic decoding of BertSum trained with MLE, NYT50 test",
        _read("""
mle beam=5    | 48.73 28.73
mle top_p=0.3 | 45.44 24.61
mle top_p=0.9 | 42.33 21.67
mle top_k=40  | 41.23 20.70
mle top_k=100 | 40.86 20.38
""", ("rouge_1", "moverscore_1"), "summarization", "nyt50"),
    ),
    9: PaperTable(
        "Repetition of image paragraphs, with and without trigram blocking",
        _read("""
mle                 | .723 .587 .530
sg=0.5              | .500 .270 .195
mle greedy,soft_block=3    | .575 .271 .094
sg=0.5 greedy,soft_block=3 | .440 .146 .037
human               | .421 .123 .042
""", ("rep_1", "rep_2", "rep_3"), "captioning", "visual genome"),
    ),
    11: PaperTable(
        "Open-ended generation, WikiText-103 validation: the grid of γ and α",
        _open_ended("""
mle    | 13.17 12.52k .236 .384 .621 .665 .510 .428 16.71k
ul=0.5 | 14.91 12.45k .217 .350 .579 .601 .424 .348 18.02k
ul=1.0 | 16.52 12.77k .210 .336 .552 .551 .359 .289 19.14k
ul=1.5 | 19.63 13.41k .201 .315 .523 .489 .267 .205 22.00k
sg=0.8 | 13.27 12.79k .229 .369 .603 .625 .443 .365 17.59k
sg=0.5 | 13.53 13.25k .218 .352 .576 .561 .389 .331 19.13k
sg=0.2 | 14.43 13.73k .195 .316 .518 .451 .237 .175 22.29k
human  | -     17.68k .173 .278 .470 .376 .097 .032 27.63k
""", "wikitext-103", "valid"),
    ),
    12: PaperTable(
        "Open-ended generation, 500 IMDB reviews, models fine-tuned on WikiText-103",
        _open_ended("""
mle    | 100.764 7.48k  .153 .254 .449 .662 .499 .429 7.70k
ul=1.0 | 108.334 8.09k  .123 .205 .373 .545 .346 .274 9.31k
sg=0.2 | 110.451 8.14k  .114 .187 .344 .383 .142 .081 10.42k
human  | -       14.49k .118 .208 .378 .329 .084 .009 19.11k
""", "imdb", None),
    ),
    17: PaperTable(
        "Decoding strategies for auto-completion, WikiText-103 test (table 7 is an extract)",
        _read("""
sg=0.2 greedy    | 14.20 .443 .215 .144 22.25k
sg=0.2 beam=3    | 14.20 .422 .210 .134 8.75k
sg=0.2 beam=6    | 14.20 .453 .250 .171 8.32k
sg=0.2 beam=10   | 14.20 .489 .298 .214 8.00k
sg=0.2 top_p=0.3 | 14.20 .356 .107 .049 30.48k
sg=0.2 top_p=0.9 | 14.20 .217 .027 .008 52.76k
sg=0.2 top_k=40  | 14.20 .254 .039 .012 39.50k
sg=0.2 top_k=100 | 14.20 .234 .031 .010 44.27k
ul=1.0 greedy    | 16.06 .559 .363 .291 19.11k
ul=1.0 beam=6    | 16.06 .577 .418 .325 7.49k
ul=1.0 top_p=0.3 | 16.06 .444 .176 .070 24.45k
ul=1.0 top_k=40  | 16.06 .336 .067 .021 31.89k
mle greedy       | 13.24 .661 .500 .424 16.83k
mle beam=6       | 13.24 .697 .566 .463 6.11k
mle top_p=0.3    | 13.24 .558 .210 .116 20.13k
mle top_k=40     | 13.24 .485 .154 .076 24.26k
human            | -     .382 .096 .037 27.55k
""", ("ppl", "rep_1", "rep_2", "rep_3", "uniq_w"), "open_ended", "wikitext-103"),
    ),
    18: PaperTable(
        "Stochastic decoding of the captioner trained with MLE, Visual Genome test",
        _read("""
mle top_p=0.3    | 19.54
mle top_p=0.9    | 18.67
mle top_k=40     | 18.73
mle top_k=100    | 18.05
mle greedy,soft_block=3 | 22.77
""", ("cider",), "captioning", "visual genome"),
    ),
}  # fmt: skip

# Table 3: two raters, 100 prefixes for each pair of systems.
JUDGED = (Judged("SG", "MLE", 0.840, 0.840, 0.78), Judged("SG", "UL", 0.705, 0.790, 0.64))

# The hyper-parameters and data sizes of the appendix (tables 13 to 16 and the text around them).
SETTINGS: dict[str, dict[str, dict[str, float | int | tuple[float, ...]]]] = {
    "open-ended": {
        "all": {"max_steps": 35_000, "evaluate_every": 1_000, "sequence_tokens": 300, "seeds": 3},
        "mle": {"learning_rate": 2e-5, "batch": 300},
        "ul": {"learning_rate": 2e-5, "batch": 300, "alpha": (0.5, 1.0, 1.5)},
        "sg": {"learning_rate": 2e-5, "batch": 300, "gamma": (0.2, 0.5, 0.8)},
        "completion": {"prefix_tokens": 50, "new_tokens": 100},
    },
    "cnn/dm": {
        "sizes": {"train": 287_227, "validation": 13_368, "test": 11_490},
        "mle": {"lr_bert": 0.002, "lr_decoder": 0.2, "batch": 140, "beta": 1.0, "beam": 5},
        "ul": {"lr_bert": 0.002, "lr_decoder": 0.2, "alpha": 0.5, "batch": 140, "beta": 2.0, "beam": 5},
        "sg": {"lr_bert": 0.002, "lr_decoder": 0.2, "gamma": 0.8, "batch": 140, "beta": 1.5, "beam": 5},
    },
    "nyt50": {
        "sizes": {"train": 96_834, "validation": 4_000, "test": 3_452},
        "mle": {"lr_bert": 0.002, "lr_decoder": 0.2, "batch": 140, "beta": 1.5, "beam": 5},
        "ul": {"lr_bert": 0.002, "lr_decoder": 0.2, "alpha": 0.5, "batch": 140, "beta": 2.0, "beam": 5},
        "sg": {"lr_bert": 0.002, "lr_decoder": 0.2, "gamma": 0.8, "batch": 140, "beta": 1.5, "beam": 5},
    },
    "captioning": {
        "sizes": {"train": 14_575, "validation": 2_487, "test": 2_489, "mean_tokens": 67.50},
        # beta: without and with trigram blocking
        "mle": {"learning_rate": 5e-4, "batch": 10, "beta": (0.0, 0.2)},
        "ul": {"learning_rate": 5e-4, "batch": 10, "beta": (0.0, 0.3), "alpha": 0.5},
        "sg": {"learning_rate": 5e-4, "batch": 10, "beta": (0.6, 0.6), "gamma": 0.5},
    },
}
