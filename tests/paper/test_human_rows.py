"""The human rows of the paper's tables, to the last digit, from the embedded text."""

import pytest

from paper.human_rows import BLOCKS_100, BLOCKS_150, LANGUAGE_MODELLING, human_figures, human_rows
from paper.outcome import Setup


@pytest.mark.parametrize(
    ("split", "expected"),
    [
        (
            "test",
            {
                LANGUAGE_MODELLING: {
                    "rep_window_16": 0.17747,
                    "rep_window_32": 0.28479,
                    "rep_window_128": 0.47993,
                    "uniq": 18_271,
                },
                BLOCKS_150: {"rep_1": 0.38180, "rep_2": 0.09594, "rep_3": 0.03698, "uniq_w": 27_546},
                BLOCKS_100: {"rep_1": 0.32529, "rep_2": 0.07591, "rep_3": 0.02972, "uniq_w": 27_598},
            },
        ),
        # Loops over Python sets and tuples gave these, from the same files.
        (
            "valid",
            {
                LANGUAGE_MODELLING: {
                    "rep_window_16": 0.17291,
                    "rep_window_32": 0.27764,
                    "rep_window_128": 0.47033,
                    "uniq": 17_680,
                },
                BLOCKS_150: {"rep_1": 0.37437, "rep_2": 0.08719, "rep_3": 0.03063, "uniq_w": 26_041},
                BLOCKS_100: {"rep_1": 0.31771, "rep_2": 0.06771, "rep_3": 0.02390, "uniq_w": 26_068},
            },
        ),
    ],
)
def test_exact_figures(split, expected):
    figures = human_figures(split)
    for taken_on, row in expected.items():
        assert {name: round(figures[taken_on][name], 5) for name in row} == row


def test_rows_beside_the_papers(tmp_path):
    """Test rows print the paper's figures; the 100-token rows have none of the paper's to be held against."""
    tables = {shown.title: shown.comparison for shown in human_rows(Setup("smoke", tmp_path)).tables}
    here, paper = tables[BLOCKS_150].systems[:2]
    assert (here.label, paper.label) == ("test", "test, in the paper")
    assert {name: round(here.figures[name], 3) for name in ("rep_1", "rep_2", "rep_3")} == {
        name: paper.figures[name] for name in ("rep_1", "rep_2", "rep_3")
    }
    assert paper.figures["uniq_w"] == round(here.figures["uniq_w"], -1)
    assert [row.label for row in tables[BLOCKS_100].systems] == ["test", "valid"]
