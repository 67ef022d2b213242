"""Summarisation beside the paper: every objective with the beam (table 5), and sampling from MLE (table 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from paper.beside_paper import beside_paper, difference_plot, paper_systems
from paper.outcome import NotGiven, Outcome, Setup, Shown
from paper.printed import SETTINGS
from paper.summarization import Plan, held_results, run_plan
from paper.summarization_scores import scores_beside
from paper.summary_plans import PAPER_CORPORA, news_model, plans
from scalegrad import objectives
from scalegrad.data.pairs import Pair
from scalegrad.results.comparison import Comparison, Plot, Sample, System
from scalegrad.tasks.summarization.config import BEAM

Scored = dict[str, Any]

TITLES = {
    "abstracts": "BertSum on the abstracts of SciTLDR",
    "news": "A causal LM on CNN/DM news",
    "cnn_dailymail": "BertSum on CNN/DM",
    "nyt50": "BertSum on NYT50",
}
ON_PAGE = 3  # articles to read summaries of
BEAM_LABEL = f"MLE beam={BEAM.size}"
MOVER = "MoverScore-1 (WMD-1) is of all-MiniLM-L6-v2, not of the paper's BERT: it compares between rows here alone."
_DIFFERENCES = ("rouge_1", "rouge_2", "rouge_l", "moverscore_1", "rep_1", "rep_2")


def summarization(setup: Setup) -> Outcome:
    """Table 5: ROUGE and MoverScore of each objective with beam 5, β, α and γ chosen on the validation set."""
    found = scores(setup)
    tables, drawn = [], list[Plot | None]()
    for name, scored in found.items():
        table = objectives_table(name, scored)
        tables.append(Shown(f"{TITLES[name]}, {scored['test_texts']:,} test texts", table))
        trained = {label: row for label, row in scored["rows"].items() if ", " not in label}
        gains = {label: row["minus_mle"] for label, row in sorted(trained.items()) if "minus_mle" in row}
        drawn.append(difference_plot(gains, _DIFFERENCES, f"{name}-gains", f"{TITLES[name]}: against MLE"))
    return _outcome(setup, found, tables, drawn)


def summarization_decoding(setup: Setup) -> Outcome:
    """Table 8: the MLE model sampled with top-p and top-k, against its beam search."""
    found = scores(setup)
    tables, drawn = [], list[Plot | None]()
    for name, scored in found.items():
        table = decoding_table(name, scored)
        tables.append(Shown(f"{TITLES[name]}, {scored['test_texts']:,} test texts: the MLE model decoded", table))
        title = f"{TITLES[name]}: decoding the MLE model"
        drawn.append(beside_paper(table, "rouge_1", f"{name}-decoding", title))
    return _outcome(setup, found, tables, drawn)


def scores(setup: Setup) -> dict[str, Scored]:
    """{corpus: figures}: trains and scores what is not done yet in the folder of the runs, or takes what is there."""
    folder = setup.runs / "summarization"
    if setup.only_done and not folder.is_dir():
        raise NotGiven("no summaries were written yet")
    folder.mkdir(parents=True, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    found = {}
    for plan in plans(setup, folder):
        experiment = held_results(plan, folder) if setup.only_done else run_plan(plan, folder, setup.progress)
        if not any(result["objective"] == "mle" for result in experiment["results"]):
            continue  # of what is there nothing can be held against MLE
        path = folder / f"{plan.name}-scores.json"
        scored = scores_beside(path, experiment, lambda plan=plan: _test(plan), device)  # type: ignore[misc]
        # News articles are their publishers': results that may be passed on hold none of them.
        found[plan.name] = scored | {"to_read": {} if plan.name == "news" else _to_read(experiment, plan)}
    if not found:
        raise NotGiven("the MLE model has no summaries yet")
    return found


def _to_read(experiment: Mapping[str, Any], plan: Plan) -> dict[str, list[Sample]]:
    """{label: a few summaries of the first seed's beam}, of articles evenly spread over the test set."""
    pairs = {pair.id: pair for pair in _test(plan)}
    ids = list(experiment["test"])
    places = [len(ids) * place // ON_PAGE for place in range(min(ON_PAGE, len(ids)))]
    articles = [_beginning(pairs[ids[place]].text) for place in places]
    found = {"Reference": [pairs[ids[place]].references[0] for place in places]}
    for result in experiment["results"]:
        label = objectives.parse(result["objective"]).label
        found.setdefault(label, [result["summaries"]["beam"][place] for place in places])
    return {label: list(map(Sample, articles, texts)) for label, texts in found.items()}


def _beginning(article: str, words: int = 80) -> str:
    return " ".join(article.split()[:words])


def objectives_table(name: str, scored: Scored) -> Comparison:
    """Every objective with the beam, the references, and the paper's table 5; with summaries to read."""
    rows = [_system(label, row) for label, row in scored["rows"].items() if ", " not in label]
    chosen, texts = scored["chosen_on_validation"], scored.get("to_read", {})
    rows = [replace(row, chosen=row.label in chosen, samples=texts.get(row.label, ())) for row in rows]
    rows.sort(key=_place)
    tables = [PAPER_CORPORA[name]] if name in PAPER_CORPORA else ["summarization cnn/dm"]
    paper = paper_systems(*tables)
    if name not in PAPER_CORPORA:
        paper += paper_systems("summarization nyt50", where=", in the paper (NYT50)")
    people = replace(_human(scored), samples=texts.get("Reference", ()))
    return Comparison([*rows, people, *paper], TITLES[name], [*scored["notes"], MOVER])


def decoding_table(name: str, scored: Scored) -> Comparison:
    """The MLE model under each decoding, and the paper's table 8."""
    rows = [
        _system(f"MLE {label.removeprefix('MLE, ')}", row, "decoded")
        for label, row in scored["rows"].items()
        if label.startswith("MLE, ")
    ]
    beam = _system(BEAM_LABEL, scored["rows"]["MLE"])
    return Comparison(
        [*rows, beam, _human(scored), *paper_systems("summarization decoding")], TITLES[name], [*scored["notes"], MOVER]
    )


def _system(label: str, row: Mapping[str, Any], kind: str = "trained") -> System:
    figures = {name: value for name, value in row["figures"].items() if value["mean"] is not None}
    family, strength = _objective(label)
    return System(
        label,
        {name: value["mean"] for name, value in figures.items()},
        kind,
        family,
        strength,
        deviations={n: v["deviation_over_seeds"] for n, v in figures.items() if "deviation_over_seeds" in v},
        intervals={n: (v["low"], v["high"]) for n, v in figures.items() if v["low"] is not None},
        runs=row["seeds"],
    )


def _objective(label: str) -> tuple[str, float | None]:
    name, _, strength = label.partition(" ")
    return name.lower(), float(strength.partition("=")[2]) if "=" in strength and name != "MLE" else None


def _human(scored: Scored) -> System:
    found = {n: v for n, v in scored["human"].items() if isinstance(v, dict) and n in scored["rows"]["MLE"]["figures"]}
    return System("Reference", {name: value["mean"] for name, value in found.items()}, "human")


def _place(system: System) -> tuple[int, float]:
    strength = system.strength or 0.0
    return ("mle", "ul", "sg").index(system.family), strength if system.family == "ul" else -strength


def _outcome(
    setup: Setup, found: Mapping[str, Scored], tables: Sequence[Shown], drawn: Sequence[Plot | None]
) -> Outcome:
    plots = [plot for plot in drawn if plot is not None]
    return Outcome(tables, plots, _about_scale(setup, found), _made(found))


def _about_scale(setup: Setup, found: Mapping[str, Scored]) -> list[str]:
    said = {
        "smoke": "Ten steps on sixteen abstracts of SciTLDR, from a small BERT of random weights.",
        "gpu": "SciTLDR has 1,992 abstracts to train on, CNN/DM 287,227 articles, and the encoder is a fifth of "
        "BERT-base: compare the order and the gaps, not the values.",
        "paper": "The paper's model, corpora and hyper-parameters; α, γ and β are the paper's choice.",
    }
    told = [said[setup.scale]]
    if setup.scale == "gpu" and "news" not in found:
        told.append("The table of news needs a causal LM (--model) and CNN/DM pairs (--data news=FOLDER).")
    if setup.scale == "paper":
        told += [sentence for name, scored in found.items() if (sentence := _sizes_sentence(name, scored))]
        if "nyt50" not in found:
            told.append("NYT50 is licensed and on no hub: its tables need its folder (--data nyt50=FOLDER).")
    elif setup.model is not None and news_model(setup) == setup.model and "news" not in found:
        told.append(f"{setup.model} is no BERT, so BertSum began with the scale's own encoder.")
    return told


def _sizes_sentence(name: str, scored: Scored) -> str:
    wanted = SETTINGS[PAPER_CORPORA[name]]["sizes"]["test"]
    if scored["test_texts"] == wanted:
        return ""
    return f"{TITLES[name]}: {scored['test_texts']:,} test texts and not the paper's {wanted:,}: rows hardly compare."


def _made(found: Mapping[str, Scored]) -> dict[str, Any]:
    """How the figures came about, for each corpus: the settings once, and a line for each run."""
    made = {}
    for name, scored in found.items():
        started = scored["environment"]
        made[name] = {
            "settings": scored["settings"],
            "parameters": scored["model_parameters"],
            "trained_on": {key: started[key] for key in ("hardware", "versions", "started")},
            "trained and decoded in seconds": scored["seconds"],
            "validation ROUGE of strengths": {
                label: ", ".join(f"{strength}: {score:.2f}" for strength, score in scores.items())
                for label, scores in scored["chosen_on_validation"].items()
            },
            "runs": {f"{run['objective']} seed {run['seed']}": _run_line(run, scored) for run in scored["runs"]},
        }
    return made


def _run_line(run: Mapping[str, Any], scored: Scored) -> str:
    """What came of a run, in a line: its step, its perplexity, what it took, and its β."""
    beta = scored["length_normalisation"][f"{run['objective']} seed {run['seed']}"]["beta"]
    took = f"{run['seconds']:.0f} s" + (f", {run['peak_memory_mib']:,.0f} MiB" if run.get("peak_memory_mib") else "")
    ppl = run.get("validation_ppl") or float("nan")
    return f"step {run['selected_step']} of {run['steps']}, validation perplexity {ppl:.2f}, {took}; β={beta:g}"


def _test(plan: Plan) -> Sequence[Pair]:
    return plan.tasks[0].pairs("test")[: plan.limit]
