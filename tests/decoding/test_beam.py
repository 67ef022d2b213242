"""Beam search against exhaustive search, against Hugging Face's own, and its word-level blocking."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch

from scalegrad import decoding
from scalegrad.decoding import Beam, BeamSearch
from scalegrad.decoding.words import WordBlock, repeats_word_ngram

END = 1


def normalised_scores(
    model: Any, prompt: list[int], hypotheses: list[tuple[int, ...]], beta: float, min_new_tokens: int = 0
) -> dict[tuple[int, ...], float]:
    """log p / ((5 + length) / 6)^beta of each, from plain forward passes; no end symbol before the minimum length."""
    scores = {}
    for length in {len(new) for new in hypotheses}:
        same = [new for new in hypotheses if len(new) == length]
        before = torch.tensor([new[:-1] for new in same], dtype=torch.long)
        with torch.no_grad():
            if model.config.is_encoder_decoder:
                first = torch.full((len(same), 1), model.generation_config.decoder_start_token_id)
                decoder = torch.cat([first, before], 1)
                logits = model(input_ids=torch.tensor([prompt] * len(same)), decoder_input_ids=decoder).logits
            else:
                logits = model(torch.cat([torch.tensor([prompt] * len(same)), before], 1)).logits[:, len(prompt) - 1 :]
        log_p = torch.log_softmax(logits.double(), -1)
        for row, new in enumerate(same):
            total = sum(log_p[row, step, token].item() for step, token in enumerate(new))
            scores[new] = -math.inf if END in new[:min_new_tokens] else total / ((5 + length) / 6) ** beta
    return scores


def until_end(sequences: torch.Tensor, start: int) -> list[list[int]]:
    return [list(itertools.takewhile(lambda token: token != END, row)) for row in sequences[:, start:].tolist()]


def every_hypothesis(vocabulary: int, longest: int) -> list[tuple[int, ...]]:
    """All texts that end with the end symbol or at the longest length, with no end symbol before that."""
    words = [token for token in range(vocabulary) if token != END]
    ended = [(*body, END) for n in range(longest) for body in itertools.product(words, repeat=n)]
    return ended + list(itertools.product(words, repeat=longest))


@pytest.mark.parametrize("beta", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("min_new_tokens", [0, 2])
def test_a_beam_that_holds_everything_is_exhaustive_search(
    make_model: Any, any_kind: str, beta: float, min_new_tokens: int
) -> None:
    vocabulary, longest, prompts = 4, 4, [[3, 2, 2], [2]]
    model = make_model(any_kind, vocabulary=vocabulary, seed=11)
    inputs = decoding.generation.padded(model, prompts)
    arguments = decoding.generation_arguments(
        model, inputs, Beam(81, gnmt=beta), new_tokens=longest, min_new_tokens=min_new_tokens
    )
    out = model.generate(**inputs, **arguments, return_dict_in_generate=True)
    for row, prompt in enumerate(prompts):
        scores = normalised_scores(model, prompt, every_hypothesis(vocabulary, longest), beta, min_new_tokens)
        best = max(scores, key=lambda new: scores[new])
        start = 1 if model.config.is_encoder_decoder else inputs["input_ids"].shape[1]
        assert tuple(out.sequences[row, start : start + len(best)].tolist()) == best
        assert out.sequences_scores[row].item() == pytest.approx(scores[best], abs=1e-5)


def test_beta_decides_between_short_and_long(make_model: Any) -> None:
    """The normalisation is what makes longer texts win: seen on a model where it does."""
    lengths = {}
    for beta in (0.0, 4.0):
        model = make_model("gpt2", vocabulary=4, seed=11)
        (new,) = decoding.generate(model, [[3, 2]], Beam(81, gnmt=beta), new_tokens=4)
        lengths[beta] = len(new)
    assert lengths == {0.0: 0, 4.0: 3}


def both_searches(model: Any, prompts: list[list[int]], block: int) -> tuple[Any, Any]:
    """Ours at beta 0, and Hugging Face's canonical search: length_penalty 0 and early_stopping "never"."""
    inputs = decoding.generation.padded(model, prompts)
    arguments = decoding.generation_arguments(model, inputs, Beam(3, block=block), new_tokens=8)
    theirs = {"num_beams": 3, "do_sample": False, "length_penalty": 0.0, "early_stopping": "never"}
    theirs |= {"max_new_tokens": 8, "no_repeat_ngram_size": block, "output_scores": True}
    ours = model.generate(**inputs, **arguments, return_dict_in_generate=True)
    return ours, model.generate(**inputs, **theirs, return_dict_in_generate=True)


