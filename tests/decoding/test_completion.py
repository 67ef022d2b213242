"""Continuations to a file: batches, memory, and every way a run can be cut short."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from scalegrad import decoding
from scalegrad.decoding import Prefix
from scalegrad.models.memory import batch_estimate, out_of_memory
from scalegrad.models.pretrained import weights_checksum


class Letters:
    """Ids 3 … 28 are letters; enough of a tokenizer for what is decoded here."""

    def decode(self, ids: list[int], **_: Any) -> str:
        return "".join(chr(94 + i) for i in ids if i >= 3)


PREFIXES = [
    Prefix(Letters().decode(ids), tuple(ids))
    for ids in ([random.Random(n).randrange(3, 29) for _ in range(1 + n % 5)] for n in range(23))
]


@pytest.fixture(scope="module")
def model(make_model: Any) -> Any:
    return make_model("gpt2", vocabulary=29, seed=6)


def run(model: Any, out: Path, **options: Any) -> decoding.Completed:
    options = {"strategy": "top_p=0.9", "new_tokens": 9, "batch": 4, **options}
    return decoding.complete(model, Letters(), PREFIXES, out, **options)


@pytest.fixture(scope="module")
def whole(model: Any, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a run nobody disturbed."""
    out = tmp_path_factory.mktemp("whole") / "out.jsonl"
    run(model, out)
    return out.read_bytes()


def test_the_file_holds_what_generate_gives_one_by_one(model: Any, whole: bytes) -> None:
    lines = [json.loads(line) for line in whole.splitlines()]
    assert [line["id"] for line in lines] == list(range(23))
    for number, (line, prefix) in enumerate(zip(lines, PREFIXES, strict=True)):
        (new,) = decoding.generate(model, [prefix.ids], "top_p=0.9", new_tokens=9, keys=[number])
        assert line == {
            "id": number,
            "prefix": prefix.text,
            "continuation": Letters().decode(new),
            "tokens": len(new),
        }


def test_batch_size_and_beams_change_nothing(model: Any, tmp_path: Path, whole: bytes) -> None:
    for batch in (1, 7, 64, None):
        run(model, tmp_path / f"{batch}", batch=batch)
        assert (tmp_path / f"{batch}").read_bytes() == whole
    beams = [run(model, tmp_path / f"beam{batch}", strategy="beam=3,gnmt=1.0", batch=batch).out for batch in (1, 6)]
    assert beams[0].read_bytes() == beams[1].read_bytes()


def stop_after(batches: int) -> Any:
    """A progress callback that pulls the plug."""
    calls = iter(range(batches))

    def progress(done: int, total: int) -> None:
        if next(calls, None) is None:
            raise KeyboardInterrupt

    return progress


def test_cut_anywhere_and_resumed_the_file_is_the_same(model: Any, tmp_path: Path, whole: bytes) -> None:
    """Stop after some batches, then also tear the last lines at an arbitrary byte, as a kill would."""
    for trial in range(12):
        rng, out = random.Random(trial), tmp_path / f"{trial}.jsonl"
        with pytest.raises(KeyboardInterrupt):
            run(model, out, progress=stop_after(rng.randrange(5)))
        partial = out.with_name(out.name + ".partial")
        assert not out.exists()
        content = partial.read_bytes()
        kept = content[: rng.randrange(len(content) + 1)]
        partial.write_bytes(kept)
        done = run(model, out)
        assert done.resumed == kept.count(b"\n")
        assert out.read_bytes() == whole
        assert sorted(path.name for path in tmp_path.glob(f"{trial}.*")) == [out.name, out.name + ".meta.json"]


def test_a_run_cut_between_the_last_line_and_the_end(model: Any, tmp_path: Path, whole: bytes) -> None:
    out = tmp_path / "out.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run(model, out, progress=stop_after(5))  # the sixth batch is the last
    assert run(model, out).resumed == 23
    assert out.read_bytes() == whole


