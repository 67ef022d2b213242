"""Run folders to rows: seeds merged, decodings apart, the human row beside."""

from __future__ import annotations

import pytest

from scalegrad.results.comparison import compare_runs, find_runs
from scalegrad.results.comparison.terminal import markdown
from scalegrad.runs import samples_name
from tests.results.comparison.conftest import CORPUS, evaluation


def test_seeds_are_merged_and_decodings_have_rows(make_run, tmp_path):
    make_run("a-sg", "sg=0.2", 0, evaluation(14.0, 0.40))
    make_run("mle-0", "mle", 0, evaluation(12.0, 0.60))
    make_run("mle-1", "mle", 1, evaluation(14.0, 0.64))
    found = compare_runs(find_runs([tmp_path]))
    labels = [system.label for system in found.systems]
    assert labels == [
        "MLE",
        "SG γ=0.2",
        "MLE, decoded with γ=0.2",
        "SG γ=0.2, decoded with γ=0.2",
        "Human",
    ]
    mle, sg, twin, _, human = found.systems
    assert (mle.figures["ppl"], mle.figures["rep_1"], mle.runs) == (13.0, pytest.approx(0.62), 2)
    assert mle.deviations["ppl"] == pytest.approx(2**0.5)  # of 12 and 14
    assert (sg.strength, sg.family, dict(sg.deviations)) == (0.2, "sg", {})
    assert (twin.figures["ppl"], twin.figures["rep_1"], twin.kind) == (15.0, pytest.approx(0.52), "decoded")
    assert (human.figures["rep_window_128"], human.figures["uniq_w"]) == (0.48, 1200)
    assert mle.made["config"]["settings"]["seed"] == "0, 1"
    assert [entry["step"] for entry in mle.log if "validation_nll" in entry] == [10, 20, 30]
    assert [sample.prefix for sample in human.samples] == [f"Prefix {i}" for i in range(4)]
    assert "mle-0 greedy " in mle.samples[0].continuation
    assert found.notes[0] == "4 of 9 prefixes."
    assert found.twin is twin


def test_a_window_under_the_key_it_once_had_is_missing(make_run, tmp_path):
    """It was `rep_128`, of the same form as `rep_1` of n-grams: such a file lacks the column, and is not misread."""
    old = evaluation(14.0, 0.4)
    old["language_modelling"]["rep_128"] = old["language_modelling"].pop("rep_window_128")
    make_run("mle", "mle", 0, evaluation(12.0, 0.6))
    make_run("sg", "sg=0.2", 0, old)
    comparison = compare_runs(find_runs([tmp_path]))
    assert comparison.systems[0].figures["rep_window_128"] == 0.6
    row = next(line for line in markdown(comparison).splitlines() if line.startswith("| SG γ=0.2 |"))
    assert row.split(" | ")[3:6] == [".100", ".200", "–"]  # Rep/128 is missing


def test_a_text_may_hold_any_line_separator(make_run, tmp_path):
    run = make_run("mle", "mle", 0, evaluation(12.0, 0.6))
    text = "one\u2028two\u2029three\x85four\x0cfive"
    run.save(f"samples/{samples_name(CORPUS, 'greedy')}", [{"id": 0, "prefix": "In", "continuation": text}])
    mle = compare_runs(find_runs([tmp_path])).systems[0]
    assert [sample.continuation for sample in mle.samples] == [text]


def test_runs_that_share_an_objective_keep_their_folders_names(make_run, tmp_path):
    make_run("slow", "mle", 0, evaluation(12.0, 0.6), rate=1e-5)
    make_run("fast", "mle", 0, evaluation(13.0, 0.6), rate=1e-3)
    labels = [system.label for system in compare_runs(find_runs([tmp_path])).of_kind("trained")]
    assert labels == ["MLE (fast)", "MLE (slow)"]


def test_a_run_that_nobody_scored_shows_its_validation(make_run, tmp_path):
    make_run("mle", "mle", 0, evaluation(12.0, 0.6))
    make_run("sg-0", "sg=0.5", 0)
    make_run("sg-1", "sg=0.5", 1)
    found = compare_runs(find_runs([tmp_path]))
    sg = next(system for system in found.systems if system.family == "sg" and system.kind == "trained")
    assert (dict(sg.figures), sg.runs) == ({"validation_ppl": 49.4}, 2)
    assert any(note.startswith("Not scored on wikitext-103 test yet") for note in found.notes)


def test_flat_figures_of_another_task_are_taken_as_they_are(make_run, tmp_path):
    run = make_run("sum", "sg=0.8", 0)
    run.save("evaluation", {"cnn/dm test": {"rouge_1": 42.19, "texts": 11490, "made": True}})
    found = compare_runs(find_runs([tmp_path]))
    assert (found.corpus, dict(found.systems[0].figures)) == ("cnn/dm test", {"rouge_1": 42.19, "texts": 11490})


def test_mistakes(make_run, tmp_path):
    make_run("mle", "mle", 0, evaluation(12.0, 0.6))
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        find_runs([tmp_path / "none"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="holds no run"):
        find_runs([tmp_path / "empty"])
    with pytest.raises(ValueError, match="named twice"):
        find_runs([tmp_path, tmp_path / "mle"])
    with pytest.raises(ValueError, match="no run was scored on 'ptb test'; they were on wikitext-103 test"):
        compare_runs(find_runs([tmp_path]), "ptb test")
    assert compare_runs(find_runs([tmp_path]), CORPUS).corpus == CORPUS


def test_a_decoding_of_one_seed_is_a_row_of_one_run(make_run, tmp_path):
    make_run("mle-0", "mle", 0, evaluation(12.0, 0.60))
    second = evaluation(14.0, 0.64)
    del second["completion"]["greedy,gamma=0.2"]
    make_run("mle-1", "mle", 1, second)
    mle, twin, *_ = compare_runs(find_runs([tmp_path])).systems
    assert (mle.runs, twin.runs, twin.label) == (2, 1, "MLE, decoded with γ=0.2")
    assert dict(twin.deviations) == {}
