"""Jobs: each is run once, a failure stops no other, and what is done is not done again."""

import os
import time
from functools import partial
from pathlib import Path

import pytest

from scalegrad.runs import Job, JobsFailed, run_jobs


def work(path, progress=None):
    with Path(path).open("a") as file:
        file.write(f"{os.getpid()}\n")
    if progress:
        progress(f"writing {Path(path).name}", 1, 1)


def fail(path, progress=None):
    work(path)
    raise ValueError("gamma is 7")


def die(path, progress=None):
    work(path)
    time.sleep(0.2)
    os._exit(1)


def jobs(folder, functions):
    paths = [folder / str(number) for number in range(len(functions))]
    return [
        Job(f"job-{path.name}", function, (str(path),), path.exists)
        for path, function in zip(paths, functions, strict=True)
    ]


@pytest.mark.parametrize("processes", [1, 2])
def test_a_failure_is_told_at_the_end_and_the_others_are_done(tmp_path, processes):
    with pytest.raises(JobsFailed, match=r"1 of 4 jobs failed.*job-1: gamma is 7") as caught:
        run_jobs(jobs(tmp_path, [work, fail, work, work]), tmp_path, processes=processes)
    assert list(caught.value.errors) == ["job-1"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "2", "3"]
    assert all(len(path.read_text().splitlines()) == 1 for path in tmp_path.iterdir()), "nothing ran twice"


def test_what_is_done_is_not_done_again(tmp_path):
    (tmp_path / "0").write_text("before\n")
    run_jobs(jobs(tmp_path, [work, work]), tmp_path)
    assert (tmp_path / "0").read_text() == "before\n"
    assert (tmp_path / "1").exists()


def test_processes_share_the_jobs_and_tell_how_far_they_are(tmp_path):
    states = []
    run_jobs(jobs(tmp_path, [work] * 4), tmp_path, processes=2, progress=lambda *state: states.append(state))
    assert os.getpid() not in {int(path.read_text()) for path in tmp_path.iterdir()}
    assert {("writing 0", 1, 1), ("writing 3", 1, 1), ("runs", 4, 4)} <= set(states)


def test_a_process_that_dies_is_a_failure_of_its_job(tmp_path):
    with pytest.raises(JobsFailed, match="ended from outside"):
        run_jobs(jobs(tmp_path, [die, work]), tmp_path, processes=2)


def test_two_jobs_of_one_name_are_refused(tmp_path):
    same = Job("job", partial(work, str(tmp_path / "a")))
    with pytest.raises(ValueError, match="named twice"):
        run_jobs([same, same], tmp_path / "out")
