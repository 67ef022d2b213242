"""The figures the paper prints, table by table, to be set beside what a machine gives.

Columns carry the names that `scalegrad.metrics` gives its figures; counts are whole numbers (the paper prints 12.54k
for 12,540), rows are named as `Objective.label` names objectives, with the decoding after it where a table varies it.

>>> TABLES["wikitext-103 test"].rows["SG γ=0.2"]["rep_window_128"], TABLES["wikitext-103 test"].number
(0.522, 1)
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class PaperTable:
    """One table: its number and what it shows; `rows[label][column]`; deviations over three seeds where printed."""

    number: int
    title: str
    rows: dict[str, dict[str, float]]
    deviations: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        """Every column of the table, in its order."""
        return list(dict.fromkeys(column for row in self.rows.values() for column in row))


def _read(text: str) -> dict[str, dict[str, float]]:
    """Rows of `label | figures`, the first line naming the columns; a dash is a figure the paper does not give.

    >>> _read("| ppl uniq\\nMLE | 13.24 12.54k\\nHuman | - 18.27k")
    {'MLE': {'ppl': 13.24, 'uniq': 12540.0}, 'Human': {'uniq': 18270.0}}
    """
    head, *lines = text.strip().splitlines()
    columns = head.split("|")[1].split()
    rows = {}
    for line in lines:
        label, cells = line.split("|")
        figures = zip(columns, cells.split(), strict=True)
        rows[label.strip()] = {column: _number(cell) for column, cell in figures if cell != "-"}
    return rows


def _number(cell: str) -> float:
    return round(float(cell[:-1]) * 1000) * 1.0 if cell.endswith("k") else float(cell)


def _open_ended(text: str) -> dict[str, dict[str, float]]:
    return _read("| ppl uniq rep_window_16 rep_window_32 rep_window_128 rep_1 rep_2 rep_3 uniq_w\n" + text.strip())


TABLES: dict[str, PaperTable] = {
    "wikitext-103 test": PaperTable(
        1,
        "Open-ended generation, WikiText-103 test (GPT-2 medium, greedy, mean of 3 seeds)",
        _open_ended("""
MLE      | 13.241 12.54k .234 .380 .619 .661 .500 .424 16.83k
UL α=1.0 | 16.062 13.18k .212 .341 .558 .559 .363 .291 19.11k
SG γ=0.2 | 14.203 13.61k .197 .317 .522 .443 .215 .143 22.25k
Human    | -      18.27k .177 .285 .480 .382 .096 .037 27.55k
"""),
        # From table 10, which repeats this one with deviations (ppl there to two digits); counts in tokens and words.
        _open_ended("""
MLE      | 2e-4 4   5e-6 8e-6 7e-6 1e-5 3e-5 7e-5 100
UL α=1.0 | 2e-2 6   1e-6 1e-7 9e-6 6e-5 2e-4 3e-4 70
SG γ=0.2 | 2e-2 2   6e-7 1e-6 4e-6 9e-7 2e-6 4e-6 20
"""),
    ),
    "ptb test": PaperTable(
        2,
        "Open-ended generation, Penn Treebank test, models fine-tuned on WikiText-103",
        _open_ended("""
MLE      | 33.952 5.60k .157 .292 .530 .652 .493 .424 6.46k
UL α=1.0 | 41.232 5.96k .139 .260 .476 .533 .333 .259 7.60k
SG γ=0.2 | 40.731 6.15k .126 .231 .426 .417 .198 .131 8.42k
Human    | -      8.84k .118 .222 .421 .362 .089 .033 11.32k
"""),
    ),
    "human evaluation": PaperTable(
        3,
        "Human evaluation of auto-completion: two raters, 100 prefixes a pair",
        _read(
            """
| win_rate agreement ac1
SG vs MLE | .840 .840 .78
SG vs UL  | .705 .790 .64"""
        ),
    ),
    "captioning": PaperTable(
        4,
        "Image paragraph captioning, Visual Genome test, with and without trigram blocking",
        _read(
            """
