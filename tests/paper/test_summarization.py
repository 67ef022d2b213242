"""The experiment: a plan done and gone on with, what it chooses, and figures that are worked out by hand."""

import json
from dataclasses import replace

import numpy as np
import pytest

from paper import summarization, summarization_scores
from paper.summarization import Plan
from scalegrad.data.pairs import Pair
from scalegrad.tasks.summarization.config import STOCHASTIC, Evaluation, Task
from scalegrad.tasks.summarization.recipes import small
from tests.tiny_bert import save_tiny_bert


@pytest.fixture
def plan(tmp_path):
    bert = save_tiny_bert(tmp_path / "bert", positions=192)

    def task(seed):
        recipe = small(seed)
        return Task(
            str(bert),
            recipe=replace(
                recipe,
                selector=replace(recipe.selector, max_steps=1, evaluate_every=1, tracker=(), dtype="float32"),
                writer=replace(recipe.writer, max_steps=2, evaluate_every=2, tracker=(), dtype="float32"),
                decoder_shape={"decoder_layers": 1, "decoder_inner": 16},
            ),
            limit=8,
        )

    how = Evaluation(betas=(0.0, 1.0), new_tokens=4, mover=False, batch=8)
    return Plan("abstracts", (task(0), task(1)), ("mle", "sg=0.8", "sg=0.5"), how, choose=2, limit=2)


def test_a_plan_is_done_once(plan, tmp_path):
    """All three with the first seed, then MLE and the better γ with the second; a second call trains nothing."""
    steps = []
    found = summarization.run_plan(plan, tmp_path, lambda what, done, total: steps.append((what.split(" · ")[0], done)))
    chosen = found["chosen"]["sg"]["strength"]
    scores = found["chosen"]["sg"]["validation_scores"]
    assert scores[str(chosen)] == max(scores.values())
    assert [(one["objective"], one["seed"]) for one in found["results"]] == [
        ("mle", 0), ("sg=0.5", 0), ("sg=0.8", 0), ("mle", 1), (f"sg={chosen}", 1),
    ]  # fmt: skip
    first = found["results"][0]
    assert first["trained"]["steps"] == 2
    assert {name: len(texts) for name, texts in first["summaries"].items()} == dict.fromkeys(("beam", *STOCHASTIC), 2)
    assert list(found["results"][1]["summaries"]) == ["beam"]
    assert ("training mle, seed 0", 2) in steps
    assert ("training selector, seed 1", 1) in steps
    assert json.loads((tmp_path / "abstracts.json").read_text())["results"] == found["results"]
    steps.clear()
    again = summarization.run_plan(plan, tmp_path, lambda what, done, total: steps.append(what))
    assert (again["results"], steps) == (found["results"], [])
    other = replace(plan, choose=3)
    with pytest.raises(ValueError, match=r"results of other settings \(its choose is another\)"):
        summarization.run_plan(other, tmp_path)


def test_a_given_beta_is_not_chosen(plan, tmp_path):
    one = replace(plan, tasks=plan.tasks[:1], objectives=("sg=0.8",), betas={"sg=0.8": 1.5})
    (result,) = summarization.run_plan(one, tmp_path)["results"]
    assert result["evaluation"]["length_normalisation"] == {"beta": 1.5, "rule": "given"}
    assert result["evaluation"]["strategies"] == {"beam": "beam=5,gnmt=1.5,block_words=3"}


def result(objective, *scores, seed=0, texts=()):
    validation = {str(place): score for place, score in enumerate(scores)}
    evaluation = {"length_normalisation": {"beta": 1.0, "validation_scores": validation}}
    return {
        "objective": objective, "seed": seed, "evaluation": evaluation, "trained": {"steps": 1},
        "summaries": {"beam": list(texts)},
    }  # fmt: skip


def test_strengths_are_chosen_by_the_first_seeds_validation_score():
    results = [result("mle", 30.0), result("ul=0.5", 9.0, 11.0), result("ul=1.0", 10.0), result("sg=0.8", 7.0)]
    chosen = summarization.choose_strengths([*results, result("sg=0.2", 8.0), result("sg=0.8", 99.0, seed=1)])
    assert chosen["ul"] == {"strength": 0.5, "validation_scores": {"0.5": 11.0, "1.0": 10.0}}
    assert chosen["sg"]["strength"] == 0.2
    assert summarization.choose_strengths([result("sg=0.8")]) == {"sg": {"strength": 0.8, "validation_scores": {}}}


class Pool:
    """Runs what it is given at once."""

    def submit(self, function, job):
        from concurrent.futures import Future

        future = Future()
        try:
            future.set_result(function(job))
        except Exception as error:
            future.set_exception(error)
        return future


