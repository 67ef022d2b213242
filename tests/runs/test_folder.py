"""A run's folder: the same config goes on, another is refused, and only what belongs to a run is ever deleted."""

import functools
import json

import pytest

from scalegrad.runs import Run, folder, rows_of

CONFIG = {"task": "open_ended", "settings": {"seed": 1, "steps": 10}, "data": ["a.txt"]}


def test_create_and_open(tmp_path):
    run = Run.create(tmp_path / "run", CONFIG)
    assert Run.open(run.path).config == CONFIG
    assert not run.finished
    (start,) = run.load("environment")["starts"]
    assert start["versions"]["scalegrad"]
    assert " core" in start["hardware"]
    assert set(start) >= {"started", "command", "git"}


def test_the_same_config_goes_on_and_notes_the_start(tmp_path):
    Run.create(tmp_path / "run", CONFIG).log({"step": 1})
    run = Run.create(tmp_path / "run", CONFIG)
    assert run.metrics() == [{"step": 1}]
    assert len(run.load("environment")["starts"]) == 2


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"settings": {"seed": 2, "steps": 10}}, r"its settings\.seed is 1, not 2"),
        ({"data": ["b.txt"]}, r'its data is \["a\.txt"\], not \["b\.txt"\]'),
        ({"prompt": True}, r"its prompt is null, not true"),
    ],
)
def test_another_config_is_refused_by_its_first_key(tmp_path, change, sentence):
    Run.create(tmp_path / "run", CONFIG).log({"step": 1})
    with pytest.raises(ValueError, match=sentence):
        Run.create(tmp_path / "run", CONFIG | change)
    anew = Run.create(tmp_path / "run", CONFIG | change, overwrite=True)
    assert anew.metrics() == []
    assert Run.open(anew.path).config == CONFIG | change


def test_two_spellings_of_a_path_are_one_model(tmp_path, monkeypatch):
    (tmp_path / "models" / "mine").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    places = {"model": ["base"], "data.sources": []}
    config = {"model": "models/mine", "data": {"sources": ["models", "gpt2"]}}
    Run.create("run", config, places=places)
    spellings = ("models/mine/", "./models/mine", str(tmp_path / "models" / "mine"), "models/../models/mine")
    for spelling in spellings:
        for out in ("run/", str(tmp_path / "run")):
            again = {"model": spelling, "data": {"sources": [f"{tmp_path}/models", "gpt2"]}}
            run = Run.create(out, again, places=places)
            assert Run.open(run.path).config == config  # as it was written first
    for other in ("models", "models/none", "mine", "hub/mine"):
        with pytest.raises(ValueError, match=f'its model is "models/mine", not "{other}"'):
            Run.create("run", config | {"model": other}, places=places)
    with pytest.raises(ValueError, match=r'its data\.sources is \["models", "gpt2"\], not \["models"\]'):
        Run.create("run", config | {"data": {"sources": ["models"]}}, places=places)
    with pytest.raises(ValueError, match="its model is"):
        Run.create("run", config | {"model": "models/mine/"})  # a key that nobody called a place


def test_a_name_that_is_no_path_stays_a_name(tmp_path, monkeypatch):
    """`base` is the shipped model, `./base` a folder called so."""
    (tmp_path / "base").mkdir()
    monkeypatch.chdir(tmp_path)
    Run.create("run", {"model": "base"}, places={"model": ["base"]})
    with pytest.raises(ValueError, match=r'its model is "base", not "\./base"'):
        Run.create("run", {"model": "./base"}, places={"model": ["base"]})


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("years")
    for overwrite in (False, True):
        with pytest.raises(ValueError, match="is not empty and holds no run"):
            Run.create(tmp_path, CONFIG, overwrite=overwrite)
    assert (tmp_path / "thesis.txt").read_text() == "years"