| cider
MLE              | 10.51
UL α=0.5         | 14.65
SG γ=0.5         | 19.42
MLE 3-block      | 22.77
UL α=0.5 3-block | 22.25
SG γ=0.5 3-block | 24.62"""
        ),
    ),
    "summarization cnn/dm": PaperTable(
        5,
        "Summarization with BertSum, CNN/DM test",
        _read(
            """
| rouge_1 rouge_2 rouge_l moverscore_1
MLE      | 41.87 19.42 38.93 19.89
UL α=0.5 | 42.03 19.36 39.09 20.21
SG γ=0.8 | 42.19 19.53 39.25 20.23"""
        ),
    ),
    "summarization nyt50": PaperTable(
        5,
        "Summarization with BertSum, NYT50 test",
        _read(
            """
| rouge_1 rouge_2 rouge_l moverscore_1
MLE      | 48.73 31.00 45.23 28.73
UL α=0.5 | 48.54 30.73 44.99 28.50
SG γ=0.8 | 49.29 31.30 45.78 29.14"""
        ),
    ),
    "decoding": PaperTable(
        17,
        "Decoding strategies for auto-completion, WikiText-103 test (table 7 is an extract)",
        _read(
            """
| ppl rep_1 rep_2 rep_3 uniq_w
SG γ=0.2 greedy    | 14.20 .443 .215 .144 22.25k
SG γ=0.2 beam=3    | 14.20 .422 .210 .134 8.75k
SG γ=0.2 beam=6    | 14.20 .453 .250 .171 8.32k
SG γ=0.2 beam=10   | 14.20 .489 .298 .214 8.00k
SG γ=0.2 top_p=0.3 | 14.20 .356 .107 .049 30.48k
SG γ=0.2 top_p=0.9 | 14.20 .217 .027 .008 52.76k
SG γ=0.2 top_k=40  | 14.20 .254 .039 .012 39.50k
SG γ=0.2 top_k=100 | 14.20 .234 .031 .010 44.27k
UL α=1.0 greedy    | 16.06 .559 .363 .291 19.11k
UL α=1.0 beam=6    | 16.06 .577 .418 .325 7.49k
UL α=1.0 top_p=0.3 | 16.06 .444 .176 .070 24.45k
UL α=1.0 top_k=40  | 16.06 .336 .067 .021 31.89k
MLE greedy         | 13.24 .661 .500 .424 16.83k
MLE beam=6         | 13.24 .697 .566 .463 6.11k
MLE top_p=0.3      | 13.24 .558 .210 .116 20.13k
MLE top_k=40       | 13.24 .485 .154 .076 24.26k
Human              | -     .382 .096 .037 27.55k"""
        ),
    ),
    "summarization decoding": PaperTable(
        8,
        "Stochastic decoding of BertSum trained with MLE, NYT50 test",
        _read(
            """
| rouge_1 moverscore_1
MLE top_p=0.3 | 45.44 24.61
MLE top_p=0.9 | 42.33 21.67
MLE top_k=40  | 41.23 20.70
MLE top_k=100 | 40.86 20.38
MLE beam=5    | 48.73 28.73"""
        ),
    ),
    "captioning degeneration": PaperTable(
        9,
        "Repetition of image paragraphs, with and without trigram blocking",
        _read(
            """
| rep_1 rep_2 rep_3
MLE              | .723 .587 .530
SG γ=0.5         | .500 .270 .195
MLE 3-block      | .575 .271 .094
SG γ=0.5 3-block | .440 .146 .037
Human            | .421 .123 .042"""
        ),
    ),
    "wikitext-103 valid": PaperTable(
        11,
        "Open-ended generation, WikiText-103 validation: the grid of γ and α",
        _open_ended("""
