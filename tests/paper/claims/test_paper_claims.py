"""Every claim of the paper has a verdict with a run behind it, and the page says so."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from paper.claims.__main__ import page
from paper.claims.catalogue import CLAIMS, SETTINGS
from paper.claims.stored import illustrations, read_results
from paper.claims.verdicts import judge
from paper.printed import TABLES

FOLDER = Path(__file__).parents[3] / "docs" / "results"

# What takes people, or a text that is not to be had. Everything else must have been tested.
NOT_TESTABLE_HERE = {
    "ptb-below-likelihood",
    "ptb-beats-unlikelihood",
    "preferred-to-likelihood",
    "preferred-to-unlikelihood",
    "agreement-against-likelihood",
    "agreement-against-unlikelihood",
}


@pytest.fixture(scope="module")
def results():
    return read_results(FOLDER) | illustrations()


@pytest.fixture(scope="module")
def verdicts(results):
    return [judge(claim, results) for claim in CLAIMS]


def test_every_claim_has_a_name_of_its_own():
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS) == 59


def test_every_claim_has_a_verdict_with_a_run_behind_it(verdicts):
    assert {verdict.claim.id for verdict in verdicts if verdict.run is None} == NOT_TESTABLE_HERE


def test_the_results_of_every_experiment_with_claims_are_stored(results):
    stored = {name for one in results.values() if one.scale != "smoke" for name in one.experiments}
    assert {claim.experiment for claim in CLAIMS if not claim.not_tested} <= stored


def test_what_is_not_tested_says_why():
    said = {claim.id: claim.not_tested for claim in CLAIMS if claim.not_tested}
    assert set(said) == NOT_TESTABLE_HERE
    assert [name for name, why in said.items() if not re.fullmatch(r"[A-Z].{30,}\.", why)] == []


def test_every_experiment_exists():
    from paper.catalogue import EXPERIMENTS

    names = {experiment.name for experiment in EXPERIMENTS}
    assert {name for claim in CLAIMS for name in (claim.experiment, *claim.also)} - names <= {"demo"}


def test_claims_of_every_table_with_results_and_of_the_figures():
    """No table of results is without a claim, and a claim that names one holds its own figures against it."""
    told = {int(number) for claim in CLAIMS for names in re.findall(r"tables? ([\d, and]+)", claim.where)
            for number in re.findall(r"\d+", names)}  # fmt: skip
    assert {1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 17, 18} <= told
    assert {claim.table for claim in CLAIMS if claim.table} == {*TABLES, 3}


def test_the_paper_s_tables_can_answer_every_claim_that_names_one(verdicts):
    assert [v.claim.id for v in verdicts if v.printed is not None and v.printed.why] == []


def test_the_numbers_of_the_text_against_the_tables(verdicts):
    """By hand, from the pages of the paper: what its sentences state, what its tables give."""
    numbers = {v.claim.id: v.printed.stated for v in verdicts if v.printed and v.printed.stated}
    assert {name: (stated.text, round(stated.size.value, 4)) for name, stated in numbers.items()} == {
        "perplexity-below-unlikelihood": ("11%", 0.1157),
        "rep-16-below-unlikelihood": ("1%", 0.015),
        "rep-32-below-unlikelihood": ("2%", 0.024),
        "rep-128-below-unlikelihood": ("4%", 0.036),
        "more-distinct-tokens": ("3%", 0.0326),
        "more-distinct-words": ("5.5k", 5420),
        "preferred-to-likelihood": ("84.0%", 0.84),
        "preferred-to-unlikelihood": ("70.5%", 0.705),
        "agreement-against-likelihood": ("0.78", 0.7812),
        "agreement-against-unlikelihood": ("0.64", 0.6404),
        "captions-with-blocking": ("1.85", 1.85),
        "equal-repetition-at-half": ("1.35", 1.38),
        "equal-repetition-at-one": ("2.58", 2.6208),
        "equal-perplexity-repetition": ("3.82%", 0.039),
        "equal-perplexity-tokens": ("1.11k", 1280),
    }


def test_what_the_paper_s_own_tables_contradict(verdicts):
    wrong = {v.claim.id for v in verdicts if v.printed is not None and v.printed.word != "holds"}
    assert wrong == {"imdb-beats-unlikelihood", "summaries-unlikelihood-beats-likelihood", "small-beam-does-not-help"}


def test_what_the_gradients_say(verdicts):
    """Exact, so no seed decides: all of section 3 holds but that unlikelihood lowers the target."""
    words = {v.claim.id: v.word for v in verdicts if v.claim.experiment in ("gradients", "novel-set")}
    assert {name for name, word in words.items() if word != "holds"} == {"unlikelihood-lowers-the-target"}
    assert words["unlikelihood-lowers-the-target"] == "does not hold"
    assert len(words) == 7


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("strong-unlikelihood-costs-most", "does not hold"),  # γ = 0.2 costs more
        ("equal-perplexity-repetition", "does not hold"),  # the two do not have one perplexity
        ("equal-perplexity-tokens", "does not hold"),
        ("equal-repetition-at-half", "undecided"),  # two grids of the same model disagree
        ("beam-search-does-not-help", "one seed"),
    ],
)
def test_words_of_claims_that_were_judged_too_kindly(verdicts, name, word):
    assert {v.claim.id: v.word for v in verdicts}[name] == word


def test_what_holds_has_several_seeds_behind_it(verdicts):
    """Or none at all, where the result is exact."""
    exact = {"gradients", "novel-set"}
    for verdict in verdicts:
        if verdict.word in ("holds", "holds, by less", "holds in part") and verdict.run.results.name not in exact:
            assert min(check.seeds or 3 for check in verdict.run.checks) >= 3, verdict.claim.id


def test_every_run_behind_a_verdict_says_how_it_differs_from_the_paper(verdicts):
    behind = {verdict.run.results.name for verdict in verdicts if verdict.run}
    assert behind <= set(SETTINGS)
    same_model = {name for name in behind if SETTINGS[name][0].startswith("yes")}
    assert same_model == set()  # nobody here has trained GPT-2 medium on WikiText-103
    assert re.match(r"no: .*grammar", SETTINGS["captioning"][1])
    text = (FOLDER / "claims.md").read_text()
    assert "| model and data as in the paper? |" in text


def test_the_page_is_what_the_command_writes(verdicts):
    made = page(verdicts, SETTINGS)
    assert (FOLDER / "claims.md").read_text() == made, "run python -m paper.claims"


def test_the_readme_counts_them_right(verdicts):
    """Every number of its sentence, and that the model is never the paper's."""
    words = Counter(verdict.word for verdict in verdicts)
    readme = " ".join((FOLDER.parents[1] / "README.md").read_text().split())
    sentence = re.search(r"Of \d+ claims taken from the paper.*?\. ", readme)[0]
    counts = {
        r"Of (\d+) claims": len(CLAIMS),
        r"(\d+) were tested": len(CLAIMS) - words["not tested"],
        r"(\d+) hold": words["holds"],
        r"(\d+) in part or by less": words["holds in part"] + words["holds, by less"],
        r"(\d+) (?:\w+ )*one seed": words["one seed"],
        r"(\d+) are undecided": words["undecided"],
        r"(\d+) do not hold": words["does not hold"],
        r"the other (\d+)": words["not tested"],
    }
    assert {pattern: int(re.search(pattern, sentence)[1]) for pattern in counts} == counts
    assert "none with the paper's model" in sentence
