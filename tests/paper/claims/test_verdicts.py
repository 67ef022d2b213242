"""What a claim's criteria give, case by case, on made-up results."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from paper.claims import __main__ as command
from paper.claims.catalogue import less, more, rising
from paper.claims.figures import Stated
from paper.claims.stored import Results, read_results
from paper.claims.table import Key, Table
from paper.claims.verdicts import Claim, judge
from scalegrad.results.comparison import System
from scalegrad.runs import Row, write_rows

MLE, SG, HUMAN = Key("mle"), Key("sg", 0.2), Key("human")


def system(key, figures, **others):
    return System(objective=key.objective, strength=key.strength, figures=figures, **others)


def results(*rows, name="wikitext", experiment=None, corpus="", scale="gpu", seeds=3):
    """Results of rows (key, figures, deviations)."""
    systems = [system(key, figures, deviations=deviations, runs=seeds) for key, figures, deviations in rows]
    return {name: Results(name, [experiment or name], {corpus: Table(systems)}, scale)}


def rows(mle, sg, deviation=0.0):
    return [(MLE, mle, dict.fromkeys(mle, deviation)), (SG, sg, dict.fromkeys(sg, deviation))]


def claim(decide, **given):
    return Claim(
        **{"id": "a", "says": "It is so.", "where": "section 1", "experiment": "wikitext", **given}, decide=decide
    )


def both_less(t):
    return rising(t, "rep_1 rep_2", SG, MLE)


def one_less(t):
    return [t(SG, "rep_1") < t(MLE, "rep_1")]


@pytest.mark.parametrize(
    ("sg", "word"),
    [((0.38, 0.3), "holds"), ((0.38, 0.7), "holds in part"), ((0.38, 0.4), "holds in part"),
     ((0.62, 0.7), "does not hold"), ((0.4, 0.7), "does not hold"), ((0.4, 0.6), "undecided")],
)  # fmt: skip
def test_words(sg, word):
    """MLE repeats .5 of each; 3 seeds that deviate by .05 on both rows: 2.78 standard errors are .113."""
    found = results(*rows({"rep_1": 0.5, "rep_2": 0.5}, dict(zip(("rep_1", "rep_2"), sg, strict=True)), 0.05))
    verdict = judge(claim(both_less), found)
    assert verdict.word == word
    assert verdict.run.results.name == "wikitext"
    assert verdict.printed is None


@pytest.mark.parametrize(
    ("words", "word"), [(8200, "holds"), (6400, "holds"), (6300, "holds, by less"), (900, "does not hold")]
)
def test_a_stated_size_must_be_reached(words, word):
    """Stated +5.5k: a unit of its last digit, 100, is allowed. MLE has 1,000 words."""
    wider = claim(lambda t: more("uniq_w", SG, MLE, "5.5k", t))
    assert judge(wider, results(*rows({"uniq_w": 1000}, {"uniq_w": words}))).word == word


def test_a_stated_size_within_the_deviation_is_reached():
    wider = claim(lambda t: more("uniq_w", SG, MLE, "5.5k", t))
    found = judge(wider, results(*rows({"uniq_w": 1000}, {"uniq_w": 6300}, deviation=100.0))).run
    assert (found.word, found.stated.size.value) == ("holds", 5300)
    assert found.stated.size.margin == pytest.approx(2.78 * 100 * (2 / 3) ** 0.5, rel=0.002)


def test_a_number_alone_is_right_or_wrong():
    alone = claim(lambda t: [Stated("0.66", t(MLE, "rep_1"))])
    assert judge(alone, results(*rows({"rep_1": 0.6699}, {}))).word == "holds"
    assert judge(alone, results(*rows({"rep_1": 0.6701}, {}))).word == "does not hold"


def test_the_paper_s_own_table_is_held_against_it():
    verdict = judge(claim(both_less, table=12), {})
    assert verdict.printed.word == "holds"
    assert [check.left for check in verdict.printed.checks] == [0.383, 0.142]
    assert (verdict.word, verdict.why) == ("not tested", "no stored results of wikitext yet")
    assert verdict.run is None


def test_what_decides_comes_first_and_the_rest_is_looked_at():
    good, bad = rows({"rep_1": 0.5, "rep_2": 0.5}, {"rep_1": 0.4, "rep_2": 0.4}), rows({"rep_1": 0.5}, {"rep_1": 0.6})
    found = {
        **results(*bad, name="demo"),
        **results(*good, name="wikitext-smollm2", experiment="wikitext"),
        **results(*rows({"rep_1": 0.5, "rep_2": 0.5}, {"rep_1": 0.6, "rep_2": 0.6}), name="wikitext"),
        **results(*good, name="other"),
    }
    verdict = judge(claim(both_less, also=["demo"]), found)
    assert [(run.results.name, run.word) for run in verdict.runs] == [
        ("wikitext", "does not hold"), ("wikitext-smollm2", "holds"), ("demo", "not tested"),
    ]  # fmt: skip
    assert verdict.word == "does not hold"
    assert verdict.runs[2].why == "no rep_2 in row SG γ=0.2"


def two_corpora(*seeds):
    """SG repeats less than MLE on IMDB, more on the Penn Treebank."""
    tables = {
        corpus: Table([system(MLE, {"rep_1": 0.5}, runs=runs), system(SG, {"rep_1": value}, runs=runs)])
        for corpus, value, runs in (("imdb", 0.4, seeds[0]), ("ptb test", 0.6, seeds[1]))
    }
    return {"wikitext": Results("wikitext", ["wikitext"], tables, "gpu")}


def test_a_corpus_with_several_seeds_is_looked_at_where_the_claim_s_own_has_one():
    lower = claim(one_less, table=2)
    verdict = judge(lower, two_corpora(3, 1))
    assert [(run.corpus, run.word) for run in verdict.runs] == [("ptb test", "undecided"), ("imdb", "holds")]
    assert verdict.word == "holds"
    assert [run.corpus for run in judge(lower, two_corpora(1, 1)).runs] == ["ptb test"]


def test_a_table_of_the_corpus_or_each_there_is():
    found = two_corpora(3, 3)
    of_corpus = judge(claim(one_less, table=2), found)
    assert [(run.corpus, run.word) for run in of_corpus.runs] == [("ptb test", "does not hold")]
    of_each = judge(claim(one_less), found)
    assert [(run.corpus, run.word) for run in of_each.runs] == [
        ("imdb", "holds"),
        ("ptb test", "does not hold"),
    ]


@pytest.mark.parametrize(("sg", "word"), [(0.4, "one seed"), (0.6, "undecided")])
def test_one_seed_is_no_verdict(sg, word):
    """Nobody knows what another training would give, so the best word is "one seed", whichever way it comes out."""
    verdict = judge(claim(one_less), results(*rows({"rep_1": 0.5}, {"rep_1": sg}), seeds=1))
    assert verdict.word == word


def test_one_row_with_one_seed_is_enough():
    mle, sg = system(MLE, {"rep_1": 0.5}, runs=1), system(SG, {"rep_1": 0.4}, deviations={"rep_1": 0.001}, runs=3)
    found = {"wikitext": Results("wikitext", ["wikitext"], {"": Table([mle, sg])})}
    assert judge(claim(one_less), found).word == "one seed"


def test_human_text_and_exact_results_have_no_seeds():
    people = system(HUMAN, {"rep_1": 0.3})
    sg = system(SG, {"rep_1": 0.4}, deviations={"rep_1": 0.001}, runs=3)
    found = {"wikitext": Results("wikitext", ["wikitext"], {"": Table([people, sg])})}
    assert judge(claim(lambda t: [t(HUMAN, "rep_1") < t(SG, "rep_1")]), found).word == "holds"
    exact = {"set": Results("set", ["wikitext"], {"": Table([system(MLE, {"rep_1": 0.3}, runs=0)])})}
    assert judge(claim(lambda t: [t(MLE, "rep_1") < 0.4]), exact).word == "holds"


LOWER = {"decide": one_less, "also": ["demo"]}


def two_runs(first, second, seeds=(3, 3)):
    """The same claim held against two results, in each of which MLE repeats .5."""
    return results(*rows({"rep_1": 0.5}, {"rep_1": first}, 0.001), seeds=seeds[0]) | results(
        *rows({"rep_1": 0.5}, {"rep_1": second}, 0.001), name="demo", seeds=seeds[1]
    )


@pytest.mark.parametrize(
    ("sg", "word"), [((0.4, 0.4), "holds"), ((0.4, 0.6), "does not hold"), ((0.6, 0.4), "does not hold")]
)
def test_the_weakest_run_decides(sg, word):
    """Whichever comes first: a claim holds where every run that can test it says so."""
    assert judge(claim(**LOWER), two_runs(*sg)).word == word


def test_runs_of_several_seeds_decide_over_runs_of_one():
    verdict = judge(claim(**LOWER), two_runs(0.6, 0.4, seeds=(1, 3)))
    assert (verdict.word, verdict.run.results.name, len(verdict.runs)) == ("holds", "demo", 2)


def test_runs_of_one_seed_that_disagree_leave_it_undecided():
    assert judge(claim(**LOWER), two_runs(0.4, 0.6, seeds=(1, 1))).word == "undecided"


def test_without_its_premise_a_claim_does_not_hold():
    """The point alone would hold."""
    found = results(*rows({"ppl": 10.0, "rep_1": 0.5}, {"ppl": 11.0, "rep_1": 0.4}, 0.001))

    def near(share):
        return lambda t: [replace(t(SG, "ppl") < share * t(MLE, "ppl"), premise=True), *one_less(t)]

    assert judge(claim(near(1.2)), found).word == "holds"
    assert judge(claim(near(1.05)), found).word == "does not hold"


def test_results_that_cannot_test_a_claim_are_left_out():
    verdict = judge(claim(**LOWER, without=["demo"]), two_runs(0.4, 0.6))
    assert (verdict.word, [run.results.name for run in verdict.runs]) == ("holds", ["wikitext"])


def test_the_smoke_scale_decides_nothing():
    found = results(*rows({"rep_1": 0.5, "rep_2": 0.5}, {"rep_1": 0.4, "rep_2": 0.4}), scale="smoke")
    verdict = judge(claim(both_less), found)
    assert verdict.word == "not tested"
    assert verdict.why == "wikitext: the smoke scale shows that it runs, not what is true"


def test_a_reason_counts_as_long_as_nothing_decides():
    people = claim(both_less, not_tested="It takes people.")
    verdict = judge(people, results(*rows({"rep_1": 1, "rep_2": 1}, {})))
    assert (verdict.word, verdict.why, verdict.run) == ("not tested", "It takes people.", None)
    decided = judge(people, results(*rows({"rep_1": 1, "rep_2": 1}, {"rep_1": 0, "rep_2": 0})))
    assert (decided.word, decided.why) == ("holds", "")


def test_files(tmp_path, capsys, monkeypatch):
    """From rows to the page, in both places where results may lie; the folder of a run is left alone."""
    about = {"metric": "rep_1", "task": "open_ended", "decoding": "greedy", "sd": 0.01, "n": 2}

    def stored(corpus):
        mle = Row(value=0.5, objective="mle", corpus=corpus, **about)
        return [mle, Row(value=0.4, objective="sg", strength=0.2, corpus=corpus, **about)]

    write_rows(tmp_path / "wikitext-big.jsonl", stored("c"))
    write_rows(tmp_path / "demo.jsonl", stored("d"))
    known = {"wikitext-big": {"experiments": ["wikitext"], "scale": "gpu"}, "demo": {"experiments": ["demo"]}}
    (tmp_path / "environments.json").write_text(json.dumps(known))
    for name, environment in (("ptb", {"experiments": ["ptb"]}), ("mle-seed-0", {"starts": []})):
        (tmp_path / "small" / name).mkdir(parents=True)
        write_rows(tmp_path / "small" / name / "results.jsonl", stored("e"))
        (tmp_path / "small" / name / "environment.json").write_text(json.dumps(environment))
    found = read_results(tmp_path)
    assert {name: (one.experiments, one.scale, one.seeds, one.file) for name, one in found.items()} == {
        "demo": (["demo"], "", 2, "demo.jsonl"),
        "small/ptb": (["ptb"], "", 2, "small/ptb/results.jsonl"),
        "wikitext-big": (["wikitext"], "gpu", 2, "wikitext-big.jsonl"),
    }
    monkeypatch.setattr(command, "CLAIMS", [claim(one_less, id="less", says="Less.", also=["demo"])])
    monkeypatch.setattr(command, "SETTINGS", {"wikitext-big": ("no: smaller", "yes")})
    command.main([str(tmp_path)])
    assert capsys.readouterr().out.startswith(f"{tmp_path / 'claims.md'}: holds: 1; holds, by less: 0; ")
    made = (tmp_path / "claims.md").read_text()
    here = "holds ([wikitext-big](wikitext-big.jsonl), c)<br>holds ([demo](demo.jsonl), d)"
    assert f"| [less](#less): Less. | section 1 | – | {here} | model no, data yes | **holds** |" in made
    assert "| [wikitext-big](wikitext-big.jsonl) | no: smaller | yes |" in made
    assert "| [demo](demo.jsonl) | not stated | not stated |" in made
    assert "| holds | 1 |" in made
    assert "[wikitext-big](wikitext-big.jsonl), c: holds. `rep_1(SG γ=0.2) < rep_1(MLE)` (0.4 against 0.5)." in made
    assert "/catalogue.py`" in made


def test_results_of_one_s_own(tmp_path, capsys):
    """The page is written beside the results; without any only what is exact is tested."""
    command.main([str(tmp_path)])
    assert "holds: 6; " in capsys.readouterr().out
    assert "no stored results of wikitext yet" in (tmp_path / "claims.md").read_text()


def test_a_file_with_a_mistake_is_refused(tmp_path, capsys):
    (tmp_path / "wikitext.jsonl").write_text("{\n")
    (tmp_path / "environments.json").write_text('{"wikitext": {"experiments": ["wikitext"]}}')
    with pytest.raises(SystemExit, match="2"):
        command.main([str(tmp_path)])
    assert "wikitext.jsonl: not JSON" in capsys.readouterr().err


def test_the_page_says_where_the_paper_differs_from_itself():
    ul, half = Key("ul", 1.0), Key("sg", 0.5)
    dearer = claim(lambda t: rising(t, "ppl", SG, ul), table=12)
    off = claim(lambda t: less("ppl", half, Key("ul", 0.5), "1.35", t), id="b", table=11)
    near = claim(lambda t: [t(SG, "ppl") < t(ul, "ppl"), Stated("11%", 1 - t(SG, "ppl") / t(ul, "ppl"))],
                 id="c", table=1)  # fmt: skip
    made = command.page([judge(one, {}) for one in (dearer, off, near)], {})
    part = made.split("## Where the paper's text and its own tables differ")[1].split("## ")[0].strip()
    assert part == (
        "- [a](#a): in its own table it is not so that `ppl(SG γ=0.2) < ppl(UL α=1.0)` (110.5 against 108.3).\n"
        "- [b](#b): it states 1.35, its own table gives 1.380 as `ppl(UL α=0.5) - ppl(SG γ=0.5)`."
    )


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (3, "holds in part, 2 of 3. `x0(SG γ=0.2) < x0(MLE)` (3 against 2); `x1"),
        (6, "5 of 6. not so: `x0(SG γ=0.2) < x0(MLE)` (3 against 2).\n"),
    ],
)
def test_the_page_shows_what_decides(columns, shown):
    """Few comparisons are all shown; of many those that are not so."""
    names = [f"x{i}" for i in range(columns)]
    found = results(*rows(dict.fromkeys(names, 2.0), dict.fromkeys(names, 1.0) | {"x0": 3.0}))
    assert shown in command.page([judge(claim(lambda t: rising(t, " ".join(names), SG, MLE)), found)], {})
