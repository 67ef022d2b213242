"""Rows of runs to systems: seeds merged, decodings apart, the human row beside, what does not compare named."""

from __future__ import annotations

import pytest

from scalegrad.results.comparison import Comparison, compare
from scalegrad.results.comparison.columns import best
from scalegrad.results.comparison.terminal import markdown
from scalegrad.results.frame import find_runs, frame, load
from scalegrad.runs import Row, rows_of, samples_name, write_json, write_rows
from tests.results.comparison.conftest import CORPUS, SPLIT, measured


def side_by_side(folder, *wanted: str) -> Comparison:
    return compare(load([folder]), *wanted, runs=find_runs([folder]))


def test_seeds_are_merged_and_decodings_have_rows(make_run, tmp_path):
    make_run("a-sg", "sg=0.2", 0, measured(14.0, 0.40))
    make_run("mle-0", "mle", 0, measured(12.0, 0.60))
    make_run("mle-1", "mle", 1, measured(14.0, 0.64))
    compared = side_by_side(tmp_path)
    labels = [system.label for system in compared.systems]
    assert labels == ["MLE", "SG γ=0.2", "MLE, decoded with γ=0.2", "SG γ=0.2, decoded with γ=0.2", "Human"]
    mle, sg, twin, _, human = compared.systems
    assert (mle.figures["ppl"], mle.figures["rep_1"], mle.runs) == (13.0, pytest.approx(0.62), 2)
    assert mle.deviations["ppl"] == pytest.approx(2**0.5)  # of 12 and 14
    assert (sg.strength, sg.objective, dict(sg.deviations)) == (0.2, "sg", {})
    assert (twin.figures["ppl"], twin.figures["rep_1"], twin.kind) == (15.0, pytest.approx(0.52), "decoded")
    assert (twin.decoding, twin.penalty, twin.gamma) == ("greedy", "gamma=0.2", 0.2)
    assert (human.figures["rep_window_128"], human.figures["uniq_w"], human.kind) == (0.48, 1200, "human")
    assert mle.made["config"]["settings"]["seed"] == "0, 1"
    assert [entry["step"] for entry in mle.log if "validation_nll" in entry] == [10, 20, 30]
    assert [sample.prefix for sample in human.samples] == [f"Prefix {i}" for i in range(4)]
    assert "mle-0 greedy " in mle.samples[0].continuation
    assert compared.notes == ["4 of 9 prefixes."]
    assert compared.twin is twin


def test_rows_of_a_file_give_the_same_figures_as_the_runs(make_run, tmp_path):
    runs = [make_run(f"mle-{seed}", "mle", seed, measured(12.0 + seed, 0.6)) for seed in range(3)]
    write_rows(tmp_path / "rows.jsonl", [row for run in runs for row in run.rows()])
    of_file = compare(load([tmp_path / "rows.jsonl"]))
    for one, other in zip(of_file.systems, side_by_side(tmp_path).systems, strict=True):
        assert (one.label, one.figures, one.deviations, one.runs) == (
            other.label, other.figures, other.deviations, other.runs,
        )  # fmt: skip


def test_an_aggregate_keeps_its_deviation_and_its_seeds():
    about = {"objective": "mle", "corpus": CORPUS, "split": SPLIT}
    (system,) = compare(frame([Row("ppl", 13.0, sd=0.2, n=5, low=12.0, high=14.0, **about)])).systems
    assert (system.deviations, system.runs, system.intervals) == ({"ppl": 0.2}, 5, {"ppl": (12.0, 14.0)})


def test_what_the_paper_prints_is_a_row_of_its_own():
    about = {"corpus": CORPUS, "split": SPLIT}
    rows = [Row("ppl", 12.0, objective="mle", seed=0, run="mle-0", **about)]
    rows += rows_of({"ppl": 13.2}, run="paper", objective="mle", **about)
    rows += rows_of({"rep_1": 0.3}, run="paper", objective="human", **about)
    compared = compare(frame(rows))
    assert [(s.label, s.kind, s.figures) for s in compared.systems] == [
        ("MLE", "trained", {"ppl": 12.0}),
        ("MLE, in the paper", "paper", {"ppl": 13.2}),
        ("Human, in the paper", "paper", {"rep_1": 0.3}),
    ]


def test_a_figure_that_a_run_lacks_is_missing_from_its_row(make_run, tmp_path):
    less = measured(14.0, 0.4)
    del less[0][1]["rep_window_128"]
    make_run("mle", "mle", 0, measured(12.0, 0.6))
    make_run("sg", "sg=0.2", 0, less)
    row = next(line for line in markdown(side_by_side(tmp_path)).splitlines() if line.startswith("| SG γ=0.2 |"))
    assert row.split(" | ")[3:6] == [".100", ".200", "–"]  # Rep/128 is missing


def test_a_text_may_hold_any_line_separator(make_run, tmp_path):
    run = make_run("mle", "mle", 0, measured(12.0, 0.6))
    text = "one\u2028two\u2029three\x85four\x0cfive"
    run.save(f"samples/{samples_name(CORPUS, SPLIT, 'greedy')}", [{"id": 0, "prefix": "In", "continuation": text}])
    assert [sample.continuation for sample in side_by_side(tmp_path).systems[0].samples] == [text]


