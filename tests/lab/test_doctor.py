"""What `scalegrad doctor` finds: told apart are what is fine, what is not there, and what is wrong."""

import importlib.metadata
import tomllib
from pathlib import Path

import pytest
import torch

from scalegrad.lab import doctor


def test_the_losses_agree_here():
    found = {one.name: one for one in doctor.losses()}
    assert list(found) == ["sparse", "chunked", "triton"]
    assert {found[name].state for name in ("sparse", "chunked")} == {"ok"}
    assert found["triton"].state == ("ok" if torch.cuda.is_available() else "absent")


@pytest.mark.parametrize(("factor", "error"), [(1.001, "1e-03"), (float("nan"), "nan")])
def test_a_loss_that_errs_is_wrong(monkeypatch, factor, error):
    plain = doctor.SF.scale_grad

    def times(*args, impl, **options):
        return plain(*args, impl=impl, **options) * (1.0 if impl == "reference" else factor)

    monkeypatch.setattr(doctor.SF, "scale_grad", times)
    found = {one.name: one for one in doctor.losses()}
    assert (found["sparse"].state, found["chunked"].state) == ("wrong", "ok")
    assert found["sparse"].said.endswith(f"differ from the reference by {error} at most, allowed is 2e-05")


def test_a_gradient_that_is_nan_is_wrong(monkeypatch):
    """The loss itself is right."""
    plain = doctor._results

    def spoilt(function, inputs, targets, strength, impl):
        loss, *grads = plain(function, inputs, targets, strength, impl)
        return [loss, *(grad if impl == "reference" else grad * float("nan") for grad in grads)]

    monkeypatch.setattr(doctor, "_results", spoilt)
    assert {one.state for one in doctor.losses()} <= {"wrong", "absent"}


def test_one_that_fails_says_how(monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("no kernel image is available\nfor this device")

    monkeypatch.setattr(doctor.SF, "linear_scale_grad", broken)
    (found,) = [one for one in doctor.losses() if one.name == "chunked"]
    assert (found.state, found.said) == ("wrong", "RuntimeError: no kernel image is available")


def test_kernels_that_cannot_run_here_are_no_mistake(monkeypatch):
    monkeypatch.setattr("scalegrad.ops.dispatch._HAS_TRITON", False)
    (found,) = [one for one in doctor.losses() if one.name == "triton"]
    assert (found.state, found.said) == ("absent", "Triton is not installed: sparse and chunked do their work")


def test_every_extra_for_users_is_looked_at():
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    named = tomllib.loads(text)["project"]["optional-dependencies"]
    assert set(named) - set(doctor._EXTRAS) == {"all", "dev", "docs"}


@pytest.mark.parametrize(
    ("requirement", "state", "said"),
    [
        ("torch>=2; extra == 'gguf'", "ok", "GGUF files"),
        ("torch>=99; extra == 'gguf'", "absent", f"torch is {importlib.metadata.version('torch')}, expected >=99"),
        ("no-such>=1; extra == 'gguf' and python_version < '3'", None, ""),  # not for this Python
        ("scalegrad[hf]; extra == 'gguf'", "absent", "no-such is not installed"),  # by way of another extra
    ],
)
def test_extras(requirement, state, said):
    found = list(doctor.extras([requirement, "no-such; extra == 'hf'", "torch>=2"]))
    (own,) = [one for one in found if one.name == "gguf"] or [None]
    assert (own and own.state) == state
    assert state is None or said in own.said


def test_offline_and_a_hub_that_does_not_answer(monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr("urllib.request.getproxies", dict)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nobody listens there
    assert doctor._hub().said.startswith("127.0.0.1 does not answer")
    monkeypatch.setattr("urllib.request.getproxies", lambda: {"no": "localhost"})  # no proxy at all
    assert doctor._hub().state == "absent"
    monkeypatch.setattr("urllib.request.getproxies", lambda: {"https": "http://proxy:3128"})  # nobody knows
    assert doctor._hub().state == "ok"
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert doctor._hub().said.startswith("HF_HUB_OFFLINE is set")


def test_the_shipped_files():
    found = {one.name: one for one in doctor.shipped()}
    assert (found["texts"].state, found["model"].state) == ("ok", "ok")
    assert found["texts"].said == "WikiText: 2,507,007 words"


def test_a_shipped_model_with_other_weights_is_wrong(monkeypatch):
    monkeypatch.setattr(doctor, "_BASE_CHECKSUM", "another")
    found = {one.name: one for one in doctor.shipped()}
    assert (found["texts"].state, found["files"].state) == ("ok", "wrong")


def test_a_shipped_text_that_is_cut_short_is_wrong(monkeypatch):
    import lzma

    def cut(content):
        raise lzma.LZMAError("Compressed data ended before the end-of-stream marker was reached")

    monkeypatch.setattr(lzma, "decompress", cut)
    (found,) = doctor.shipped()
    assert found.state == "wrong"
    assert found.said.startswith("the embedded file wikitext-103.valid.xz is damaged (SHA-256 cut short…")
