"""Runs to be trained and measured: what is asked of each, and what is left to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scalegrad.lab import jobs
from scalegrad.lab.jobs import Job, Scoring, run_jobs
from scalegrad.runs import Run, only_here
from scalegrad.tasks.open_ended.config import TrainConfig


def test_a_folder_has_one_owner(tmp_path):
    job = Job(TrainConfig("no model", ("no text",)))
    with only_here(tmp_path), pytest.raises(BlockingIOError, match=f"another process is at work in {tmp_path}: wait"):
        run_jobs([job], tmp_path, devices=())
    with pytest.raises((OSError, ValueError), match="no model"):  # free again: the job itself is looked at
        run_jobs([job], tmp_path, devices=())
    assert run_jobs([], tmp_path) == []


def test_what_several_ask_of_a_run_is_asked_once_in_their_order():
    config = TrainConfig("m", ("t",))
    test, valid, more = Scoring("wikitext-103"), Scoring("wikitext-103:valid"), Scoring("wikitext-103", ("beam=3",))
    other = replace(config, settings=replace(config.settings, seed=1))
    runs = jobs.merged([Job(config, (test, valid)), Job(other, (test,)), Job(config, (test, more)), Job(other)])
    assert runs == [Job(config, (test, valid, more)), Job(other, (test,))]


def test_predictions_under_a_penalty_are_made_where_texts_are_there_already(tiny, tmp_path):
    """Texts under two penalties first, without predictions; then both, and one strategy more: nothing is left over."""
    model, tokenizer = tiny
    run = Run.create(tmp_path / "run", {"objective": "mle"})
    texts = Scoring("wikitext-103:valid", ("greedy", "greedy,gamma=0.5"), chunks=0, prefixes=1, new_tokens=5)
    texts.measure(run, model, tokenizer, overwrite=False, progress=None)
    assert texts.is_done(run)
    both = replace(texts, strategies=(*texts.strategies, "greedy,gamma=0.2"), chunks=1)
    assert not both.is_done(run)
    both.measure(run, model, tokenizer, overwrite=False, progress=None)
    assert both.is_done(run)
    ppl = {row.penalty: row.value for row in run.rows() if row.metric == "ppl"}
    assert ppl["gamma=0.2"] > ppl["gamma=0.5"] > ppl[None]
    texts = {(row.decoding, row.penalty) for row in run.rows() if row.metric == "uniq_w" and row.decoding}
    assert texts == {("greedy", None), ("greedy", "gamma=0.5"), ("greedy", "gamma=0.2")}
