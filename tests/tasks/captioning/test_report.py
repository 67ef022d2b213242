"""The captioning tables: rows by objective and decoding, means over seeds, pictures on the page."""

from __future__ import annotations

import pytest

from scalegrad import objectives
from scalegrad.decoding import parse
from scalegrad.runs import Run, rows_of, run_name, samples_name
from scalegrad.tasks.captioning.report import compare_captions, compare_stochastic, with_pictures

MLE = {"greedy,gamma=0.5": 12.0, "top_p=0.3": 19.0, "top_k=40": 17.0}


def make_run(folder, objective, seed, cider, blocked, corpus="scenes", **others):
    config = {"task": "captioning", "objective": objective, "seed": seed, "data": {"name": corpus}}
    run = Run.create(folder / run_name(objective, seed), config)
    run.finish({})
    trained = objectives.parse(objective)
    about = {"task": "captioning", "corpus": corpus, "split": "test"}
    system = {"objective": trained.name, "strength": trained.amount, "seed": seed}
    run.add(rows_of({"validation_ppl": 4.0, "train_seconds": 60.0}, **system))
    for text, value in {"greedy": cider, "greedy,soft_block=3": blocked, **others}.items():
        strategy = parse(text)
        decoding = {"decoding": strategy.decoding, "penalty": strategy.penalty}
        run.add(rows_of({"cider": value, "rep_1": value / 100, "rep_3": None}, **about, **system, **decoding))
        run.add(rows_of({"cider": value + 1}, **{**about, "split": "valid"}, **system, **decoding))
        texts = [{"prefix": name, "continuation": f"a {name}."} for name in ("dog", "cat")]
        run.save(f"samples/{samples_name(corpus, 'test', strategy)}", texts)
    run.add(rows_of({"rep_1": 0.42, "rep_3": 0.04}, objective="human", **about))
    return run


def two_seeds(folder, corpus="scenes"):
    return [
        make_run(folder, "mle", 0, 10.0, 22.0, corpus, **MLE),
        make_run(folder, "sg=0.5", 0, 18.0, 24.0, corpus),
        make_run(folder, "mle", 1, 12.0, 24.0, corpus, **MLE),
        make_run(folder, "sg=0.5", 1, 20.0, 26.0, corpus),
    ]


def test_rows_of_the_tables(tmp_path):
    found = compare_captions(two_seeds(tmp_path))
    assert {
        (system.objective, system.strength, system.penalty): system.figures.get("cider") for system in found.systems
    } == {
        ("mle", None, None): 11.0,
        ("sg", 0.5, None): 19.0,
        ("mle", None, "soft_block=3"): 23.0,
        ("sg", 0.5, "soft_block=3"): 25.0,
        ("mle", None, "gamma=0.5"): 12.0,
        ("human", None, None): None,
    }
    assert found.baseline.deviations["cider"] == pytest.approx(2**0.5)
    assert found.baseline.figures["validation_ppl"] == 4.0
    assert "train_seconds" not in found.baseline.figures
    assert "rep_3" not in found.baseline.figures  # there was none
    assert found.human.figures["rep_3"] == 0.04
    assert (found.baseline.objective, found.favourite.objective, found.twin.penalty) == ("mle", "sg", "gamma=0.5")


def test_pictures_of_what_the_page_shows(tmp_path):
    found = with_pictures(compare_captions(two_seeds(tmp_path)), {"dog": "data:image/png;base64,AA", "cat": ""}.get)
    assert [(one.prefix, one.picture != "") for one in found.baseline.samples] == [("dog", True), ("cat", False)]


@pytest.mark.parametrize("corpus", ["scenes", "test.json"])
def test_the_human_row_of_drawn_scenes_is_said_to_be_a_grammar(corpus, tmp_path):
    notes = compare_captions(two_seeds(tmp_path, corpus)).notes
    assert any("grammar" in note for note in notes) == (corpus == "scenes")


def test_sampling_against_blocking(tmp_path):
    runs = two_seeds(tmp_path)
    found = compare_stochastic(runs)
    assert [(system.decoding, system.penalty) for system in found.systems] == [
        ("top_p=0.3", None), ("top_k=40", None), ("greedy", "soft_block=3"),
    ]  # fmt: skip
    assert compare_stochastic(runs[1:2]) is None


def test_strengths_are_chosen_on_validation(tmp_path):
    """γ = .5 has the best β at 20 on average, γ = .2 at 21; with blocking 26 against 22."""
    runs = two_seeds(tmp_path)
    assert not [system for system in compare_captions(runs).systems if system.chosen]
    runs += [make_run(tmp_path, "sg=0.2", seed, 19.0 + 2 * seed, 20.0 + 2 * seed) for seed in range(2)]
    chosen = [system for system in compare_captions(runs).systems if system.chosen]
    assert {(one.objective, one.strength, one.penalty) for one in chosen} == {
        ("sg", 0.2, None),
        ("sg", 0.5, "soft_block=3"),
    }
