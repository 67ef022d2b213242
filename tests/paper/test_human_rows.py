"""The human rows of the paper's tables, to the last digit, from the embedded text."""

import pytest

from paper.human_rows import BLOCKS_100, BLOCKS_150, LANGUAGE_MODELLING, corpus_rows, rows_as_dict


@pytest.fixture(scope="module")
def rows():
    return {(row.split, row.taken_on): row for row in corpus_rows("wikitext-103")}


@pytest.mark.parametrize(
    ("split", "taken_on", "expected"),
    [
        (
            "test",
            LANGUAGE_MODELLING,
            {"rep_window_16": 0.17747, "rep_window_32": 0.28479, "rep_window_128": 0.47993, "uniq": 18_271},
        ),
        ("test", BLOCKS_150, {"rep_1": 0.38180, "rep_2": 0.09594, "rep_3": 0.03698, "uniq_w": 27_546}),
        ("test", BLOCKS_100, {"rep_1": 0.32529, "rep_2": 0.07591, "rep_3": 0.02972, "uniq_w": 27_598}),
        # Loops over Python sets and tuples gave these, from the same files.
        (
            "valid",
            LANGUAGE_MODELLING,
            {"rep_window_16": 0.17291, "rep_window_32": 0.27764, "rep_window_128": 0.47033, "uniq": 17_680},
        ),
        ("valid", BLOCKS_150, {"rep_1": 0.37437, "rep_2": 0.08719, "rep_3": 0.03063, "uniq_w": 26_041}),
        ("valid", BLOCKS_100, {"rep_1": 0.31771, "rep_2": 0.06771, "rep_3": 0.02390, "uniq_w": 26_068}),
    ],
)
def test_exact_figures(rows, split, taken_on, expected):
    assert {name: round(value, 5) for name, value in rows[split, taken_on].figures.items()} == expected


def test_gaps_to_the_paper(rows):
    """Test rows print the paper's figures; so does validation, but for its completion row."""
    for place in [("test", LANGUAGE_MODELLING), ("test", BLOCKS_150), ("valid", LANGUAGE_MODELLING)]:
        assert rows[place].gap == pytest.approx(dict.fromkeys(rows[place].figures, 0.0), abs=1e-9)
    gap = {"rep_1": -0.002, "rep_2": -0.010, "rep_3": -0.001, "uniq_w": -1_590}
    assert rows["valid", BLOCKS_150].gap == pytest.approx(gap, abs=1e-9)
    assert rows["test", BLOCKS_100].gap is None


def test_rows_as_json(rows):
    first = rows_as_dict(list(rows.values()))[0]
    assert first["split"] == "test"
    assert first["paper"]["uniq"] == 18_270


def test_other_corpora_are_refused():
    with pytest.raises(
        ValueError, match="corpus is 'ptb'; the human rows that can be taken here are those of wikitext"
    ):
        corpus_rows("ptb")
