"""What `scalegrad doctor` finds: told apart are what is fine, what is not there, and what is wrong."""

import importlib.metadata

import pytest
import torch

from scalegrad.lab import doctor


def test_the_losses_agree_here():
    found = {one.name: one for one in doctor.losses()}
    assert list(found) == ["sparse", "chunked", "triton"]
    assert {found[name].state for name in ("sparse", "chunked")} == {"ok"}
    assert found["triton"].state == ("ok" if torch.cuda.is_available() else "absent")


def test_a_loss_that_errs_is_wrong(monkeypatch):
    """Off by a thousandth: as much as a kernel that is compiled for another GPU might be."""
    plain = doctor.SF.scale_grad
    monkeypatch.setattr(
        doctor.SF,
        "scale_grad",
        lambda *args, impl, **options: plain(*args, impl=impl, **options) * (1.0 if impl == "reference" else 1.01),
    )
    found = {one.name: one for one in doctor.losses()}
    assert (found["sparse"].state, found["chunked"].state) == ("wrong", "ok")
    assert found["sparse"].said.endswith("differ from the reference by 1e-02 at most, allowed is 2e-05")


def test_one_that_fails_says_how(monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("no kernel image is available\nfor this device")

    monkeypatch.setattr(doctor.SF, "linear_scale_grad", broken)
    (found,) = [one for one in doctor.losses() if one.name == "chunked"]
    assert (found.state, found.said) == ("wrong", "RuntimeError: no kernel image is available")


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
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert doctor._hub().said.startswith("HF_HUB_OFFLINE is set")


def test_the_shipped_files():
    found = {one.name: one for one in doctor.shipped()}
    assert (found["texts"].state, found["model"].state) == ("ok", "ok")
    assert found["texts"].said == "WikiText: 2,507,007 words"
