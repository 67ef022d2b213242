"""`scalegrad caption`: the human figures, training and scoring at small size, mistakes in one sentence."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

from scalegrad.cli import main
from scalegrad.tasks.captioning import runs as lab
from scalegrad.tasks.captioning.scenes import make_scene


def coco(path, items):
    images = [{"id": name, "file_name": f"{name}.png"} for name, _ in items]
    path.write_text(json.dumps({"images": images, "annotations": [{"image_id": n, "caption": t} for n, t in items]}))
    return str(path)


def failed(capsys, *arguments):
    with pytest.raises(SystemExit) as stopped:
        main(["caption", *arguments])
    assert stopped.value.code == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith("scalegrad: ")
    return said


def test_human_figures(tmp_path, capsys):
    """The, dog, ., cat of six words; lower-cased, punctuation kept."""
    path = coco(tmp_path / "val.json", [(1, "The dog. the cat."), (2, "A b c d e f.")])
    with pytest.raises(SystemExit):
        main(["caption", "evaluate", "--paragraphs", path, "--json"])
    found = json.loads(capsys.readouterr().out)["human"]
    assert found["rep_1"] == pytest.approx((1 / 3 + 0) / 2)
    assert found["words"] == pytest.approx(6.5)
    with pytest.raises(SystemExit):
        main(["caption", "evaluate", "--paragraphs", path])
    shown = capsys.readouterr().out
    assert ".167" in shown


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The whole experiment on a handful of scenes, once."""
    folder = tmp_path_factory.mktemp("captioner")
    sizes, recipe = {"train": 24, "valid": 4, "test": 4}, lab.SCALES["small"][1]
    tiny = replace(recipe, hidden_size=16, attention_size=8, epochs=1, batch=12, more_than=0, evaluations=1)
    patched = pytest.MonkeyPatch()
    patched.setitem(lab.SCALES, "small", (sizes, tiny))
    patched.setattr("scalegrad.tasks.captioning.scoring.MOST_TOKENS", 12)  # untrained, it would not find an end
    patched.setattr("scalegrad.tasks.captioning.scoring.choose_beta.__defaults__", ((0.0, 0.5), None))
    with pytest.raises(SystemExit) as stopped:
        main(
            ["caption", "train", "--out", str(folder), "--objective", "mle", "--objective", "sg=0.5", "--parallel", "1"]
        )
    patched.undo()
    assert not stopped.value.code
    return folder