def test_garbage_in_the_middle_is_made_again(model: Any, tmp_path: Path, whole: bytes) -> None:
    out = tmp_path / "out.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run(model, out, progress=stop_after(2))
    partial = tmp_path / "out.jsonl.partial"
    lines = partial.read_bytes().splitlines(keepends=True)
    partial.write_bytes(b"".join([*lines[:3], b"\0\0\0\0\n", *lines[4:]]))
    with pytest.raises(KeyboardInterrupt):
        run(model, out, progress=stop_after(0))
    assert partial.read_bytes() == b"".join(lines[:4])  # nothing of the old tail is left
    assert run(model, out).resumed == 4
    assert out.read_bytes() == whole


def test_a_finished_file_is_left_alone(model: Any, tmp_path: Path, whole: bytes) -> None:
    out = tmp_path / "out.jsonl"
    run(model, out)
    before = out.stat().st_mtime_ns
    again = run(model, out)
    assert (again.resumed, again.new_tokens, again.texts) == (23, 0, 23)
    assert out.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"strategy": "top_p=0.8"}, 'was begun with strategy "top_p=0.9", and this run has "top_p=0.8"'),
        ({"seed": 1}, "was begun with seed 0, and this run has 1"),
        ({"new_tokens": 8}, "was begun with new_tokens 9, and this run has 8"),
        ({"name": "other"}, 'was begun with model "", and this run has "other"'),
    ],
)
def test_other_settings_are_refused(model: Any, tmp_path: Path, change: dict[str, Any], says: str) -> None:
    out = tmp_path / "out.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run(model, out, progress=stop_after(1))
    for _ in range(2):  # while it is under way, and when it is finished
        with pytest.raises(ValueError, match=says):
            run(model, out, **change)
        run(model, out)
    assert run(model, out, **change, overwrite=True).resumed == 0


def test_other_weights_and_prefixes_are_refused(model: Any, make_model: Any, tmp_path: Path) -> None:
    run(model, tmp_path / "out")
    with pytest.raises(ValueError, match="was begun with weights"):
        run(make_model("gpt2", vocabulary=29, seed=7), tmp_path / "out")
    with pytest.raises(ValueError, match="was begun with prefixes"):
        decoding.complete(model, Letters(), PREFIXES[:5], tmp_path / "out", "top_p=0.9", new_tokens=9)


