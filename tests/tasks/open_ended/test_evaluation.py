"""The open-ended columns, against a float64 loop that shares no code with them and against published human figures."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from scalegrad.data import encode_corpus, gpt2_tokenizer
from scalegrad.runs import Run
from scalegrad.tasks.open_ended import evaluation
from scalegrad.tasks.open_ended.config import Evaluation
from scalegrad.tasks.open_ended.corpora import Corpus, cut_corpus, find_corpus, text_figures
from scalegrad.tasks.open_ended.evaluation import evaluate, evaluate_run, is_measured, notes
from tests.tasks.open_ended.conftest import CONTEXT, figures

GAMMA = 0.3


def oracle(
    model: Any, chunks: list[list[int]], gamma: float, windows: tuple[int, ...], start: tuple[int, ...] = ()
) -> dict[str, float]:
    """Token by token in float64: probabilities, Python sets and lists, nothing else. `start` is read first, no more."""
    nll = calibrated = seen_mass = 0.0
    total = correct = 0
    used: set[int] = set()
    hits = {f"{kind}_{window}": 0 for kind in ("rep_window", "wrong_rep_window") for window in windows}
    precise = type(model)(model.config).double().eval()
    precise.load_state_dict(model.state_dict())
    for chunk in chunks:
        with torch.no_grad():
            logits = precise(torch.tensor([[*start, *chunk[:-1]]])).logits[0, len(start) :]
        for t, target in enumerate(chunk[1:]):
            p = torch.softmax(logits[t], dim=-1).tolist()
            seen = set(chunk[: t + 1])
            scaled = [q if i in seen else gamma * q for i, q in enumerate(p)]
            nll -= math.log(p[target])
            calibrated -= math.log(scaled[target] / sum(scaled))
            seen_mass += sum(p[i] for i in seen)
            guess = max(range(len(p)), key=p.__getitem__)
            used.add(guess)
            total += 1
            correct += guess == target
            for window in windows:
                again = guess in chunk[1 : t + 1][-window:]
                hits[f"rep_window_{window}"] += again
                hits[f"wrong_rep_window_{window}"] += again and guess != target
    return {
        "ppl": math.exp(nll / total),
        "calibrated_ppl": math.exp(calibrated / total),
        "nats": nll,
        "seen_mass": seen_mass / total,
        "accuracy": correct / total,
        "uniq": len(used),
        **{name: count / total for name, count in hits.items()},
    }


def test_language_modelling_columns_are_those_of_the_loop(tiny, text_file):
    model, tokenizer = tiny
    corpus = find_corpus(str(text_file))
    parts = list(
        evaluate(
            model,
            tokenizer,
            corpus,
            Evaluation(strategy=(), calibrate=GAMMA, chunks=4, batch=3),
            about={"model": "tiny"},
        )
    )
    ids = encode_corpus(corpus.text, tokenizer).tolist()
    width = CONTEXT + 1  # the model's context is the chunk: it is shorter than 1,024
    rows = [ids[i * width : (i + 1) * width] for i in range(len(ids) // width)]
    chosen = [rows[len(rows) * i // 4] for i in range(4)]
    expected = oracle(model, chosen, GAMMA, (16, 32, 128))
    scores = figures(parts)
    text_bytes = sum(len(tokenizer.decode(chunk[1:]).encode()) for chunk in chosen)
    expected["bits_per_byte"] = expected.pop("nats") / math.log(2) / text_bytes
    assert set(scores) == set(expected)
    for name, value in expected.items():
        assert scores[name] == pytest.approx(value, rel=2e-5), name
    assert scores["calibrated_ppl"] != pytest.approx(scores["ppl"], rel=1e-3)
    assert "the model's context" in parts[0].notes[0]
    assert {(r.window, r.corpus, r.split, r.model, r.task, r.n) for part in parts for r in part.rows} == {
        (CONTEXT, "prose.txt", None, "tiny", "open_ended", 4)
    }


def test_the_decoding_time_penalty_has_columns_of_its_own(tiny, text_file):
    """The same loop on a model whose head is told to multiply what was read by γ = 0.2."""
    model, tokenizer = tiny
    corpus = find_corpus(str(text_file))
    options = Evaluation(strategy=("greedy,gamma=0.2",), chunks=2, prefixes=1, batch=1)
    parts = list(evaluate(model, tokenizer, corpus, options))
    chosen = cut_corpus(corpus, tokenizer, CONTEXT, chunks=2, prefixes=0).chunks.tolist()
    nll, hits, used = 0.0, 0, set()
    for chunk in chosen:
        with torch.no_grad():
            rows = model(torch.tensor([chunk[:-1]])).logits[0].double().exp().tolist()
        for t, target in enumerate(chunk[1:]):
            seen = set(chunk[: t + 1])
            weights = [0.2 * w if i in seen else w for i, w in enumerate(rows[t])]
            nll -= math.log(weights[target] / sum(weights))
            guess = max(range(len(weights)), key=weights.__getitem__)
            used.add(guess)
            hits += guess in chunk[1 : t + 1][-128:]
    scores = figures(parts, penalty="gamma=0.2")
    assert scores["ppl"] == pytest.approx(math.exp(nll / (2 * CONTEXT)), rel=2e-5)
    assert scores["rep_window_128"] == hits / (2 * CONTEXT)
    assert scores["uniq"] == len(used)
    assert scores["rep_window_128"] < figures(parts)["rep_window_128"]


def test_without_gamma_there_is_no_calibrated_perplexity(tiny, text_file):
    parts = list(evaluate(*tiny, find_corpus(str(text_file)), Evaluation(strategy=(), chunks=1)))
    assert "calibrated_ppl" not in figures(parts)
    assert all(row.new_tokens is None for part in parts for row in part.rows)


def test_completions_are_greedy_from_the_right_prefixes_and_scored(tiny, text_file, tmp_path):
    model, tokenizer = tiny
    corpus = find_corpus(str(text_file))
    options = Evaluation(strategy=("greedy", "greedy,gamma=0.2"), chunks=0, prefixes=5)
    parts = list(evaluate(model, tokenizer, corpus, options, samples=tmp_path))
    assert figures(parts) == {}
    ids = encode_corpus(corpus.text, tokenizer).tolist()
    prefixes = [ids[301 * c + 50 * i :][:50] for c in range(len(ids) // 301) for i in range(6)]
    chosen = [prefixes[len(prefixes) * i // 5] for i in range(5)]
    lines = [json.loads(line) for line in (tmp_path / "prose.txt.greedy.jsonl").read_text().splitlines()]
    assert [line["prefix"] for line in lines] == [tokenizer.decode(prefix) for prefix in chosen]
    for line, prefix in zip(lines, chosen, strict=True):
        text = list(prefix)
        for _ in range(100):  # the end symbol is banned: every text has 100 tokens
            with torch.no_grad():
                scores = model(torch.tensor([text])).logits[0, -1]
            scores[0] = -torch.inf
            text.append(int(scores.argmax()))
        assert line["continuation"] == tokenizer.decode(text)[len(tokenizer.decode(prefix)) :]
    originals = [json.loads(line) for line in (tmp_path / "prose.txt.human.jsonl").read_text().splitlines()]
    places = [301 * (j // 6) + 50 * (j % 6) + 50 for j in (len(prefixes) * i // 5 for i in range(5))]
    assert [line["continuation"] for line in originals] == [tokenizer.decode(ids[at : at + 100]) for at in places]
    greedy = figures(parts, "greedy")
    assert greedy == text_figures((line["continuation"] for line in lines), unknown=True)
    assert figures(parts, "greedy", "gamma=0.2")["rep_1"] < greedy["rep_1"]
    assert greedy["n_texts"] == figures(parts, "texts", human=True)["n_texts"] == 5


def test_texts_made_before_are_taken_up(tiny, text_file, tmp_path):
    model, tokenizer = tiny
    corpus = find_corpus(str(text_file))
    steps: list[tuple[str, int, int]] = []
    three, four = (Evaluation(chunks=0, prefixes=count, new_tokens=50) for count in (3, 4))
    first = list(evaluate(model, tokenizer, corpus, three, samples=tmp_path))
    again = list(evaluate(model, tokenizer, corpus, three, samples=tmp_path, progress=lambda *s: steps.append(s)))
    assert figures(again, "greedy") == figures(first, "greedy")
    assert steps == []  # nothing was left to generate
    with pytest.raises(ValueError, match="was begun with"):
        list(evaluate(model, tokenizer, corpus, four, samples=tmp_path))
    more = evaluate(model, tokenizer, corpus, four, samples=tmp_path, overwrite=True)
    assert figures(more, "greedy")["n_texts"] == 4


def new_run(folder: Path) -> Run:
    """A finished run without a model of its own."""
    run = Run.create(folder, {"task": "open_ended", "model": "base", "objective": "sg=0.4", "settings": {"seed": 7}})
    run.finish({"selected_step": 30})
    return run


def test_a_run_gets_each_part_as_soon_as_it_is_there_and_goes_on(tiny, text_file, tmp_path, monkeypatch):
    """Stopped after any part and called again, the run ends with the rows of one call; nothing is measured twice."""
    corpus, strategies = find_corpus(str(text_file)), ("greedy", "greedy,gamma=0.4")
    options = Evaluation(strategy=strategies, calibrate=0.4, chunks=2, prefixes=2, new_tokens=40)
    whole = new_run(tmp_path / "whole")
    parts = evaluate_run(whole, *tiny, corpus, options)
    assert [row for part in parts for row in part.rows] == whole.rows()
    assert {(row.run, row.objective, row.seed, row.step) for row in whole.rows()} == {
        ("whole", "sg", 7, 30),
        ("whole", "human", None, None),
    }
    assert {row.strength for row in whole.rows() if row.objective == "sg"} == {0.4}

    stopped, measured, left = new_run(tmp_path / "stopped"), [], 0

    def part(self, *arguments: Any) -> Any:
        if len(measured) == left:
            raise KeyboardInterrupt
        measured.append(self.settings)
        return measure(self, *arguments)

    measure = evaluation._Planned.part
    monkeypatch.setattr(evaluation._Planned, "part", part)
    for left in (1, 3, 4):
        assert not is_measured(stopped, corpus, options)
        with pytest.raises(KeyboardInterrupt):
            evaluate_run(stopped, *tiny, corpus, options)
        assert len(stopped.evaluations()) == left
    left = len(parts)
    again = evaluate_run(stopped, *tiny, corpus, options)
    assert measured == [part.settings for part in parts]
    assert [(r.metric, r.value, r.penalty) for p in again for r in p.rows] == [
        (r.metric, r.value, r.penalty) for p in parts for r in p.rows
    ]
    assert is_measured(stopped, corpus, options)
    left = 0
    assert evaluate_run(stopped, *tiny, corpus, options) == again  # read, not measured


def test_other_settings_are_measured_anew_and_replace_what_was_there(tiny, text_file, tmp_path):
    run, corpus = new_run(tmp_path / "run"), find_corpus(str(text_file))
    few, all_chunks = (Evaluation(strategy=(), chunks=count) for count in (1, None))
    first = evaluate_run(run, *tiny, corpus, few)
    assert is_measured(run, corpus, few)
    assert not is_measured(run, corpus, all_chunks)
    second = evaluate_run(run, *tiny, corpus, all_chunks)
    assert figures(second)["ppl"] != figures(first)["ppl"]
    assert [row for part in second for row in part.rows] == run.rows()
    assert not is_measured(run, corpus, few)  # its rows are no longer there
    assert figures(evaluate_run(run, *tiny, corpus, few)) == figures(first)
    other = Corpus(corpus.name, corpus.split, corpus.text.replace("the", "a"))
    assert not is_measured(run, other, few)
    texts = Evaluation(strategy=("greedy",), chunks=0, prefixes=2, new_tokens=40)
    more = Evaluation(strategy=("greedy",), chunks=0, prefixes=3, new_tokens=40)
    evaluate_run(run, *tiny, corpus, texts)
    with pytest.raises(ValueError, match="was begun with"):
        evaluate_run(run, *tiny, corpus, more)
    assert figures(evaluate_run(run, *tiny, corpus, more, remake=True), "greedy")["n_texts"] == 3


def test_human_rows_of_the_embedded_corpus():
    """Published: .177 .285 .480, 18.27k on the paper's chunks; at 100 tokens its completion row does not apply."""
    tokenizer = gpt2_tokenizer()
    cut = cut_corpus(find_corpus("wikitext-103"), tokenizer)
    rounded = {name: round(value, 5) for name, value in cut.human_tokens().items()}
    assert rounded == {"rep_window_16": 0.17747, "rep_window_32": 0.28479, "rep_window_128": 0.47993, "uniq": 18271}
    texts = cut.human_texts(_Wrapped(tokenizer))
    assert [round(texts[name], 4) for name in ("rep_1", "rep_2", "rep_3")] == [0.3253, 0.0759, 0.0297]
    assert texts["uniq_w"] == 27598
    assert texts["rep_3_no_unk"] < texts["rep_3"]
    assert (len(cut.chunks), len(cut.prefixes), len(cut.blocks)) == (282, 5772, 2886)