def test_a_saved_model_is_no_run(tmp_path):
    """It has a config.json as well."""
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_text("{}")
    for content in (None, "not JSON", '{"CUDA": "12"}', "[]"):
        if content is not None:
            (tmp_path / "environment.json").write_text(content)
        for overwrite in (False, True):
            with pytest.raises(ValueError, match="is not empty and holds no run"):
                Run.create(tmp_path, CONFIG, overwrite=overwrite)
    assert sorted(item.name for item in tmp_path.iterdir()) == ["config.json", "environment.json", "model.safetensors"]


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("at", range(4))
def test_a_kill_while_it_is_made_leaves_a_folder_to_go_on_in(tmp_path, monkeypatch, at, overwrite):
    """Killed at each thing that is written, half a file left under its hidden name."""
    path = tmp_path / "run"
    left = at

    def dies(*given, real, **named):
        nonlocal left
        left -= 1
        if left < 0:
            (path / ".config.json.99").write_text("{")
            raise KeyboardInterrupt
        return real(*given, **named)

    with monkeypatch.context() as patch:
        for name in ("write_json", "check_writable_folder"):
            patch.setattr(folder, name, functools.partial(dies, real=getattr(folder, name)))
        path.mkdir()
        with pytest.raises(KeyboardInterrupt):
            Run.create(path, CONFIG, overwrite=overwrite)
    run = Run.create(path, CONFIG, overwrite=overwrite)
    assert Run.open(path).config == CONFIG
    assert run.checkpoints.is_dir()


def files_of(path):
    return {str(item.relative_to(path)) for item in path.rglob("*") if item.is_file()}


def test_overwriting_leaves_nothing_of_the_run_before(tmp_path):
    run = Run.create(tmp_path / "run", CONFIG)
    for name in ("done", "samples/greedy.jsonl"):
        run.save(name, [{}])
    run.add(rows_of({"ppl": 2.0}), {"part": "texts"})
    run.log({"step": 1})
    for name in ("model", "adapter", "tensorboard", ".model", ".old-model", "checkpoints/.writing"):
        (run.path / name).mkdir(parents=True)
        (run.path / name / "weights").write_text("old")
    for name in (".results.jsonl.99", ".done.json.7", "notes.txt", ".hidden", "other.json", ".done.json.bak"):
        (run.path / name).write_text("left by a kill, or the user's own")
    anew = Run.create(run.path, CONFIG, overwrite=True)
    users = {"notes.txt", ".hidden", "other.json", ".done.json.bak"}
    assert files_of(run.path) == {"config.json", "environment.json", *users}
    assert len(anew.load("environment")["starts"]) == 1


def test_a_run_writes_only_files_that_overwriting_removes(tmp_path):
    run = Run.create(tmp_path / "run", CONFIG)
    with pytest.raises(ValueError, match=r"captions\.json is no file of a run"):
        run.save("captions", {})


def test_metrics_survive_a_torn_line_and_go_back(tmp_path):
    run = Run.create(tmp_path / "run", CONFIG)
    for step in (10, 20, 30):
        run.log({"step": step, "nll": step / 10})
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 40, "nl')
    assert [line["step"] for line in run.metrics()] == [10, 20, 30]
    run.rewind(20)
    run.log({"step": 21, "nll": float("inf")})
    assert run.metrics() == [{"step": 10, "nll": 1.0}, {"step": 20, "nll": 2.0}, {"step": 21, "nll": None}]


def test_save_and_load(tmp_path):
    run = Run.create(tmp_path / "run", CONFIG)
    run.save("done", {"validation_ppl": 20.5})
    run.save("samples/greedy.jsonl", [{"id": 0, "continuation": "a"}, {"id": 1, "continuation": "b"}])
    assert json.loads((run.path / "done.json").read_text()) == {"validation_ppl": 20.5}
    assert [record["continuation"] for record in run.load("samples/greedy.jsonl")] == ["a", "b"]
    with pytest.raises(FileNotFoundError, match=r"has no samples/none\.jsonl"):
        run.load("samples/none.jsonl")


def test_other_processes_write_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    run = Run.create(tmp_path / "run", CONFIG)
    run.log({"step": 1})
    run.finish({})
    assert not run.path.exists()


def test_open_says_what_is_missing_or_broken(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"holds no run: there is no config\.json in it"):
        Run.open(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match=r"config\.json is broken"):
        Run.open(tmp_path)
