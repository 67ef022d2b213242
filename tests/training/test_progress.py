"""What is told of a training while it runs."""

from types import SimpleNamespace

from scalegrad.training import training_progress


def test_steps_come_with_the_last_figures():
    told = []
    callback = training_progress(lambda *given: told.append(given), "sg=0.5")
    for step, logs in ((1, {}), (2, {"nll": 2.34567, "seen_mass": 0.25}), (3, {"eval_ppl": 10.0}), (4, {"nll": 2.0})):
        callback.on_log(None, None, None, logs=logs)
        callback.on_step_end(None, SimpleNamespace(global_step=step, max_steps=9), None)
    assert told == [
        ("sg=0.5", 1, 9),
        ("sg=0.5 · NLL 2.346 · seen 25.0%", 2, 9),
        ("sg=0.5 · NLL 2.346 · seen 25.0% · validation ppl 10.00", 3, 9),
        ("sg=0.5 · NLL 2.000 · seen 25.0% · validation ppl 10.00", 4, 9),
    ]
