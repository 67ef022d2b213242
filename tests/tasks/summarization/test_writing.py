"""Writing summaries: the order, the batch and memory do not change them; what was said is what the model wrote."""

import pytest
import torch

from scalegrad import decoding
from scalegrad.data.pairs import Pair
from scalegrad.tasks.summarization import writing
from scalegrad.tasks.summarization.bertsum import BertSum, load_bert, load_bert_tokenizer
from scalegrad.tasks.summarization.config import BEAM
from scalegrad.tasks.summarization.formats import format_for
from scalegrad.tasks.summarization.selection import choose_beta
from scalegrad.tasks.summarization.writing import summarize

PAIRS = [
    Pair("1", ("the cat sat on the mat .", "it was red ."), ("the cat",)),
    Pair("2", (), ("a",)),
    Pair("3", ("a dog ran .",), ("the dog ran",)),
    Pair("4", ("we show that the model is fast .", "results good .", "it slept ."), ("fast",)),
]


@pytest.fixture(scope="module")
def summarizer(bert_folder):
    torch.manual_seed(4)
    tokenizer = load_bert_tokenizer(bert_folder)
    model = BertSum.from_bert(load_bert(bert_folder), tokenizer, decoder_layers=1, decoder_inner=16).eval()
    with torch.no_grad():
        model.decoder.embed_tokens.weight.mul_(20.0)
        model.lm_head.bias[:6] = -100.0  # no special ids: each text has words
    return model, format_for(model, tokenizer)


def test_the_papers_beam():
    assert str(BEAM) == "beam=5,gnmt=1.0,block_words=3"


@pytest.mark.parametrize("strategy", ["greedy", "beam=3,gnmt=1.0,block_words=3", "top_p=0.9"])
def test_a_summary_does_not_depend_on_its_batch(summarizer, strategy):
    told = []
    options = {"new_tokens": 7, "seed": 2}
    together = summarize(*summarizer, PAIRS, strategy, progress=lambda *done: told.append(done), batch=3, **options)
    assert together == summarize(*summarizer, PAIRS, strategy, batch=1, **options)
    assert together[1] == ""
    assert all(together[place] for place in (0, 2, 3))
    assert told == [(4, 4)]


def test_running_out_of_memory_halves_the_batch(summarizer, monkeypatch):
    expected = summarize(*summarizer, PAIRS, "greedy", new_tokens=5)
    sizes = []

    def tight(model, inputs, *arguments, **options):
        sizes.append(len(inputs["input_ids"]))
        if sizes[-1] > 1:
            raise torch.OutOfMemoryError
        return decoding.generate(model, inputs, *arguments, **options)

    monkeypatch.setattr(writing, "generate", tight)
    assert summarize(*summarizer, PAIRS, "greedy", new_tokens=5, batch=4) == expected
    assert sizes == [3, 2, 1, 1, 1]


def test_nothing_to_summarise(summarizer):
    assert summarize(*summarizer, [PAIRS[1]], "greedy") == [""]


def test_the_prompt_counts_as_said_only_where_asked(summarizer, monkeypatch):
    used = []
    monkeypatch.setattr(writing, "generate", lambda *a, **k: used.append(a[2].seen) or [[7]] * len(a[1]["input_ids"]))
    summarize(*summarizer, PAIRS[:1], "greedy")
    summarize(*summarizer, PAIRS[:1], "greedy", source_seen=True)
    summarize(*summarizer, PAIRS[:1], "greedy,seen=prompt")
    assert used == ["generated", "all", "prompt"]


def test_beta_is_the_one_with_the_best_rouge(summarizer, monkeypatch):
    """A made-up model whose summaries are right at β = 1.5 alone."""
    texts = {0.0: "no", 1.5: "the cat", 2.0: "the"}
    from scalegrad.tasks.summarization import selection

    monkeypatch.setattr(selection, "summarize", lambda m, f, pairs, beam, **_: [texts[beam.gnmt]] * len(pairs))
    choice = choose_beta(*summarizer, PAIRS[:1], betas=(0.0, 1.5, 2.0))
    assert choice.value == 1.5
    assert choice.scores == {0.0: 0.0, 1.5: pytest.approx(100), 2.0: pytest.approx(100 * (2 / 3 + 0 + 2 / 3) / 3)}
