"""The figures a comparison knows: what they are called, what they are, and how they are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from scalegrad.results.comparison.systems import Comparison, System


class Column(NamedTuple):
    """A figure: its title, what it says, how it is printed, and which way is better."""

    title: str
    meaning: str
    form: str  # "share" .661, "count" 12,540, "number" 13.24
    better: str  # "low", "high", "human" (nearest to the human row), or "" where no value is better than another


_TOKENS = "Predicting the next token"
_TEXTS = "Writing on its own"
_TRAINING = "Training"
_DIRECTED = "Against references"
_JUDGED = "Judged by people"

_REP_L = "share of predictions that are among the previous {} tokens"
COLUMNS: dict[str, Column] = {
    "ppl": Column("ppl", "perplexity, exp of the mean plain NLL a token", "number", "low"),
    "calibrated_ppl": Column(
        "calibrated ppl",
        "perplexity with the probabilities of tokens not said before times γ and all renormalised, as in training; it "
        "does not compare with MLE's",
        "number",
        "",  # MLE has had no such freedom, so its row does not compare
    ),
    "uniq": Column("uniq", "distinct tokens among the predictions", "count", "human"),
    "rep_window_16": Column("Rep/16", _REP_L.format(16), "share", "human"),
    "rep_window_32": Column("Rep/32", _REP_L.format(32), "share", "human"),
    "rep_window_128": Column("Rep/128", _REP_L.format(128), "share", "human"),
    "rep_1": Column("Rep-1", "share of a text's words said before in it", "share", "human"),
    "rep_2": Column("Rep-2", "the same of its pairs of words", "share", "human"),
    "rep_3": Column("Rep-3", "the same of its runs of three words", "share", "human"),
    "uniq_w": Column("uniq-w", "distinct words over all texts", "count", "human"),
    "bits_per_byte": Column("bits/byte", "NLL in bits a byte of text: compares between tokenizers", "number", "low"),
    "accuracy": Column("accuracy", "share of predictions that are right", "share", "high"),
    "wrong_rep_window_16": Column("wrong Rep/16", "Rep/16 where the prediction is wrong", "share", "low"),
    "wrong_rep_window_32": Column("wrong Rep/32", "Rep/32 where the prediction is wrong", "share", "low"),
    "wrong_rep_window_128": Column("wrong Rep/128", "Rep/128 where the prediction is wrong", "share", "low"),
    "seen_mass": Column("seen mass", "probability of all tokens already read, together", "share", "human"),
    "rep_1_no_unk": Column("Rep-1 no <unk>", "Rep-1 with <unk> taken out of the texts", "share", "human"),
    "rep_2_no_unk": Column("Rep-2 no <unk>", "Rep-2 with <unk> taken out of the texts", "share", "human"),
    "rep_3_no_unk": Column("Rep-3 no <unk>", "Rep-3 with <unk> taken out of the texts", "share", "human"),
    "n_texts": Column("texts", "continuations scored", "count", "high"),
    "validation_ppl": Column("validation ppl", "plain perplexity on the validation text", "number", "low"),
    "train_seconds": Column("train s", "seconds of training, validation and checkpoints included", "count", "low"),
    "tokens_per_second": Column("tokens/s", "tokens trained on in a second: the median of the log", "count", "high"),
    "peak_memory_mib": Column("peak MiB", "memory at most while training", "count", "low"),
    "rouge_1": Column("R-1", "ROUGE-1 F1", "number", "high"),
    "rouge_2": Column("R-2", "ROUGE-2 F1", "number", "high"),
    "rouge_l": Column("R-L", "ROUGE-L F1", "number", "high"),
    "rouge_lsum": Column("R-Lsum", "ROUGE-L F1 over sentences", "number", "high"),
    "moverscore_1": Column("WMD-1", "1-gram MoverScore", "number", "high"),
    "cider": Column("CIDEr", "CIDEr", "number", "high"),
    "meteor": Column("METEOR", "METEOR", "number", "high"),
    "bleu": Column("BLEU", "BLEU", "number", "high"),
    "win_rate": Column("win rate", "share of all votes that the first system of the pair got", "share", ""),
    "agreement": Column("agreement", "share of the prefixes on which two raters agree", "share", ""),
    "ac1": Column("AC1", "Gwet's coefficient: agreement beyond chance", "share", ""),
    "votes": Column("votes", "judgements", "count", ""),
    "n_seen": Column("seen", "tokens said before this step", "count", ""),
    "n_novel": Column("novel", "the others: tokens that ScaleGrad scales by γ", "count", ""),
    "mean_rouge": Column("mean R", "mean of ROUGE-1, -2 and -L F1", "number", "high"),
    "beta": Column("β", "length normalisation, chosen on the validation set or set by hand", "number", ""),
    "words": Column("words", "words a text", "number", "human"),
    "novelty_1": Column("new words", "share of a text's distinct words that are not in its source", "share", "human"),
    "novelty_2": Column("new pairs", "the same of its pairs of words", "share", "human"),
}  # fmt: skip
COLUMNS |= {
    f"rep_1_at_{length}": Column(f"Rep-1 at {length}", f"Rep-1 of texts of {length} tokens", "share", "human")
    for length in range(50, 301, 50)
}

# The main table: the paper's columns; everything else a system has goes into a second one.
MAIN: dict[str, tuple[str, ...]] = {
    _TOKENS: ("ppl", "calibrated_ppl", "uniq", "rep_window_16", "rep_window_32", "rep_window_128"),
    _TEXTS: ("rep_1", "rep_2", "rep_3", "uniq_w", "words"),
    _TRAINING: ("train_seconds", "tokens_per_second", "peak_memory_mib"),
    _DIRECTED: ("rouge_1", "rouge_2", "rouge_l", "rouge_lsum", "moverscore_1", "cider", "meteor", "bleu", "beta"),
    _JUDGED: ("win_rate", "agreement", "ac1", "votes"),
}


def column(name: str) -> Column:
    """The column of a figure; one that is not known is shown under its own name, and no value of it is the best."""
    return COLUMNS.get(name) or Column(name.replace("_", " "), "", "number", "")


def main_columns(systems: Sequence[System]) -> dict[str, list[str]]:
    """Group → the figures of the main table that any model here has; without any of them, all there are."""
    there = _present(systems)
    found = {group: [name for name in names if name in there] for group, names in MAIN.items()}
    found = {group: names for group, names in found.items() if names}
    return found or ({"Figures": there} if there else {})


def further_columns(systems: Sequence[System]) -> list[str]:
    """The figures the main table leaves out, in their usual order."""
    shown = {name for names in main_columns(systems).values() for name in names}
    rest = [name for name in _present(systems) if name not in shown]
    order = list(COLUMNS)
    return sorted(rest, key=lambda name: order.index(name) if name in order else len(order))


def _present(systems: Sequence[System]) -> list[str]:
    models = [system for system in systems if system.kind in ("trained", "decoded")] or systems
    return list(dict.fromkeys(name for system in models for name in system.figures))


def written(name: str, value: float | None) -> str:
    """A figure as the tables print it.

    >>> written("rep_1", 0.6614), written("uniq", 12540.0), written("ppl", 13.2412), written("ppl", None)
    ('.661', '12,540', '13.24', '–')
    """
    if value is None or value != value:
        return "–"
    form = column(name).form
    if form == "share":
        return f"{value:.3f}".removeprefix("0") if 0 <= value < 1 else f"{value:.3f}"
    if form == "count":
        return f"{value:,.0f}"
    return f"{value:,.2f}" if abs(value) < 1000 else f"{value:,.0f}"


def written_deviation(name: str, value: float | None) -> str:
    """A deviation, beside its figure; "" where there is none.

    >>> written_deviation("rep_1", 0.0031), written_deviation("rep_1", 0.00001), written_deviation("ppl", None)
    ('±.003', '±<.001', '')
    """
    if value is None or value != value:
        return ""
    finest = {"share": 0.001, "count": 1.0, "number": 0.01}[column(name).form]
    return f"±{written(name, value)}" if value >= finest / 2 else f"±<{written(name, finest)}"


def written_spread(system: System, name: str) -> str:
    """What stands beside a figure: its interval over texts, its deviation over seeds, both, or "".

    >>> system = System(figures={"rouge_1": 20.0}, intervals={"rouge_1": (19.0, 21.0)}, deviations={"rouge_1": 0.25})
    >>> written_spread(system, "rouge_1"), written_spread(system, "rouge_2")
    ('(19.00–21.00) ±0.25', '')
    """
    bounds = system.intervals.get(name)
    interval = f"({written(name, bounds[0])}–{written(name, bounds[1])})" if bounds else ""
    return f"{interval} {written_deviation(name, system.deviations.get(name))}".strip()


BOLD = "Bold: best of the models here (of repetition and distinct words, nearest to human text)."  # what `best` marks


def legend(comparison: Comparison, names: Sequence[str]) -> str:
    """What bold, ± and brackets mean in a table of these figures, as far as they are in it.

    >>> legend(Comparison([System(figures={"ppl": 9.0}, deviations={"ppl": 0.1}, runs=3)]), ["ppl"])
    '±: standard deviation over 3 seeds.'
    """
    systems = comparison.systems
    seeds = sorted({s.runs for s in systems if any(name in s.deviations for name in names)})
    many = f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else "".join(map(str, seeds))
    sentences = {
        BOLD: any(best(comparison, name) for name in names),
        f"±: standard deviation over {many} seeds.": bool(seeds),
        "In brackets: 95% bootstrap interval.": any(name in s.intervals for s in systems for name in names),
    }
    return " ".join(sentence for sentence, is_so in sentences.items() if is_so)


def best(comparison: Comparison, name: str) -> set[int]:
    """Places of the models whose figure is best: lowest, highest, or nearest to the human row.

    None where there is one model alone, where all have the same, where no value is better than another, and where the
    figures are of different data.
    """
    systems, human = comparison.systems, comparison.human
    models = [
        at for at, system in enumerate(systems) if system.kind in ("trained", "decoded") and name in system.figures
    ]
    if len(models) < 2 or not column(name).better or name in comparison.apart:
        return set()
    goal = human.figures.get(name) if human else None
    wanted = column(name).better
    if wanted == "human" and goal is None:
        wanted = "high" if column(name).form == "count" else "low"

    def distance(at: int) -> float:
        value = systems[at].figures[name]
        if wanted == "human":
            assert goal is not None
            return abs(value - goal)
        return -value if wanted == "high" else value

    least = min(map(distance, models))
    shown = {
        at
        for at in models
        if written(name, systems[at].figures[name])
        in {written(name, systems[other].figures[name]) for other in models if distance(other) == least}
    }
    return shown if len(shown) < len(models) else set()