def test_a_failed_run_is_noted_and_ends_no_other(tmp_path, monkeypatch):
    def run(job):
        if job.objective == "ul=0.5":
            raise ValueError("out of memory")
        return result(job.objective, 5.0)

    monkeypatch.setattr(summarization, "run_job", run)
    ledger = summarization.Ledger(tmp_path / "abstracts.json", {"experiment": "abstracts"})
    jobs = [summarization.Job(None, one, 0, "", None, 1, None) for one in ("sg=0.8", "ul=0.5", "mle")]
    with pytest.raises(
        ValueError, match=r"1 of 3 runs failed, the others are kept \(ul=0.5 seed 0: ValueError\('out of"
    ):
        ledger.run_in(Pool(), jobs)
    found = json.loads((tmp_path / "abstracts.json").read_text())
    assert [one["objective"] for one in found["results"]] == ["mle", "sg=0.8"]
    assert found["failed"] == [{"objective": "ul=0.5", "seed": 0, "error": "ValueError('out of memory')"}]
    assert found["chosen"]["sg"]["strength"] == 0.8


PAIRS = [Pair("1", ("a b c d e f g h",), ("a b c d",)), Pair("2", ("a b c d e f g h",), ("e f g h",))]
EXPERIMENT = {
    "experiment": "abstracts", "settings": {}, "environment": {"gpu": "none"}, "seconds": 3.0, "test": ["1", "2"],
    "chosen": {"sg": {"strength": 0.8, "validation_scores": {"0.8": 1.0}}},
    "results": [
        result("mle", 1.0, texts=["a b c d", "x y z w"]),
        result("mle", 1.0, seed=1, texts=["x y z w", "x y z w"]),
        result("sg=0.8", 1.0, texts=["a b c d", "e f g h"]),
    ],
}  # fmt: skip


def test_scores_over_seeds_and_differences_by_hand():
    """MLE: ROUGE-1 of 50 and 0 with its two seeds, so text 1 has 50 on average and text 2 has 0; SG has 100 each."""
    scored = summarization_scores.score_experiment(EXPERIMENT, PAIRS, mover=False)
    mle, sg = scored["rows"]["MLE"], scored["rows"]["SG γ=0.8"]
    assert mle["seeds"] == 2
    assert mle["figures"]["rouge_1"]["mean"] == pytest.approx(25)
    assert mle["figures"]["rouge_1"]["deviation_over_seeds"] == pytest.approx(np.std([50, 0], ddof=1))
    assert sg["figures"]["rouge_1"] == {
        "mean": pytest.approx(100),
        "low": pytest.approx(100),
        "high": pytest.approx(100),
    }
    gain = sg["minus_mle"]["rouge_1"]  # of the first seed, which both have: 0 for text 1 and 100 for text 2
    assert (gain["mean"], gain["low"], gain["high"]) == pytest.approx((50, 0, 100))
    assert "deviation_over_seeds" not in gain
    assert "minus_mle" not in mle


def test_differences_vary_over_seeds():
    """SG's second seed says nothing right: +50 with the first, 0 with the second."""
    second = result("sg=0.8", 1.0, seed=1, texts=["x y z w", "x y z w"])
    scored = summarization_scores.score_experiment(
        {**EXPERIMENT, "results": [*EXPERIMENT["results"], second]}, PAIRS, mover=False
    )
    gain = scored["rows"]["SG γ=0.8"]["minus_mle"]["rouge_1"]
    assert gain["mean"] == pytest.approx(25)
    assert gain["deviation_over_seeds"] == pytest.approx(50 / 2**0.5)


def test_articles_that_are_not_there_are_told():
    with pytest.raises(ValueError, match=r"1 of 2 articles is not there \(2, …\)"):
        summarization_scores.score_experiment(EXPERIMENT, PAIRS[:1], mover=False)


def test_scores_are_made_again_only_where_runs_were_added(tmp_path, monkeypatch):
    made = []

    def score(experiment, pairs, device="cpu"):
        made.append(len(experiment["results"]))
        runs = [{"objective": o["objective"], "seed": o["seed"], **o["trained"]} for o in experiment["results"]]
        return {"runs": runs, "made": len(made)}

    monkeypatch.setattr(summarization_scores, "score_experiment", score)
    fewer = {**EXPERIMENT, "results": EXPERIMENT["results"][:2]}
    found = [
        summarization_scores.scores_beside(tmp_path / "s.json", one, lambda: PAIRS)["made"]
        for one in (fewer, fewer, EXPERIMENT, EXPERIMENT)
    ]
    assert (found, made) == ([1, 1, 2, 2], [2, 3])
