"""What is said of progress where there is no terminal."""

import pytest

from scalegrad.runs import terminal


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass when the test says so."""
    now = [100.0]
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now[0])
    return now


def lines(capsys):
    return capsys.readouterr().err.splitlines()


def test_without_a_terminal_a_line_comes_every_20_seconds_and_at_the_end(capsys, clock):
    with terminal.bars() as progress:
        for step in range(1, 101):
            clock[0] += 1
            progress(f"training · loss {100 - step}", step, 100)
    assert lines(capsys) == [f"training · loss {100 - step}: {step} of 100" for step in (20, 40, 60, 80, 100)]


def test_without_a_terminal_waiting_is_one_line(capsys):
    with terminal.status("loading base"):
        assert lines(capsys) == ["loading base"]
    assert lines(capsys) == []


def test_work_that_is_over_soon_is_not_spoken_of(capsys, clock):
    with terminal.bars() as progress:
        for step in range(1, 4):
            clock[0] += 0.5
            progress("greedy", step, 3)
        progress("nothing", 0, 0)
        assert lines(capsys) == []
        clock[0] += 3
        progress("beam", 1, 1)  # it began where the last work ended
        assert lines(capsys) == ["beam: 1 of 1"]


def test_the_same_work_of_the_next_model_starts_anew(capsys, clock):
    with terminal.bars() as progress:
        for _ in range(2):
            for step in range(1, 4):
                clock[0] += 15
                progress("greedy", step, 3)
    assert lines(capsys) == ["greedy: 2 of 3", "greedy: 3 of 3"] * 2


def test_an_amount_that_nobody_knows_is_not_named(capsys, clock):
    with terminal.bars() as progress:
        clock[0] += 21
        progress("reading standard input (bytes)", 2048, 0)
    assert lines(capsys) == ["reading standard input (bytes): 2,048"]
