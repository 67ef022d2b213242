"""What is said of progress where there is no terminal."""

from scalegrad.cli.progress import bars


def test_without_a_terminal_long_work_says_what_begins(capsys):
    with bars(log=True) as told:
        for done in range(3):
            told(f"training mle · loss {done}", done, 3)
        told("greedy", 0, 2)
        told("greedy", 2, 2)
        told("greedy", 0, 2)  # of the next model
    assert capsys.readouterr().err.splitlines() == ["training mle …", "greedy …", "greedy …"]
    with bars() as told:
        assert told is None
