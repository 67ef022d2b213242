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
from scalegrad.runs import Run
from scalegrad.tasks.captioning import experiment
from scalegrad.tasks.captioning.scenes import make_scene
from scalegrad.tasks.captioning.splits import Scenes
from scalegrad.tasks.captioning.training import SCENES


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
    rows = {row["metric"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["rep_1"]["value"] == pytest.approx((1 / 3 + 0) / 2)
    assert rows["words"]["value"] == pytest.approx(6.5)
    assert (rows["words"]["objective"], rows["words"]["corpus"], rows["words"]["n"]) == ("human", "val.json", 2)
    with pytest.raises(SystemExit):
        main(["caption", "evaluate", "--paragraphs", path])
    shown = capsys.readouterr().out
    assert ".167" in shown


TINY = replace(SCENES, hidden_size=16, attention_size=8, epochs=1, batch=12, more_than=0, evaluations=1)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The whole experiment on a handful of scenes, once."""
    folder = tmp_path_factory.mktemp("captioner")
    patched = pytest.MonkeyPatch()
    patched.setitem(experiment.SCALES, "small", (Scenes(24, 4, 4), TINY))
    patched.setattr("scalegrad.tasks.captioning.scoring.MOST_TOKENS", 12)  # untrained, it would not find an end
    patched.setattr(experiment, "BETAS", (0.0, 0.5))
    with pytest.raises(SystemExit) as stopped:
        main(
            ["caption", "train", "--out", str(folder), "--objective", "mle", "--objective", "sg=0.5", "--parallel", "1"]
        )
    patched.undo()
    assert not stopped.value.code
    return folder


def test_training_leaves_tables_runs_and_a_page(trained):
    mle, sg = (Run.open(trained / name) for name in ("mle-seed-0", "sg-0.5-seed-0"))
    decodings = [("greedy", None), ("greedy", "soft_block=3"), ("greedy", "gamma=0.5")]
    decodings += [(text, None) for text in ("top_p=0.3", "top_p=0.9", "top_k=40", "top_k=100")]
    scored = [row for row in mle.rows() if (row.metric, row.split) == ("cider", "test")]
    assert [(row.decoding, row.penalty) for row in scored] == decodings
    assert {(row.task, row.objective, row.corpus, row.seed, row.n) for row in scored} == {
        ("captioning", "mle", "scenes", 0, 4)
    }
    (row,) = (row for row in sg.rows() if (row.metric, row.split, row.penalty) == ("beta", "test", "soft_block=3"))
    (line,) = (line for line in sg.evaluations() if line["settings"]["penalty"] == "soft_block=3")
    assert row.strength == 0.5
    assert line["strategy"] == ("greedy,gnmt=0.5,soft_block=3" if row.value else "greedy,soft_block=3")
    chosen = [row.value for row in sg.rows() if (row.split, row.penalty) == ("valid", "soft_block=3")]
    assert chosen == [max(line["validation_scores"].values())]
    page = (trained / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 4
    assert "The same picture, described by each" in page
    reference = make_scene("test", 0).paragraph
    assert reference.split(".")[0] in page.replace("<mark>", "").replace("</mark>", "")


def test_a_finished_folder_is_only_read(trained, capsys):
    before = {path: path.stat().st_mtime_ns for path in trained.rglob("done.json")}
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(experiment.SCALES, "small", (Scenes(24, 4, 4), TINY))
        patched.setattr(experiment, "BETAS", (0.0, 0.5))
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
    run = str(trained / "mle-seed-0")
    make_scene("test", 0).image.save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes((tmp_path / "a.png").read_bytes()[:200])
    images = [str(tmp_path / name) for name in ("a.png", "b.png", "c.png")]
    with pytest.raises(SystemExit):
        main(["caption", "describe", run, *images, "--skip-bad", "--json", "--strategy", "greedy"])
    shown = capsys.readouterr()
    assert list(json.loads(shown.out)) == [images[0]]
    assert "left out: 1 × an image that cannot be read" in shown.err
    assert "1 × no image file" in shown.err
    assert "b.png cannot be read as an image" in failed(capsys, "describe", run, *images[:2])
    with pytest.raises(SystemExit):
        main(["caption", "evaluate", run, "--limit", "2", "--strategy", "greedy,block=1", "--json"])
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {(row.get("objective"), row.get("penalty")) for row in rows} == {("human", None), (None, "block=1")}
    assert [row["value"] for row in rows if (row["metric"], row.get("penalty")) == ("rep_1", "block=1")] == [0.0]


def test_scoring_on_images_keeps_their_features(trained, tmp_path, capsys, monkeypatch):
    """Beside a run, where training would look for them; beside the paragraphs if the captioner is no run."""
    from scalegrad.data.records import Problems
    from scalegrad.tasks.captioning import extraction
    from scalegrad.tasks.captioning.features import open_features

    images, runs, texts = tmp_path / "images", tmp_path / "runs", tmp_path / "texts"
    for folder in (images, texts):
        folder.mkdir()
    shutil.copytree(trained / "mle-seed-0", runs / "mle-seed-0")
    for number in range(3):
        make_scene("test", number).image.save(images / f"{number}.png")
    path = coco(texts / "test.json", [(number, make_scene("test", number).paragraph) for number in range(3)])

    def evaluate(model):
        asked = ["--paragraphs", path, "--images", str(images), "--strategy", "greedy,block=1", "--json"]
        with pytest.raises(SystemExit) as stopped:
            main(["caption", "evaluate", str(model), *asked])
        assert not stopped.value.code
        return json.loads(capsys.readouterr().out)

    first = evaluate(runs / "mle-seed-0")
    (kept,) = runs.glob("regions-*.safetensors")
    made = extraction.extract(extraction.images_in(images), extraction.load_extractor("scenes"))
    for name, regions in made.items():
        torch.testing.assert_close(open_features(kept)[name], regions)
    evaluate(runs / "mle-seed-0" / "model")
    assert [file.name for file in texts.glob("regions-*")] == [kept.name]
    with monkeypatch.context() as patched:
        patched.setattr(extraction, "load_extractor", lambda *_: pytest.fail("features were extracted again"))
        monkeypatch.chdir(runs / "mle-seed-0")
        assert evaluate(".") == first
        extraction.features_of(images, "scenes", runs, Problems())  # as `caption train --out runs` does
    monkeypatch.setattr(os, "access", lambda _, mode: mode != os.W_OK)
    kept.unlink()
    assert evaluate(runs / "mle-seed-0") == first
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
    assert "image 3: no features; --skip-bad" in failed(capsys, *asked)
    with pytest.MonkeyPatch.context() as patched:
        small = {"hidden_size": 8, "attention_size": 4, "epochs": 1, "more_than": 0, "evaluations": 1}
        from scalegrad.tasks.captioning import training

        patched.setattr(training, "PAPER", replace(training.PAPER, **small))
        patched.setattr(experiment, "BETAS", (0.0,))
        patched.setattr("scalegrad.tasks.captioning.scoring.MOST_TOKENS", 12)
        with pytest.raises(SystemExit) as stopped:
            main(["caption", *asked, "--skip-bad", "--json"])
    assert not stopped.value.code
    shown = capsys.readouterr()
    assert "left out: 1 × no features (image 3)" in shown.err
    assert {row["corpus"] for row in json.loads(shown.out)["rows"] if "corpus" in row} == {"test.json"}
    assert "data:image" not in (tmp_path / "out" / "report.html").read_text()
    model = str(tmp_path / "out" / "mle-seed-0")
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
    monkeypatch.setattr(experiment, "run_jobs", lambda *_: pytest.fail("a training was started"))
    assert said in failed(capsys, *arguments)
    assert list(tmp_path.iterdir()) == []