MLE      | 13.17 12.52k .236 .384 .621 .665 .510 .428 16.71k
UL α=0.5 | 14.91 12.45k .217 .350 .579 .601 .424 .348 18.02k
UL α=1.0 | 16.52 12.77k .210 .336 .552 .551 .359 .289 19.14k
UL α=1.5 | 19.63 13.41k .201 .315 .523 .489 .267 .205 22.00k
SG γ=0.2 | 14.43 13.73k .195 .316 .518 .451 .237 .175 22.29k
SG γ=0.5 | 13.53 13.25k .218 .352 .576 .561 .389 .331 19.13k
SG γ=0.8 | 13.27 12.79k .229 .369 .603 .625 .443 .365 17.59k
Human    | -     17.68k .173 .278 .470 .376 .097 .032 27.63k
"""),
    ),
    "imdb": PaperTable(
        12,
        "Open-ended generation, 500 IMDB reviews, models fine-tuned on WikiText-103",
        _open_ended("""
MLE      | 100.764 7.48k  .153 .254 .449 .662 .499 .429 7.70k
UL α=1.0 | 108.334 8.09k  .123 .205 .373 .545 .346 .274 9.31k
SG γ=0.2 | 110.451 8.14k  .114 .187 .344 .383 .142 .081 10.42k
Human    | -       14.49k .118 .208 .378 .329 .084 .009 19.11k
"""),
    ),
    "captioning decoding": PaperTable(
        18,
        "Stochastic decoding of the captioner trained with MLE, Visual Genome test",
        _read(
            """
| cider
MLE top_p=0.3 | 19.54
MLE top_p=0.9 | 18.67
MLE top_k=40  | 18.73
MLE top_k=100 | 18.05
MLE 3-block   | 22.77"""
        ),
    ),
}

# The hyper-parameters and data sizes of the appendix (tables 13 to 16 and the text around them).
SETTINGS: dict[str, dict[str, dict[str, float | int | tuple[float, ...]]]] = {
    "open-ended": {
        "all": {"max_steps": 35_000, "evaluate_every": 1_000, "sequence_tokens": 300, "seeds": 3},
        "MLE": {"learning_rate": 2e-5, "batch": 300},
        "UL": {"learning_rate": 2e-5, "batch": 300, "alpha": (0.5, 1.0, 1.5)},
        "SG": {"learning_rate": 2e-5, "batch": 300, "gamma": (0.2, 0.5, 0.8)},
        "completion": {"prefix_tokens": 50, "new_tokens": 100},
    },
    "summarization cnn/dm": {
        "sizes": {"train": 287_227, "validation": 13_368, "test": 11_490},
        "MLE": {"lr_bert": 0.002, "lr_decoder": 0.2, "batch": 140, "beta": 1.0, "beam": 5},
        "UL": {"lr_bert": 0.002, "lr_decoder": 0.2, "alpha": 0.5, "batch": 140, "beta": 2.0, "beam": 5},
        "SG": {"lr_bert": 0.002, "lr_decoder": 0.2, "gamma": 0.8, "batch": 140, "beta": 1.5, "beam": 5},
    },
    "summarization nyt50": {
        "sizes": {"train": 96_834, "validation": 4_000, "test": 3_452},
        "MLE": {"lr_bert": 0.002, "lr_decoder": 0.2, "batch": 140, "beta": 1.5, "beam": 5},
        "UL": {"lr_bert": 0.002, "lr_decoder": 0.2, "alpha": 0.5, "batch": 140, "beta": 2.0, "beam": 5},
        "SG": {"lr_bert": 0.002, "lr_decoder": 0.2, "gamma": 0.8, "batch": 140, "beta": 1.5, "beam": 5},
    },
    "captioning": {
        "sizes": {"train": 14_575, "validation": 2_487, "test": 2_489, "mean_tokens": 67.50},
        # beta: without and with trigram blocking
        "MLE": {"learning_rate": 5e-4, "batch": 10, "beta": (0.0, 0.2)},
        "UL": {"learning_rate": 5e-4, "batch": 10, "beta": (0.0, 0.3), "alpha": 0.5},
        "SG": {"learning_rate": 5e-4, "batch": 10, "beta": (0.6, 0.6), "gamma": 0.5},
    },
}


def read_label(label: str) -> tuple[str, float | None]:
    """Family and strength of a row that the paper prints: ("sg", 0.2) of "SG γ=0.2"."""
    name, _, strength = label.partition("=")
    try:
        return name.split()[0].lower(), float(strength)
    except (ValueError, IndexError):
        return name.split()[0].lower(), None
