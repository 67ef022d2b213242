"""Settings say what is wrong with them."""

import pytest

from scalegrad.training import Settings


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"batch": 0}, "batch must be a whole number from 1, not 0"),
        ({"patience": True}, "patience must be a whole number from 1, not True"),
        ({"learning_rate": 0.0}, "learning_rate must be a number above 0, not 0.0"),
        ({"learning_rate": float("nan")}, "learning_rate must be a number above 0, not nan"),
        ({"weight_decay": -0.1}, "weight_decay must be at least 0, not -0.1"),
        ({"warmup_steps": float("nan")}, "warmup_steps must be at least 0, not nan"),
        ({"epochs": 0}, "epochs must be a number above 0, not 0"),
        ({"schedule": "wavy"}, "schedule must be one of linear, cosine, .*, not 'wavy'"),
        ({"dtype": "float8"}, "dtype must be one of auto, float32, bfloat16, float16, not 'float8'"),
        ({"max_steps": 3, "epochs": 2}, r"give max_steps \(3\) or epochs \(2\), not both"),
    ],
)
def test_mistakes(options, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        Settings(**options)


def test_a_resumed_run_may_log_elsewhere_but_not_learn_otherwise():
    one, other = Settings(tracker=(), workers=2, log_every=1), Settings()
    assert one.record() == other.record()
    assert Settings(seed=1).record() != other.record()
    assert Settings(evaluate_every=5).record() != other.record()


def test_how_often_to_evaluate():
    assert [Settings(max_steps=n).steps_to_evaluate(n) for n in (3, 10, 35_000)] == [1, 1, 3500]
    assert Settings(evaluate_every=7).steps_to_evaluate(1000) == 7


def test_a_configuration_that_cannot_serve_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    (tmp_path / "broken.json").write_text("{version: 2}")
    with pytest.raises(ValueError, match=r"^fsdp: .*broken\.json is not JSON \(Expecting property name"):
        Settings(fsdp=str(tmp_path / "broken.json"))
    (tmp_path / "good.json").write_text("{}")
    monkeypatch.setattr("scalegrad.training.settings.find_spec", lambda name: None)
    with pytest.raises(
        ValueError, match=r"^deepspeed: the package is not installed; pip install deepspeed, or use fsdp$"
    ):
        Settings(deepspeed=str(tmp_path / "good.json"))