class _Wrapped:
    """The decode of a transformers tokenizer, without the wait for one."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    def decode(self, ids: list[int], **_: Any) -> str:
        return str(self.tokenizer.decode(ids))


def test_limits_are_spread_over_the_corpus():
    ids = np.arange(301 * 40)

    class Numbers:
        def encode(self, text: str, add_special_tokens: bool) -> list[int]:
            return ids.tolist()

    cut = cut_corpus(Corpus("numbers", None, "x"), Numbers(), targets=100, chunks=3, prefixes=8)
    assert cut.chunks[:, 0].tolist() == [0, 39 * 101, 79 * 101]  # of 119 chunks: 0, 119/3, 238/3
    assert cut.prefixes[:, 0].tolist() == [301 * c for c in range(0, 40, 5)]  # of 240 prefixes every 30th
    assert cut.blocks[:, 0].tolist() == [301 * c for c in range(0, 40, 5)]  # of 120 blocks every 15th


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"chunks": -1}, "chunks is -1"),
        ({"new_tokens": 0}, "new_tokens is 0"),
        ({"chunks": 0, "prefixes": 0}, "nothing to evaluate"),
        ({"new_tokens": 150}, "the model's context of 160"),
        ({"strategy": ("gready",)}, "gready"),
    ],
)
def test_mistakes_are_said_before_any_work(tiny, text_file, options, said):
    with pytest.raises(ValueError, match=said):
        evaluate(*tiny, find_corpus(str(text_file)), Evaluation(**options))


def test_a_corpus_that_is_too_short(tiny):
    with pytest.raises(ValueError, match="fewer than one chunk of 161"):
        evaluate(*tiny, Corpus("short", None, "two words"), Evaluation(strategy=()))


def test_notes_say_what_does_not_compare():
    chunks = {"window": 1024, "chunks": 282, "all_chunks": 282, "tokenizer": "gpt2"}
    texts = {"new_tokens": 100, "prefixes": 5772, "all_prefixes": 5772, "tokenizer": "gpt2"}
    assert notes(chunks) == notes(texts) == []
    assert "not GPT-2's" in notes(chunks | {"tokenizer": "another"})[0]
    assert notes(texts | {"prefixes": 120})[0].startswith("120 of 5,772 prefixes")
    assert "50 tokens" in notes(texts | {"new_tokens": 50})[0]
    assert "128 targets" in notes(chunks | {"window": 128})[0]


def test_corpora_by_name(tmp_path):
    assert find_corpus("wikitext-103").title == "wikitext-103 test"
    (tmp_path / "ptb.test.txt").write_text(" no it was n't \n")
    assert find_corpus(f"ptb:{tmp_path}").title == "ptb test"
    reviews = tmp_path / "reviews.jsonl"
    reviews.write_text("".join(json.dumps({"text": f"Review <br />{i}."}) + "\n" for i in range(600)))
    found = find_corpus(f"imdb:{reviews}")
    assert (found.name, found.text.count("\n")) == ("imdb", 500)
    assert find_corpus(str(reviews)).text.startswith("Review <br />0.\n")
    with pytest.raises(FileNotFoundError, match="it may be wikitext-103"):
        find_corpus("nowhere.txt")
