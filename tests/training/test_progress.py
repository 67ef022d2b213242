"""What is told of a training while it runs."""

from types import SimpleNamespace

from scalegrad.training import Reporter


def test_steps_come_with_the_last_figures():
    calls = []
    callback = Reporter(lambda *call: calls.append(call), "sg=0.5")
    for step, logs in ((1, {}), (2, {"nll": 2.34567, "seen_mass": 0.25}), (3, {"eval_ppl": 10.0}), (4, {"nll": 2.0})):
        callback.on_log(None, None, None, logs=logs)
        callback.on_step_end(None, SimpleNamespace(global_step=step, max_steps=9), None)
    assert calls == [
        ("sg=0.5", 1, 9),
        ("sg=0.5 · NLL 2.346 · seen 25.0%", 2, 9),
        ("sg=0.5 · NLL 2.346 · seen 25.0% · validation ppl 10.00", 3, 9),
        ("sg=0.5 · NLL 2.000 · seen 25.0% · validation ppl 10.00", 4, 9),
    ]


def test_each_validation_is_counted_by_its_batches():
    calls = []
    callback = Reporter(lambda *call: calls.append(call), "sg=0.5")
    for _ in range(2):
        for _ in range(3):
            callback.on_prediction_step(None, None, None, eval_dataloader=[0] * 3)
        callback.on_evaluate(None, None, None)
    assert [done for _, done, total in calls if total == 3] == [1, 2, 3, 1, 2, 3]
