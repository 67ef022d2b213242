"""What is said of progress where there is no terminal."""

from scalegrad.runs.terminal import bars


def test_without_a_terminal_a_line_is_printed_at_each_quarter(capsys):
    with bars() as told:
        for done in range(9):
            told(f"training mle · loss {9 - done}", done, 8)
        told("greedy", 0, 2)
        told("greedy", 2, 2)
        told("greedy", 0, 2)  # of the next model
        told("nothing", 0, 0)
    assert capsys.readouterr().err.splitlines() == [
        *(f"training mle · loss {9 - done}: {done} of 8" for done in (0, 2, 4, 6, 8)),
        "greedy: 0 of 2",
        "greedy: 2 of 2",
        "greedy: 0 of 2",
        "nothing: 0 of 0",
    ]
