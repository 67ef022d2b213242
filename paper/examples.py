"""The beginnings that the paper prints, continued by the models of every objective, beside the paper's own texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paper.beside_paper import IN_PAPER
from paper.open_ended_scale import GRID, MAIN, Scale, scale_of, trained
from paper.outcome import Experiment, NotGiven, Outcome, Setup
from paper.pages import Shown
from paper.printed import read_label
from paper.printed_texts import PRINTED, Printed
from scalegrad import objectives
from scalegrad.data import gpt2_tokenizer, imdb_reviews
from scalegrad.decoding import complete, prefixes_of, start_ids
from scalegrad.lab.jobs import Job, Progress
from scalegrad.results.comparison import Comparison, Sample, System
from scalegrad.results.comparison.evaluations import HUMAN
from scalegrad.results.comparison.load import place
from scalegrad.runs import Run, samples_name
from scalegrad.tasks.open_ended.corpora import find_corpus
from scalegrad.tasks.open_ended.evaluation import text_figures

SAMPLES = f"samples/{samples_name('printed', 'greedy')}"
COLUMNS = ("rep_1", "rep_2", "rep_3")


@dataclass(frozen=True)
class Continued:
    """Texts that a run's model continues by greedy search, to be found in its folder."""

    prefixes: tuple[str, ...]
    new_tokens: int

    def is_done(self, run: Run) -> bool:
        """Whether these beginnings, perhaps among others, have texts of this length."""
        records = run.load(SAMPLES) if (run.path / SAMPLES).is_file() else []
        there = {record["prefix"] for record in records if record["tokens"] == self.new_tokens}
        return set(self.prefixes) <= there

    def measure(self, run: Run, model: Any, tokenizer: Any, *, overwrite: bool, progress: Progress | None) -> None:
        """Continue them, anew where there are others only."""
        prefixes = prefixes_of(self.prefixes, tokenizer, start_ids(tokenizer))
        complete(
            model, tokenizer, prefixes, run.path / SAMPLES,
            new_tokens=self.new_tokens, min_new_tokens=self.new_tokens, overwrite=True,
        )  # fmt: skip


def example_jobs(setup: Setup) -> list[Job]:
    """Every objective of the paper's grid, first seed."""
    scale, (found, _) = scale_of(setup), printed_prefixes(setup.data)
    return _jobs_of(scale, Continued(tuple(prefix for _, prefix, _ in found), scale.new_tokens))


def _jobs_of(scale: Scale, asked: Continued) -> list[Job]:
    return [scale.job(objective, 0, asked) for objective in (*MAIN, *GRID)]


def examples(setup: Setup) -> Outcome:
    """Tables 6, 19, 20, 27 and 28: greedy continuations, repeated runs of words marked."""
    scale = scale_of(setup)
    found, missing = printed_prefixes(setup.data)
    asked = Continued(tuple(prefix for _, prefix, _ in found), scale.new_tokens)
    runs = [run for run in trained(setup, _jobs_of(scale, asked)) if asked.is_done(run)]  # but for `only_done` all
    if not runs:
        raise NotGiven("no run has continued these beginnings yet")
    here = sorted((_row(run, asked.prefixes) for run in runs), key=place)
    human = _system(HUMAN, [Sample(prefix, _beginning_of(rest, scale)) for _, prefix, rest in found], "human")
    paper = [
        _system(f"{label}{IN_PAPER}", [Sample(prefix, one.texts[label]) for one, prefix, _ in found], "paper")
        for label in found[0][0].texts
    ]
    numbers = [str(number) for one, _, _ in found for number in one.tables]
    notes = [
        "Rows in the paper are its printed texts, quoted; the others were written here by greedy search, as they are.",
        "Figures of a few texts say little: the tables of `wikitext` have thousands.",
        "The beginnings stand as in the corpus (WikiText-103 is CC BY-SA 3.0), so with <unk> where the paper left it "
        "out.",
    ]
    if scale.new_tokens != 100:
        notes.append(f"Texts have {scale.new_tokens} tokens, the paper's 100: Rep-n grows with length.")
    title = f"The beginnings of tables {', '.join(sorted(numbers, key=int))}, continued"
    table = Shown(title, Comparison([*here, human, *paper], "", notes), texts=True)
    made = {"model": scale.config.model, "data": list(scale.config.data), "decoding": "greedy", "seed": 0}
    return Outcome([table], (), missing, made)


def printed_prefixes(data: Mapping[str, str]) -> tuple[list[tuple[Printed, str, str]], list[str]]:
    """What the paper continues: (what it prints, the beginning in the corpus, what follows), and what is missing.

    >>> found, missing = printed_prefixes({})
    >>> [(one.tables, prefix[-10:], rest[:14]) for one, prefix, rest in found]
    [((19,), 'a starring', ' role in the p'), ((6, 20), 'tterance "', ' set the stage')]
    >>> missing[0]
    'Table 27 needs the Penn Treebank (--ptb FILE), which cannot be shipped.'
    """
    found, missing = [], []
    names = {"ptb": "the Penn Treebank (--ptb FILE)", "imdb": "IMDB reviews (--imdb PATH)"}
    for one in PRINTED:
        table = f"Table {one.tables[0]}"
        if one.corpus in names and one.corpus not in data:
            missing.append(f"{table} needs {names[one.corpus]}, which cannot be shipped.")
            continue
        here = next((cut for text in _texts(one.corpus, data) if (cut := one.prefix_in(text))), None)
        if here is None:
            missing.append(f"{table}: {data[one.corpus]} does not hold its beginning, “{one.first} …”.")
        else:
            found.append((one, *here))
    return found, missing


def _texts(corpus: str, data: Mapping[str, str]) -> Iterable[str]:
    if corpus == "imdb":
        return imdb_reviews(data[corpus])
    return [find_corpus(corpus if corpus not in data else f"{corpus}:{data[corpus]}").text]


def _row(run: Run, prefixes: Sequence[str]) -> System:
    written_after = {record["prefix"]: record["continuation"] for record in run.load(SAMPLES)}
    objective = objectives.parse(str(run.config["objective"]))
    texts = [Sample(prefix, written_after[prefix]) for prefix in prefixes]
    return _system(objective.label, texts, "trained")


def _system(label: str, texts: Sequence[Sample], kind: str) -> System:
    figures = text_figures([text.continuation for text in texts])
    family, strength = ("human", None) if kind == "human" else read_label(label.removesuffix(IN_PAPER))
    return System(label, {name: figures[name] for name in COLUMNS}, kind, family, strength, samples=texts)


def _beginning_of(text: str, scale: Scale) -> str:
    """As much of human text as the models write, in GPT-2's tokens."""
    tokenizer = gpt2_tokenizer()
    return str(tokenizer.decode(tokenizer.encode(text[:10_000]).ids[: scale.new_tokens]))


EXPERIMENTS = (
    Experiment(
        "examples",
        "The paper's printed beginnings, continued by every objective",
        ("table 6", "table 19", "table 20", "table 27", "table 28"),
        examples,
        jobs=example_jobs,
    ),
)