def test_runs_that_share_an_objective_keep_their_folders_names(make_run, tmp_path):
    make_run("slow", "mle", 0, measured(12.0, 0.6), rate=1e-5)
    make_run("fast", "mle", 0, measured(13.0, 0.6), rate=1e-3)
    trained = side_by_side(tmp_path).of_kind("trained")
    assert [(system.label, system.figures["ppl"]) for system in trained] == [("MLE (fast)", 13.0), ("MLE (slow)", 12.0)]


def test_a_run_that_nobody_scored_shows_its_validation(make_run, tmp_path):
    make_run("mle", "mle", 0, measured(12.0, 0.6))
    make_run("sg-0", "sg=0.5", 0)
    make_run("sg-1", "sg=0.5", 1)
    compared = side_by_side(tmp_path)
    sg = next(system for system in compared.of_kind("trained") if system.objective == "sg")
    assert (dict(sg.figures), sg.runs) == ({"validation_ppl": 49.4}, 2)
    assert "validation_ppl" not in compared.systems[0].figures
    assert any(note.startswith("Not scored on wikitext-103 test yet") for note in compared.notes)


def test_figures_of_another_task_are_taken_as_they_are(make_run, tmp_path):
    run = make_run("sum", "sg=0.8", 0)
    about = {
        "task": "summarization",
        "objective": "sg",
        "strength": 0.8,
        "corpus": "cnn/dm",
        "split": "test",
        "seed": 0,
    }
    run.add(
        rows_of({"rouge_1": {"value": 42.19, "low": 41.0, "high": 43.0}, "words": 55.1}, decoding="beam=5", **about)
    )
    compared = side_by_side(tmp_path)
    assert (compared.corpus, compared.systems[0].figures) == ("cnn/dm test", {"rouge_1": 42.19, "words": 55.1})
    assert (compared.systems[0].label, compared.systems[0].intervals) == ("SG γ=0.8", {"rouge_1": (41.0, 43.0)})


def test_runs_validated_on_different_text_do_not_compare(make_run, tmp_path):
    for name, objective in (("mle", "mle"), ("sg", "sg=0.5")):
        run = make_run(name, objective, 0)
        write_json(run.path / "config.json", run.config | {"sequences": {"validation": {"sha256": name}}})
    run.add(rows_of({"validation_ppl": 12.0}, **run.about()))
    compared = side_by_side(tmp_path)
    assert [system.figures["validation_ppl"] for system in compared.systems] == [49.4, 12.0]
    assert best(compared, "validation_ppl") == set()
    assert any("different text" in note for note in compared.notes)


@pytest.mark.parametrize(
    "other",
    [{"window": 128}, {"tokenizer": "another"}, {"checksum": "another"}, {"chunks": 8}],
)
def test_perplexities_of_different_data_are_noted_and_none_is_the_best(make_run, tmp_path, other):
    same = {"tokenizer": "gpt2", "checksum": "ab", "chunks": 4}
    make_run("mle", "mle", 0, measured(12.0, 0.6, **same))
    make_run("sg", "sg=0.2", 0, measured(14.0, 0.4, **same))
    assert best(side_by_side(tmp_path), "ppl") == {0}
    make_run("ul", "ul=1.0", 0, measured(11.0, 0.5, **{**same, **other}))
    compared = side_by_side(tmp_path)
    assert best(compared, "ppl") == set()
    assert [system.figures["ppl"] for system in compared.of_kind("trained")] == [12.0, 11.0, 14.0]
    assert any("do not compare" in note for note in compared.notes)
    assert bool(best(compared, "rep_1")) == ("checksum" not in other)


def test_of_several_windows_the_commonest_is_shown_or_the_one_that_is_asked_for(make_run, tmp_path):
    make_run("mle", "mle", 0, [*measured(12.0, 0.6), *measured(20.0, 0.6, window=128)[:1]])
    make_run("sg", "sg=0.2", 0, measured(14.0, 0.4))
    data, runs = load([tmp_path]), find_runs([tmp_path])
    assert [s.figures["ppl"] for s in compare(data, runs=runs).of_kind("trained")] == [12.0, 14.0]
    assert [s.figures.get("ppl") for s in compare(data, window=128, runs=runs).of_kind("trained")] == [20.0, None]


def test_mistakes(make_run, tmp_path):
    make_run("mle", "mle", 0, measured(12.0, 0.6))
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        find_runs([tmp_path / "none"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="holds no run"):
        find_runs([tmp_path / "empty"])
    with pytest.raises(ValueError, match="named twice"):
        find_runs([tmp_path, tmp_path / "mle"])
    with pytest.raises(ValueError, match="no run was scored on 'ptb:test'; they were on wikitext-103:test"):
        side_by_side(tmp_path, "ptb", "test")
    assert side_by_side(tmp_path, CORPUS, SPLIT).corpus == "wikitext-103 test"


def test_a_decoding_of_one_seed_is_a_row_of_one_run(make_run, tmp_path):
    make_run("mle-0", "mle", 0, measured(12.0, 0.60))
    make_run(
        "mle-1",
        "mle",
        1,
        [part for part in measured(14.0, 0.64, ["greedy"]) if "penalty" not in part[0] or not part[0]["penalty"]],
    )
    mle, twin, *_ = side_by_side(tmp_path).systems
    assert (mle.runs, twin.runs, twin.label) == (2, 1, "MLE, decoded with γ=0.2")
    assert dict(twin.deviations) == {}