def test_training_leaves_tables_runs_and_a_page(trained):
    found = json.loads((trained / "captions.json").read_text())
    assert [run["objective"] for run in found["runs"]] == ["mle", "sg=0.5"]
    assert list(found["runs"][0]["rows"]) == [
        "greedy", "3-block", "greedy,gamma=0.5", "top_p=0.3", "top_p=0.9", "top_k=40", "top_k=100",
    ]  # fmt: skip
    assert list(found["runs"][1]["rows"]) == ["greedy", "3-block"]
    assert found["runs"][0]["strategies"]["3-block"].startswith("greedy,")
    page = (trained / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 4
    assert "The same picture, described by each" in page
    reference = make_scene("test", 0).paragraph
    assert reference.split(".")[0] in page.replace("<mark>", "").replace("</mark>", "")


def test_a_finished_folder_is_only_read(trained, capsys):
    before = {path: path.stat().st_mtime_ns for path in trained.rglob("done.json")}
    sizes, recipe = {"train": 24, "valid": 4, "test": 4}, lab.SCALES["small"][1]
    tiny = replace(recipe, hidden_size=16, attention_size=8, epochs=1, batch=12, more_than=0, evaluations=1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(lab.SCALES, "small", (sizes, tiny))
        with pytest.raises(SystemExit):
            main(
                [
                    "caption",
                    "train",
                    "--out",
                    str(trained),
                    "--objective",
                    "mle",
                    "--objective",
                    "sg=0.5",
                    "--parallel",
                    "1",
                ]
            )
        said = failed(capsys, "train", "--out", str(trained), "--objective", "mle", "--epochs", "2", "--parallel", "1")
    assert {path: path.stat().st_mtime_ns for path in trained.rglob("done.json")} == before
    assert "its recipe.epochs is 1, not 2" in said


def test_a_trained_captioner_describes_images_and_is_scored(trained, tmp_path, capsys):
    run = str(trained / "mle-seed0")
    make_scene("test", 0).image.save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes((tmp_path / "a.png").read_bytes()[:200])
    images = [str(tmp_path / name) for name in ("a.png", "b.png", "c.png")]
    with pytest.raises(SystemExit):
        main(["caption", "describe", run, *images, "--skip-bad", "--json", "--strategy", "greedy"])
    shown = capsys.readouterr()
    assert list(json.loads(shown.out)) == [images[0]]
    assert "left out: 1 with an image that cannot be read" in shown.err
    assert "1 with no image file" in shown.err
    assert "b.png cannot be read as an image" in failed(capsys, "describe", run, *images[:2])
    with pytest.raises(SystemExit):
        main(["caption", "evaluate", run, "--limit", "2", "--strategy", "greedy,block=1", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"human", "greedy,block=1"}
    assert found["greedy,block=1"]["rep_1"] == 0.0


def test_scoring_on_images_keeps_their_features(trained, tmp_path, capsys, monkeypatch):
    """Beside a run, where training would look for them; beside the paragraphs if the captioner is no run."""
    from scalegrad.tasks.captioning import extraction
    from scalegrad.tasks.captioning.features import open_features
    from scalegrad.tasks.captioning.problems import Problems

    images, runs, texts = tmp_path / "images", tmp_path / "runs", tmp_path / "texts"
    for folder in (images, texts):
        folder.mkdir()
    shutil.copytree(trained / "mle-seed0", runs / "mle-seed0")
    for number in range(3):
        make_scene("test", number).image.save(images / f"{number}.png")
    path = coco(texts / "test.json", [(number, make_scene("test", number).paragraph) for number in range(3)])

    def evaluate(model):
        asked = ["--paragraphs", path, "--images", str(images), "--strategy", "greedy,block=1", "--json"]
        with pytest.raises(SystemExit) as stopped:
            main(["caption", "evaluate", str(model), *asked])
        assert not stopped.value.code
        return json.loads(capsys.readouterr().out)

    first = evaluate(runs / "mle-seed0")
    (kept,) = runs.glob("regions-*.safetensors")
    made = extraction.extract(extraction.images_in(images), extraction.load_extractor("scenes"))
    for name, regions in made.items():
        torch.testing.assert_close(open_features(kept)[name], regions)
    evaluate(runs / "mle-seed0" / "model")
    assert [file.name for file in texts.glob("regions-*")] == [kept.name]
    with monkeypatch.context() as patched:
        patched.setattr(extraction, "load_extractor", lambda *_: pytest.fail("features were extracted again"))
        monkeypatch.chdir(runs / "mle-seed0")
        assert evaluate(".") == first
        extraction.features_of(images, "scenes", runs, Problems())  # as `caption train --out runs` does
    monkeypatch.setattr(os, "access", lambda _, mode: mode != os.W_OK)
    kept.unlink()
    assert evaluate(runs / "mle-seed0") == first
    assert list(runs.glob("regions-*")) == []


def test_own_paragraphs_and_features(tmp_path, capsys):
    """Twelve images with features in one file; one without a caption and one without features are counted."""
    regions = {
        str(number): np.random.default_rng(number).normal(size=(3, 5)).astype(np.float32) for number in range(12)
    }
    del regions["3"]
    np.savez(tmp_path / "regions.npz", **regions)
    text = "a dog is on the grass."
    files = {
        name: coco(tmp_path / f"{name}.json", [(number, text) for number in numbers])
        for name, numbers in (("train", range(8)), ("valid", (8, 9)), ("test", (10, 11)))
    }
    asked = ["train", "--out", str(tmp_path / "out"), "--features", str(tmp_path / "regions.npz"), "--objective", "mle"]
    asked += [word for name, path in files.items() for word in (f"--{name}", path)]
    assert "image 3: no features (--skip-bad leaves such items out)" in failed(capsys, *asked)
    with pytest.MonkeyPatch.context() as patched:
        small = {"hidden_size": 8, "attention_size": 4, "epochs": 1, "more_than": 0, "evaluations": 1}
        from scalegrad.tasks.captioning import training

        patched.setattr(training, "PAPER", replace(training.PAPER, **small))
        patched.setattr("scalegrad.tasks.captioning.scoring.choose_beta.__defaults__", ((0.0,), None))
        patched.setattr("scalegrad.tasks.captioning.scoring.MOST_TOKENS", 12)
        with pytest.raises(SystemExit) as stopped:
            main(["caption", *asked, "--skip-bad"])
    assert not stopped.value.code
    assert "left out: 1 with no features (image 3)" in capsys.readouterr().err
    found = json.loads((tmp_path / "out" / "captions.json").read_text())
    assert found["left_out"] == {"no features": ["image 3"]}
    model = str(tmp_path / "out" / "mle-seed0")
    assert "trained on features made elsewhere" in failed(
        capsys, "describe", model, str(tmp_path / "x.png"), "--skip-bad"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "--scale", "huge"], "--scale must be one of small, large"),
        (["train", "--seeds", "0"], "--seeds must be at least 1"),
        (["train", "--epochs", "0"], "scalegrad: --epochs must be at least 1, not 0"),
        (["train", "--epochs", "-1"], "scalegrad: --epochs must be at least 1, not -1"),
        (["train", "--objective", "sg=2"], "must"),
        (["train", "--train", "a.json"], "--train, --valid and --test belong together"),
        (["evaluate"], "give MODEL to score it, or --paragraphs FILE"),
        (["evaluate", "nowhere"], "nowhere holds no captioner"),
        (["evaluate", "--paragraphs", "none.json"], "none.json"),
        (["describe", "nowhere", "a.png", "--skip-bad"], "nowhere holds no captioner"),
    ],
)
def test_mistakes(arguments, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(lab, "_run_all", lambda *_: pytest.fail("a training was started"))
    assert said in failed(capsys, *arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("epochs", [0, -1])
def test_no_epochs_are_refused_by_the_gpu_command_and_the_library_too(epochs, tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        lab.main(["--out", str(tmp_path), "--epochs", str(epochs), "--only-seed", "0"])
    assert stopped.value.code == 2
    assert f"--epochs must be at least 1, not {epochs}" in capsys.readouterr().err
    with pytest.raises(ValueError, match=f"^epochs must be at least 1, not {epochs}$"):
        lab.run_scenes("small", tmp_path, lab.PAPER_OBJECTIVES, 1, 3, epochs=epochs)
    assert list(tmp_path.iterdir()) == []


def test_trainings_side_by_side(tmp_path, monkeypatch):
    """Six trainings as processes; one that is finished is not started again. The trainings themselves are played."""
    started, told = [], []

    def play(commands, parallel, environment, watch):
        started.append(([command[-4:] for command in commands.values()], parallel, environment["OMP_NUM_THREADS"]))
        watch()

    monkeypatch.setattr(lab, "_run_all", play)
    monkeypatch.setattr(lab, "read_run", lambda run: run.path.name)
    monkeypatch.setattr(lab.os, "cpu_count", lambda: 16)
    record = lab.scene_record(*lab.SCALES["large"], lab.PAPER_OBJECTIVES[0], 0)
    done = lab.Run.create(tmp_path / "mle-seed0", record, files=lab.FILES)
    done.finish({})
    done.save("captions", {})
    runs = lab.run_scenes("large", tmp_path, lab.PAPER_OBJECTIVES, 2, 6, told=lambda *given: told.append(given))
    names = [(name, seed) for seed in ("0", "1") for name in ("mle", "ul=0.5", "sg=0.5")]
    assert started == [([["--objective", name, "--only-seed", seed] for name, seed in names[1:]], 6, "2")]
    assert runs == [f"{name.replace('=', '-')}-seed{seed}" for name, seed in names]
    assert told[0] == ("training UL α=0.5, seed 0", 0, 564)
    with pytest.raises(ValueError, match=r"its recipe\.epochs is 6, not 2"):
        lab.run_scenes("large", tmp_path, lab.PAPER_OBJECTIVES, 2, 6, epochs=2)


def test_one_training_of_the_gpu_command(tmp_path, monkeypatch):
    """What such a process does, at small size: one objective, one seed, no summary."""
    sizes = {"train": 12, "valid": 2, "test": 2}
    small = {"hidden_size": 8, "attention_size": 4, "epochs": 1, "batch": 12, "more_than": 0, "evaluations": 1}
    monkeypatch.setitem(lab.SCALES, "large", (sizes, replace(lab.SCALES["large"][1], **small)))
    monkeypatch.setattr("scalegrad.tasks.captioning.scoring.choose_beta.__defaults__", ((0.0,), None))
    monkeypatch.setattr("scalegrad.tasks.captioning.scoring.MOST_TOKENS", 8)
    lab.main(["--out", str(tmp_path), "--scale", "large", "--objective", "ul=0.5", "--only-seed", "2"])
    found = json.loads((tmp_path / "ul-0.5-seed2" / "captions.json").read_text())
    assert found["strategies"] == {"greedy": "greedy", "3-block": "greedy,soft_block=3"}
    assert found["human"]["n_texts"] == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ul-0.5-seed2"]


def test_a_failing_training_stops_the_others(tmp_path):
    import sys

    waits = [sys.executable, "-c", "import time; time.sleep(60)"]
    commands = {"training MLE, seed 0": [sys.executable, "-c", "raise SystemExit(3)"], "training UL, seed 0": waits}
    with pytest.raises(ValueError, match=r"^training MLE, seed 0: it ended \(exit code 3\)$"):
        lab._run_all(commands, 2, {})


def test_a_failing_training_is_told_in_one_sentence(tmp_path, capfd):
    """Its own last line, and nothing of its traceback; remarks that would fill a pipe do not stop it."""
    import sys

    code = "import sys; sys.stderr.write('remark\\n' * 20_000); raise ValueError('the disk is full')"
    with pytest.raises(ValueError, match=r"^training MLE, seed 0: ValueError: the disk is full \(exit code 1\)$"):
        lab._run_all({"training MLE, seed 0": [sys.executable, "-c", code]}, 1, {})
    assert capfd.readouterr().err == ""


def test_kept_regions_are_those_of_the_drawn_scenes(tmp_path):
    """Made once; then read, in half precision, without a picture being drawn."""
    from scalegrad.tasks.captioning.experiment import scene_splits
    from scalegrad.tasks.captioning.scenes.scene import Scene

    sizes = {"train": 3, "valid": 1, "test": 1}
    drawn = scene_splits(sizes)
    lab.kept_regions(tmp_path / "regions.safetensors", sizes)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Scene, "image", None)
        kept = scene_splits(sizes, regions=lab.kept_regions(tmp_path / "regions.safetensors", sizes))
    assert [item.paragraph for item in kept.train] == [item.paragraph for item in drawn.train]
    for first, second in zip([*kept.train, *kept.test], [*drawn.train, *drawn.test], strict=True):
        torch.testing.assert_close(first.regions, second.regions, atol=2e-3, rtol=2e-3)
