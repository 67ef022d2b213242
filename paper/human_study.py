"""The paper's human study, drawn from the texts of the main table's models and ready to be served.

Only people can give its figures. As long as nobody has rated, the table holds the paper's rows alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path

from paper.open_ended import WIKITEXT, main_runs, main_trainings
from paper.open_ended_scale import MAIN
from paper.outcome import Experiment, Outcome, Setup, Shown
from paper.printed import JUDGED
from scalegrad.extras import need
from scalegrad.results.comparison import Comparison, System
from scalegrad.results.comparison.page import readable
from scalegrad.runs import Run, samples_name
from scalegrad.study import Completions, Study, draw_study, load_study, usable_prefixes, write_study

PREFIXES, RATERS = 100, ("rater-1", "rater-2")  # of the paper, for each pair
SYSTEMS = dict(zip(MAIN, ("MLE", "UL", "SG"), strict=True))
PAIRS = (("SG", "MLE"), ("SG", "UL"))
NAME = "human-study"


def human_study(setup: Setup) -> Outcome:
    """Table 3 and figure 5: which continuation do two raters prefer, for 100 prefixes of each pair?"""
    folder = setup.out / NAME / "study"
    completions = completions_of(main_runs(setup))
    study, sentences = _study(folder, completions)
    rated, judged = _rated(folder) if (folder / "answers.sqlite").exists() else ([], [])
    paper = [System(pair.name, pair.figures, "paper", "sg", suffix=", in the paper") for pair in JUDGED]
    notes = ["The paper: two raters and 100 prefixes, so 200 votes a pair; the win rate is SG's share of them."]
    if not rated:
        sentences.append(
            f"Nobody has rated yet, so there are no figures of this machine: scalegrad study serve {folder}"
        )
    made = {
        "study": str(folder),
        "prefixes": len({item.prefix_id for item in study.items}) if study else 0,
        "pairs": [" vs ".join(pair) for pair in PAIRS],
        "raters": len(RATERS),
        "texts": "greedy continuations on the WikiText-103 test text, first seed",
    }
    table = Shown("Which continuation is better? Judged by people", Comparison([*rated, *paper], "", notes))
    return Outcome([table], (), [*sentences, *judged], made)


def completions_of(runs: Mapping[str, Run]) -> Completions:
    """What the runs wrote after the same prefixes, as raters should read it: without marks of tokenisation."""
    file = f"samples/{samples_name(WIKITEXT, 'test', 'greedy')}"
    written = {SYSTEMS[objective]: run.load(file) for objective, run in runs.items()}
    prefixes = {str(record["id"]): readable(record["prefix"]) for record in next(iter(written.values()))}
    texts = {
        system: {str(record["id"]): readable(record["continuation"]) for record in records}
        for system, records in written.items()
    }
    return Completions(prefixes, texts)


def _study(folder: Path, completions: Completions) -> tuple[Study | None, list[str]]:
    """The study in `folder`, drawn where there is none yet; never another in its place: raters may have their links."""
    if (folder / "study.json").is_file():
        study = load_study(folder)
        if any(completions.texts[system].get(item.prefix_id) != text for item in study.items
               for system, text in zip(item.systems, item.texts, strict=True)):  # fmt: skip
            return study, [
                f"The study in {folder} was drawn from other texts than the runs have now; it is left as it is."
            ]
        return study, []
    usable = usable_prefixes(completions, PAIRS)
    if not usable:
        return None, ["The three models continue every prefix alike, so there is nothing to choose between."]
    prefixes = min(PREFIXES, len(usable))
    study = draw_study(
        completions, study_id=secrets.token_hex(4), pairs=PAIRS, prefixes=prefixes, raters=RATERS, seed=0
    )
    write_study(study, folder)
    few = "" if prefixes == PREFIXES else f" (the paper's has {PREFIXES}; there are {len(usable)} to draw from)"
    return study, [f"A study of {prefixes} prefixes a pair{few} is drawn in {folder}; its links are in links.csv."]


def _rated(folder: Path) -> tuple[list[System], list[str]]:
    """The rows of people's answers, and what is to be said of them."""
    need("sqlalchemy", extra="study")
    from scalegrad.study.analysis import analyse
    from scalegrad.study.answers import open_answers
    from scalegrad.study.report import position_sentence

    answers = open_answers(folder)
    found = analyse(answers.study, answers.all())
    rows = [
        System(
            f"{pair.a} vs {pair.b}",
            {"win_rate": pair.win_rate.estimate, "agreement": pair.agreement, "ac1": pair.ac1, "votes": pair.votes},
            "human",
            "sg",
            intervals={"win_rate": (pair.win_rate.low, pair.win_rate.high)},
        )
        for pair in found.pairs
    ]
    if not rows:
        return [], []
    answered = f"{found.answered:,} of {found.asked:,} questions are answered; in brackets: 95% interval."
    return rows, [answered, position_sentence(found), *found.notes]


EXPERIMENTS = (
    Experiment(NAME, "People choose between continuations", ("table 3", "figure 5"), human_study, main_trainings),
)