@pytest.mark.parametrize("seed", range(4))
def test_without_normalisation_it_is_hugging_faces_search(make_model: Any, any_kind: str, seed: int) -> None:
    model = make_model(any_kind, vocabulary=12, seed=seed)
    ours, theirs = both_searches(model, [[3, 4, 5, 6], [7, 8], [9]], block=0)
    start = 1 if model.config.is_encoder_decoder else 4
    assert until_end(ours.sequences, start) == until_end(theirs.sequences, start)
    torch.testing.assert_close(ours.sequences_scores, theirs.sequences_scores, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
@pytest.mark.parametrize("seed", range(4))
def test_with_ngrams_of_ids_blocked_too(make_model: Any, kind: str, seed: int) -> None:
    """On prompts of one length: theirs lets padding and start symbols take part in n-grams."""
    model = make_model(kind, vocabulary=12, seed=seed)
    ours, theirs = both_searches(model, [[3, 4, 5, 6], [7, 8, 7, 8]], block=2)
    assert until_end(ours.sequences, 4) == until_end(theirs.sequences, 4)
    torch.testing.assert_close(ours.sequences_scores, theirs.sequences_scores, atol=1e-5, rtol=0)


def test_several_results_come_best_first(make_model: Any) -> None:
    model = make_model("llama", vocabulary=4, seed=2)
    prompt = [3, 2]
    inputs = decoding.generation.padded(model, [prompt])
    arguments = decoding.generation_arguments(model, inputs, Beam(81, gnmt=1.0), new_tokens=4)
    arguments["num_return_sequences"] = 5
    out = model.generate(**inputs, **arguments, return_dict_in_generate=True)
    scores = sorted(normalised_scores(model, prompt, every_hypothesis(4, 4), 1.0).values(), reverse=True)
    assert out.sequences_scores.tolist() == pytest.approx(scores[:5], abs=1e-5)


# Word-level blocking ---------------------------------------------------------------------------------------------


class Spelling:
    """Ids to text as a subword tokenizer spells it: "##" joins a piece to the one before."""

    pieces = ("", "", "the", "cat", "ca", "##t", "ran", "##s")  # 0 and 1: padding and end

    def batch_decode(self, rows: list[list[int]], **_: Any) -> list[str]:
        return [" ".join(self.pieces[i] for i in row if i > 1).replace(" ##", "") for row in rows]


def real_tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {"[PAD]": 0, "[END]": 1, "the": 2, "cat": 3, "ca": 4, "##t": 5, "ran": 6, "##s": 7}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[PAD]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.WordPiece(cleanup=False)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", eos_token="[END]")


def test_the_same_words_in_other_ids_are_caught() -> None:
    block = WordBlock(real_tokenizer(), 2)
    # "the cat the cat" and "the cat the ca|t" repeat a bigram of words; "the cat the cats" does not; ends do not count.
    assert block([[2, 3, 2, 3], [2, 3, 2, 4, 5], [2, 3, 2, 3, 7], [2, 3, 1, 1, 1]]) == [True, True, False, False]


def test_words_and_marks() -> None:
    assert repeats_word_ngram("a b. a b.", 3)
    assert not repeats_word_ngram("a b. A b.", 3)  # case counts
    assert not repeats_word_ngram("a b", 3)
    assert repeats_word_ngram("no, no,", 2)


@pytest.mark.parametrize("beta", [0.0, 1.5])
def test_blocked_search_is_exhaustive_search_over_texts_without_repeats(make_model: Any, beta: float) -> None:
    """A hypothesis counts only if no text on the way to it repeats a bigram of words."""
    model = make_model("gpt2", vocabulary=6, seed=5)
    tokenizer, spelling, longest, prompt = real_tokenizer(), Spelling(), 4, [2, 4]

    def clean(new: tuple[int, ...]) -> bool:
        texts = spelling.batch_decode([list(new[:n]) for n in range(1, len(new) + 1)])
        for text in texts:
            pairs = list(itertools.pairwise(text.split()))
            if len(pairs) != len(set(pairs)):
                return False
        return True

    every = every_hypothesis(6, longest)
    scored = normalised_scores(model, prompt, every, beta, min_new_tokens=3)
    best = max((new for new in every if clean(new)), key=lambda new: scored[new])
    assert best != max(every, key=lambda new: scored[new])  # the blocking matters here
    (found,) = decoding.generate(
        model,
        [prompt],
        Beam(625, gnmt=beta, block_words=2),
        new_tokens=longest,
        min_new_tokens=3,
        tokenizer=tokenizer,
    )
    assert found == [token for token in best if token != END]


def test_a_narrow_beam_never_repeats_words_where_it_would(make_model: Any) -> None:
    model = make_model("gpt2", vocabulary=8, seed=5)
    tokenizer = real_tokenizer()
    prompts = [[2, 6], [3], [6, 6, 2]]

    def texts(strategy: str) -> list[str]:
        rows = decoding.generate(model, prompts, strategy, new_tokens=20, min_new_tokens=20, tokenizer=tokenizer)
        return list(tokenizer.batch_decode(rows, skip_special_tokens=True))

    assert any(repeats_word_ngram(text, 3) for text in texts("beam=3"))
    assert not any(repeats_word_ngram(text, 3) for text in texts("beam=3,block_words=3"))


def test_a_row_that_nothing_may_continue_ends_there(make_model: Any) -> None:
    model = make_model("gpt2", vocabulary=8, seed=5)
    search = BeamSearch(blocked=lambda hypotheses: [len(new) > 3 for new in hypotheses])
    inputs = decoding.generation.padded(model, [[2, 6], [3]])
    arguments = decoding.generation_arguments(model, inputs, "beam=2", new_tokens=9, min_new_tokens=9)
    out = model.generate(**inputs, **{**arguments, "custom_generate": search})
    assert out[:, 2:].tolist() == [[*row[2:5], END] for row in out.tolist()]


def test_word_blocking_asks_for_a_tokenizer(make_model: Any) -> None:
    with pytest.raises(ValueError, match="block_words=3 looks at decoded words: give tokenizer="):
        decoding.generate(make_model("gpt2"), [[3]], "beam=2,block_words=3", new_tokens=2)


def test_only_rows_that_lack_hypotheses_are_looked_at_further(make_model: Any) -> None:
    model = make_model("gpt2", vocabulary=40, seed=2)
    asked: list[list[list[int]]] = []

    def blocked(hypotheses: list[list[int]]) -> list[bool]:
        asked.append(hypotheses)
        return [len(asked) == 1 and place < 4 for place in range(len(hypotheses))]  # of the first row, all but one

    prompts = torch.tensor([[5, 6], [7, 8]])
    search = BeamSearch(blocked=blocked)
    model.generate(prompts, num_beams=2, max_new_tokens=2, min_new_tokens=2, custom_generate=search)
    # One end symbol: 2 · 2 extensions of each row, but the first step has one hypothesis to extend. Four of the first
    # row's are blocked, so its next 12 are looked at, the second row's are not; then both rows have enough.
    assert [len(hypotheses) for hypotheses in asked] == [8, 12, 8]
