"""The paper's explanatory figures: how hard each loss pushes a token, and how the novel set shrinks."""

from __future__ import annotations

from paper.gradients import GradientCurves, draw_gradients, gradient_curves, unlikelihood_sentences
from paper.novel_set import NovelSet, draw_novel_set, novel_set, novel_set_of_ids, shown, split_words
from paper.outcome import Experiment, Outcome, Setup, Shown
from scalegrad.data import gpt2_tokenizer
from scalegrad.results.comparison import Comparison, Plot, System

SENTENCE = "people who are interested in text"  # the paper prints its first words
LOOPING = "The horses are brown and white. The horses are tired."
KINDS = {
    "T-N": "target, novel",
    "T-NN": "target, not novel",
    "NT-N": "other, novel",
    "NT-NN": "other, not novel",
}


def gradients(setup: Setup) -> Outcome:
    """Figure 1: |∂L/∂o| of a token against its probability, and what unlikelihood does where its factor is negative."""
    curves = gradient_curves(setup.gamma, setup.alpha)
    caption = (
        "a: gradient norms of ScaleGrad for a vocabulary of two tokens, one of them novel; MLE dashed. b: what "
        "multiplies p in the gradient of a bystander. c, d: unlikelihood at the target, its norm and what a step does."
    )
    return Outcome(
        [Shown(f"Gradient norm of a token, by its kind and its probability p (γ = {setup.gamma:g})", _norms(curves))],
        [Plot("gradients", caption, draw_gradients(curves))],
        unlikelihood_sentences(curves),
        {"gamma": setup.gamma, "alpha": setup.alpha, "from": "autograd on the library's own losses, float64"},
    )


def _norms(curves: GradientCurves) -> Comparison:
    places = {f"p = {curves.p[i]:.1f}": i for i in range(9, len(curves.p), 20)}  # .1, .3, .5, .7, .9
    rows = [(f"SG {kind}: {KINDS[kind]}", "sg", line) for kind, line in curves.scale_grad.items()]
    rows += [
        (f"MLE {kind}: {meaning}", "mle", curves.mle[kind]) for kind, meaning in (("T", "target"), ("NT", "other"))
    ]
    systems = [
        System(name, {at: line[i] for at, i in places.items()}, objective=objective) for name, objective, line in rows
    ]
    return Comparison(systems)


def novel_tokens(setup: Setup) -> Outcome:
    """Figure 4: the novel set along a sentence, by the paper's tokenizer, and along one that says things again."""
    tokenizer = gpt2_tokenizer()
    sentence = setup.sentence or SENTENCE
    ids = tokenizer.encode(sentence).ids
    by_tokens = novel_set_of_ids(ids, [tokenizer.decode([i]) for i in ids], tokenizer.get_vocab_size())
    by_words = novel_set(split_words(LOOPING))
    return Outcome(
        [
            Shown(f"“{sentence}”, in GPT-2's tokens", _sizes(by_tokens)),
            Shown(f"“{LOOPING}”, in words", _sizes(by_words)),
        ],
        [
            Plot("novel-set", f"“{sentence}” over GPT-2's {by_tokens.vocab:,} tokens.", draw_novel_set(by_tokens)),
            Plot("novel-set-of-a-loop", f"“{LOOPING}”: a target said before is not novel.", draw_novel_set(by_words)),
        ],
        ["The novel set starts as the whole vocabulary and loses a token whenever a new one is said."],
        {"tokenizer": "GPT-2"},
    )


def _sizes(found: NovelSet) -> Comparison:
    return Comparison(
        [
            System(
                f"{at}. {shown(step.target)}{'' if step.is_novel else ' (said before)'}",
                {"n_seen": step.n_seen, "n_novel": step.n_novel},
            )
            for at, step in enumerate(found.steps, start=1)
        ]
    )


EXPERIMENTS = (
    Experiment("gradients", "Gradients of ScaleGrad, MLE and unlikelihood", ("figure 1",), gradients, scaled=False),
    Experiment("novel-set", "How the novel set shrinks along a sentence", ("figure 4",), novel_tokens, scaled=False),
)
