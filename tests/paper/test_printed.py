"""The paper's tables, spot-checked against figures typed by hand from its pages."""

import pytest

from paper.printed import JUDGED, SETTINGS, TABLES, printed

MLE, UL, SG = ("mle", None), ("ul", 1.0), ("sg", 0.2)
SPOTS = [
    (1, MLE, None, None, "ppl", 13.241),
    (1, UL, None, None, "rep_window_32", 0.341),
    (1, SG, None, None, "uniq_w", 22250),
    (1, ("human", None), None, None, "uniq", 18270),
    (2, MLE, None, None, "uniq", 5600),
    (2, SG, None, None, "rep_window_128", 0.426),
    (2, ("human", None), None, None, "uniq_w", 11320),
    (4, ("sg", 0.5), None, None, "cider", 19.42),
    (4, ("ul", 0.5), "greedy", "soft_block=3", "cider", 22.25),
    (17, SG, "beam=10", None, "rep_2", 0.298),
    (17, SG, "top_p=0.9", None, "uniq_w", 52760),
    (17, UL, "top_k=40", None, "rep_3", 0.021),
    (17, MLE, "beam=6", None, "uniq_w", 6110),
    (8, MLE, "top_k=100", None, "rouge_1", 40.86),
    (9, MLE, "greedy", "soft_block=3", "rep_3", 0.094),
    (11, ("ul", 1.5), None, None, "ppl", 19.63),
    (11, ("sg", 0.8), None, None, "rep_1", 0.625),
    (12, SG, None, None, "ppl", 110.451),
    (12, ("human", None), None, None, "rep_3", 0.009),
    (18, MLE, "top_p=0.9", None, "cider", 18.67),
]


def row_of(table, system, decoding, penalty, metric, corpus=None):
    (row,) = [
        row for row in printed(table, corpus)
        if (row.objective, row.strength, row.decoding, row.penalty, row.metric) == (*system, decoding, penalty, metric)
    ]  # fmt: skip
    return row


def value(table, system, metric, decoding=None, corpus=None):
    return row_of(table, system, decoding, None, metric, corpus).value


@pytest.mark.parametrize(("table", "system", "decoding", "penalty", "metric", "number"), SPOTS)
def test_spots(table, system, decoding, penalty, metric, number):
    row = row_of(table, system, decoding, penalty, metric)
    assert (row.value, row.run) == (number, "paper")


def test_a_table_of_two_corpora_and_what_raters_said():
    assert value(5, ("sg", 0.8), "rouge_l", corpus="cnn/dm") == 39.25
    assert value(5, ("ul", 0.5), "moverscore_1", corpus="nyt50") == 28.50
    assert [(pair.second, pair.win_rate, pair.ac1) for pair in JUDGED] == [("MLE", 0.84, 0.78), ("UL", 0.705, 0.64)]


def test_sizes():
    """Systems and metrics of each table."""
    shapes = {
        number: (
            len({(row.corpus, row.objective, row.strength, row.decoding, row.penalty) for row in table.rows}),
            len({row.metric for row in table.rows}),
        )
        for number, table in TABLES.items()
    }
    assert shapes == {
        1: (4, 9), 2: (4, 9), 4: (6, 1), 5: (6, 4), 8: (5, 2), 9: (5, 3), 11: (8, 9), 12: (4, 9), 17: (17, 5),
        18: (5, 1),
    }  # fmt: skip
    assert not [row for row in printed(12) if (row.objective, row.metric) == ("human", "ppl")]
    assert (row_of(1, UL, None, None, "rep_3").sd, row_of(1, UL, None, None, "rep_3").n) == (3e-4, 3)
    assert row_of(1, MLE, None, None, "uniq_w").sd == 100  # printed as 16.83k ± 1e-1
    assert {(row.corpus, row.split) for row in printed(11)} == {("wikitext-103", "valid")}


def test_what_the_paper_says_of_its_own_tables():
    """Its claims follow from the figures stored: 11% lower perplexity than UL, 5.5k more words than MLE, …"""
    assert 1 - value(1, SG, "ppl") / value(1, UL, "ppl") == pytest.approx(0.116, abs=0.001)
    lower = [value(1, UL, f"rep_window_{l}") - value(1, SG, f"rep_window_{l}") for l in (16, 32, 128)]  # "1%, 2%, 4%"
    assert lower == pytest.approx([0.015, 0.024, 0.036])
    assert value(1, SG, "uniq_w") - value(1, MLE, "uniq_w") == pytest.approx(5420)
    half = value(11, ("ul", 0.5), "ppl") - value(11, ("sg", 0.5), "ppl")
    assert half == pytest.approx(1.38)  # section 5.3 says 1.35
    for system in (SG, UL, MLE):  # rows that two tables share say the same in both
        for metric in ("rep_1", "rep_2", "uniq_w"):
            assert value(17, system, metric, "greedy") == value(1, system, metric)


def test_settings():
    assert SETTINGS["open-ended"]["sg"] == {"learning_rate": 2e-5, "batch": 300, "gamma": (0.2, 0.5, 0.8)}
    assert SETTINGS["cnn/dm"]["sizes"]["train"] == 287_227
    assert SETTINGS["nyt50"]["mle"]["beta"] == 1.5
    assert SETTINGS["captioning"]["ul"]["beta"] == (0.0, 0.3)
