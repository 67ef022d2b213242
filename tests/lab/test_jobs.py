"""Processes that work on jobs: one folder has one owner, and nobody outlives who started him."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from scalegrad.lab import jobs
from scalegrad.lab.jobs import Job, Scoring, run_jobs
from scalegrad.runs import Run, only_here
from scalegrad.tasks.open_ended.config import TrainConfig

ORPHAN = """
import multiprocessing, time
from concurrent.futures import ProcessPoolExecutor
from scalegrad.lab.jobs import _take_device
import os
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    free = context.Queue()
    free.put(("", 1))
    with ProcessPoolExecutor(1, context, _take_device, (free,)) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        pool.submit(time.sleep, 600).result()
"""


def test_a_folder_has_one_owner(tmp_path):
    job = Job(TrainConfig("no model", ("no text",)))
    with only_here(tmp_path), pytest.raises(BlockingIOError, match=f"another process is at work in {tmp_path}: wait"):
        run_jobs([job], tmp_path, devices=())
    with pytest.raises((OSError, ValueError), match="no model"):  # free again: the job itself is looked at
        run_jobs([job], tmp_path, devices=())
    assert run_jobs([], tmp_path) == []


def alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc on this system")
def test_a_process_ends_with_the_one_that_started_it(tmp_path):
    """Killed without a chance to tidy up, as by a full machine: what it started must not write on."""
    (tmp_path / "orphan.py").write_text(ORPHAN)
    parent = subprocess.Popen([sys.executable, str(tmp_path / "orphan.py")], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    assert alive(child)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    began = time.monotonic()
    while alive(child) and time.monotonic() - began < 20:
        time.sleep(0.1)
    assert not alive(child)


def test_what_several_ask_of_a_run_is_asked_once_in_their_order():
    config = TrainConfig("m", ("t",))
    test, valid, more = Scoring("wikitext-103"), Scoring("wikitext-103:valid"), Scoring("wikitext-103", ("beam=3",))
    other = replace(config, settings=replace(config.settings, seed=1))
    found = jobs.merged([Job(config, (test, valid)), Job(other, (test,)), Job(config, (test, more)), Job(other)])
    assert found == [Job(config, (test, valid, more)), Job(other, (test,))]


def test_one_named_device_is_used_by_a_process_of_its_own(tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(jobs, "_in_parallel", lambda waiting, folder, devices, *rest: told.append(list(devices)))
    monkeypatch.setattr(jobs.Run, "open", lambda path: path)
    run_jobs([Job(TrainConfig("m", ("t",)))], tmp_path, devices=("1",))
    assert told == [["1"]]  # in this process it would be GPU 0


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
    (found,) = run.load("evaluation").values()
    assert list(found["completion"]) == ["greedy", "greedy,gamma=0.5", "greedy,gamma=0.2"]
    assert found["penalised"]["gamma=0.2"]["ppl"] > found["penalised"]["gamma=0.5"]["ppl"]
