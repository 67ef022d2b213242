"""The experiment: one job at a time here, what it chooses, and tables whose figures are worked out by hand."""

import contextlib
import json
from dataclasses import replace

import numpy as np
import pytest
from tests.tiny_bert import save_tiny_bert

from scalegrad.data.pairs import Pair
from scalegrad.lab import summarization, summarization_scores
from scalegrad.tasks.summarization.evaluation import Evaluation
from scalegrad.tasks.summarization.writing import STOCHASTIC


def test_a_job_from_training_to_summaries(tmp_path):
    bert = save_tiny_bert(tmp_path / "bert", positions=192)
    task = summarization.abstracts_task(str(bert), seed=0, quick=True, limit=8)
    task = replace(task, recipe=replace(task.recipe, writer=replace(task.recipe.writer, max_steps=2, evaluate_every=2)))
    how = Evaluation(betas=(0.0, 1.0), max_new_tokens=4, mover=False, batch=8)
    result = summarization.run_job(summarization.Job(task, "mle", 0, str(tmp_path / "out"), how, 2, 2))
    assert result["trained"]["steps"] == 2
    assert {name: len(texts) for name, texts in result["summaries"].items()} == dict.fromkeys(("beam", *STOCHASTIC), 2)
    assert summarization.validation_score(result) == max(
        result["evaluation"]["length_normalisation"]["validation_scores"].values()
    )
    json.dumps(result)


def result(objective, *scores, seed=0, texts=()):
    validation = {str(place): score for place, score in enumerate(scores)}
    evaluation = {"length_normalisation": {"beta": 1.0, "validation_scores": validation}}
    return {
        "objective": objective, "seed": seed, "evaluation": evaluation, "trained": {"steps": 1},
        "summaries": {"beam": list(texts)},
    }  # fmt: skip


def test_strengths_are_chosen_by_the_validation_score():
    results = [result("mle", 30.0), result("ul=0.5", 9.0, 11.0), result("ul=1.0", 10.0), result("sg=0.8", 7.0)]
    chosen = summarization.choose_strengths([*results, result("sg=0.2", 8.0)])
    assert chosen["ul"] == {"strength": 0.5, "validation_scores": {"0.5": 11.0, "1.0": 10.0}}
    assert chosen["sg"]["strength"] == 0.2


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
    ledger.run(Pool(), jobs)
    found = json.loads((tmp_path / "abstracts.json").read_text())
    assert [one["objective"] for one in found["results"]] == ["mle", "sg=0.8"]
    assert found["failed"] == [{"objective": "ul=0.5", "seed": 0, "error": "ValueError('out of memory')"}]
    assert found["chosen"]["sg"]["strength"] == 0.8


@pytest.mark.parametrize("failed", [False, True])
def test_finished_runs_stay_where_another_failed(tmp_path, monkeypatch, capsys, failed):
    def run(arguments, ledger):
        (tmp_path / "abstracts-runs" / "0").mkdir(parents=True)
        if failed:
            ledger.failed.append({"objective": "ul=0.5", "seed": 0, "error": "ValueError('out of memory')"})

    monkeypatch.setattr(summarization, "run_abstracts", run)
    with pytest.raises(SystemExit) if failed else contextlib.nullcontext():
        summarization.main(["abstracts", "--out", str(tmp_path)])
    assert len(json.loads(capsys.readouterr().out)["failed"]) == failed
    assert (tmp_path / "abstracts-runs" / "0").is_dir() == failed


def test_news_without_pairs_to_choose_by_are_refused(tmp_path):
    (tmp_path / "pairs.jsonl").write_text(json.dumps({"article": "A.", "highlights": "one"}) + "\n")
    with pytest.raises(ValueError, match="validation must be at least 1 pair, to choose by, not 0"):
        summarization._split_news(*[str(tmp_path / "pairs.jsonl")] * 2, str(tmp_path / "data"), 0, None)


def test_news_are_split_and_the_test_file_is_the_test_set(tmp_path):
    rows = [{"id": str(i), "article": f"A {i}.", "highlights": "one\ntwo"} for i in range(10)]
    for name, part in (("pairs", rows[:8]), ("held", rows[8:])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))
    folder = tmp_path / "data"
    summarization._split_news(str(tmp_path / "pairs.jsonl"), str(tmp_path / "held.jsonl"), str(folder), 3, None)
    task = summarization.news_task("model", str(folder), 0)
    assert [[pair.id for pair in task.pairs(split)] for split in ("train", "validation", "test")] == [
        ["0", "1", "2", "3", "4"],
        ["5", "6", "7"],
        ["8", "9"],
    ]
    assert task.pairs("test")[0].references == ("one\ntwo",)


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
    assert sg["minus_mle"]["rouge_1"]["mean"] == pytest.approx(75)
    assert (sg["minus_mle"]["rouge_1"]["low"], sg["minus_mle"]["rouge_1"]["high"]) == pytest.approx((50, 100))
    assert "minus_mle" not in mle
    page = summarization_scores.markdown({"abstracts": scored})
    assert "| MLE (2 seeds) | 25.0 (0.0–50.0) |" in page
    assert "| SG γ=0.8 | 42.19 | 19.53 | 39.25 | 20.23 |" in page
    assert "| MLE top_p=0.3 | 45.44 | 24.61 |" in page


def test_articles_that_are_not_there_are_told():
    with pytest.raises(ValueError, match=r"1 of the 2 articles are not there \(2, …\)"):
        summarization_scores.score_experiment(EXPERIMENT, PAIRS[:1], mover=False)


def test_scores_from_the_command_line(tmp_path, monkeypatch):
    monkeypatch.setattr(summarization_scores, "scitldr", lambda split: PAIRS)
    (tmp_path / "abstracts.json").write_text(json.dumps(EXPERIMENT))
    summarization_scores.main([str(tmp_path / "abstracts.json"), "--no-mover", "--out", str(tmp_path / "results")])
    assert json.loads((tmp_path / "results" / "summarization.json").read_text())["abstracts"]["test_texts"] == 2
    assert (tmp_path / "results" / "summarization.md").read_text().startswith("# Summarisation: results")