def test_files_that_are_not_ours(model: Any, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious\n")
    with pytest.raises(ValueError, match=r"exists, without mine.meta.json"):
        run(model, tmp_path / "mine")
    assert (tmp_path / "mine").read_text() == "precious\n"
    run(model, tmp_path / "out")
    (tmp_path / "out.meta.json").write_text("{")
    with pytest.raises(ValueError, match=r"out.meta.json is damaged"):
        run(model, tmp_path / "out")
    with pytest.raises(ValueError, match="is a folder"):
        run(model, tmp_path)


def test_a_second_run_at_the_same_time_is_refused(model: Any, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"

    def meanwhile(done: int, total: int) -> None:
        for overwrite in (False, True):
            with pytest.raises(ValueError, match="another run is writing"):
                run(model, out, overwrite=overwrite)

    assert run(model, out, progress=meanwhile).texts == 23


def short_of_memory(model: Any, most: int, error: Exception) -> list[int]:
    """Let the model's forward fail above `most` rows; returns the list of sizes it was called with."""
    sizes: list[int] = []

    def check(module: Any, positional: Any, keyword: dict[str, Any]) -> None:
        sizes.append(len(keyword["input_ids"]))
        if sizes[-1] > most:
            raise error

    model.register_forward_pre_hook(check, with_kwargs=True)
    return sizes


def test_a_batch_under_way_is_run_again_with_its_neighbours(make_model: Any, tmp_path: Path, whole: bytes) -> None:
    model, out = make_model("gpt2", vocabulary=29, seed=6), tmp_path / "out.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run(model, out, progress=stop_after(1))
    partial = tmp_path / "out.jsonl.partial"
    partial.write_bytes(b"".join(partial.read_bytes().splitlines(keepends=True)[:6]))  # one batch and half of another
    batches = []

    def watch(module: Any, positional: Any, keyword: dict[str, Any]) -> None:
        if keyword["input_ids"].shape[1] > 1 or not batches:  # the prompt, not a further token
            batches.append(keyword["input_ids"].tolist())

    model.register_forward_pre_hook(watch, with_kwargs=True)
    assert run(model, out).resumed == 6
    order = sorted(PREFIXES, key=lambda prefix: -len(prefix.ids))
    assert [row[-len(prefix.ids) :] for row, prefix in zip(batches[0], order[4:8], strict=True)] == [
        list(prefix.ids) for prefix in order[4:8]
    ]
    assert out.read_bytes() == whole


@pytest.mark.parametrize(
    "error",
    [torch.OutOfMemoryError("CUDA out of memory."), RuntimeError("DefaultCPUAllocator: can't allocate memory: …")],
)
def test_out_of_memory_halves_the_batch(make_model: Any, tmp_path: Path, whole: bytes, error: Exception) -> None:
    model = make_model("gpt2", vocabulary=29, seed=6)
    sizes = short_of_memory(model, 4, error)
    done = run(model, tmp_path / "out", batch=16)
    assert (tmp_path / "out").read_bytes() == whole
    assert done.batch == 4
    assert sizes[:3] == [16, 8, 4]
    assert max(sizes[2:]) == 4


def test_a_resumed_run_keeps_the_halved_batches(make_model: Any, tmp_path: Path) -> None:
    model = make_model("gpt2", vocabulary=29, seed=6)
    short_of_memory(model, 4, torch.OutOfMemoryError("CUDA out of memory."))
    with pytest.raises(KeyboardInterrupt):
        run(model, tmp_path / "out", batch=None, progress=stop_after(1))
    plan = json.loads((tmp_path / "out.meta.json").read_text())["plan"]
    assert plan == [[0, 4]]
    fresh = make_model("gpt2", vocabulary=29, seed=6)
    sizes = short_of_memory(fresh, 99, ValueError())
    run(fresh, tmp_path / "out", batch=None)
    assert max(sizes) == 4


def test_out_of_memory_on_one_prefix_is_said(make_model: Any, tmp_path: Path) -> None:
    model = make_model("gpt2", vocabulary=29, seed=6)
    short_of_memory(model, 0, torch.OutOfMemoryError("CUDA out of memory."))
    with pytest.raises(ValueError, match=r"out of memory on prefix 4 alone \(5 tokens\)"):
        run(model, tmp_path / "out")


def test_other_errors_are_not_taken_for_memory() -> None:
    assert not out_of_memory(RuntimeError("shape mismatch"))
    assert not out_of_memory(ValueError("not enough memory"))
    assert out_of_memory(MemoryError())


def test_estimates_follow_the_model(make_model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """GPT-2 kind: 2 layers × width 16 × keys and values × 4 bytes a token, and ten copies of 40 scores."""
    model = make_model("gpt2")
    monkeypatch.setattr("scalegrad.models.memory.free_memory", lambda device: 2 * 10 * (2 * 2 * 16 * 4 * 100 + 1600))
    assert batch_estimate(model, tokens=100, beams=1) == 8  # ten fit
    assert batch_estimate(model, tokens=100, beams=4) == 2
    assert batch_estimate(model, tokens=100_000, beams=4) == 1


def test_checksums_of_weights(make_model: Any) -> None:
    one, same = make_model("llama"), make_model("llama")
    assert weights_checksum(one) == weights_checksum(same)
    with torch.no_grad():
        same.model.embed_tokens.weight[3, 3] += 1e-6
    assert weights_checksum(one) != weights_checksum(same)
    assert weights_checksum(one.bfloat16()) != weights_checksum(same)


def test_lengths_are_checked_before_the_work(model: Any, make_model: Any, tmp_path: Path) -> None:
    long = [Prefix("", (3,)), Prefix("", (3,) * 100)]
    with pytest.raises(
        ValueError, match="prefix 1 has 100 tokens, which with 29 new ones is more than the model's 128"
    ):
        decoding.complete(model, Letters(), long, tmp_path / "out", new_tokens=29)
    assert decoding.complete(model, Letters(), long, tmp_path / "out", new_tokens=28).texts == 2
    bart = make_model("bart")
    assert decoding.complete(bart, Letters(), long, tmp_path / "bart", new_tokens=29).texts == 2
    with pytest.raises(ValueError, match="there are none"):
        decoding.complete(model, Letters(), [], tmp_path / "none")
    with pytest.raises(ValueError, match="batch must be at least 1, not 0"):
        decoding.complete(model, Letters(), long, tmp_path / "none", batch=0)
