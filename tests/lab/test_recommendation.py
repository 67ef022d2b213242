"""Which γ to take, on figures worked out by hand."""

from __future__ import annotations

import pytest

from scalegrad.lab.recommendation import Recommendation, recommend
from scalegrad.results.comparison import Comparison, System, headline

# γ: (perplexity, Rep-1); MLE 20.0 and .600, people .330. Costs: 15%, 8%, 4%, 0.5%.
TRIED = {0.2: (23.0, 0.31), 0.4: (21.6, 0.36), 0.6: (20.8, 0.45), 0.8: (20.1, 0.55)}


def swept(tried: dict[float, tuple[float, float]] = TRIED, mle: float = 0.6, human: float = 0.33) -> Comparison:
    rows = [System(figures={"ppl": 20.0, "rep_1": mle}, objective="mle")]
    rows += [System(figures={"ppl": p, "rep_1": r}, objective="sg", strength=g) for g, (p, r) in tried.items()]
    rows.append(System(figures={"ppl": 20.0, "rep_1": human}, objective="ul", strength=1.0))  # never recommended
    return Comparison([*rows, System(figures={"rep_1": human}, objective="human")])


@pytest.mark.parametrize(
    ("budget", "gamma"),
    [
        (0.05, 0.6),  # of .6 (+4%) and .8, .450 is nearer to .330
        (0.10, 0.4),  # .360
        (0.20, 0.2),  # .310
        (0.01, 0.8),
        (0.004, None),
    ],
)
def test_the_nearest_to_people_within_the_budget(budget, gamma):
    assert recommend(swept(), budget).gamma == gamma


def test_sentences():
    assert recommend(swept(), 0.05).sentence == (
        "Take γ=0.6: its Rep-1 of .450 is nearest to human text (.330) of the 2 of 4 γ tried that cost at most 5% of "
        "MLE's perplexity (20.80 against 20.00, +4.0%; MLE's own Rep-1: .600)."
    )
    assert recommend(swept(), 0.004).sentence == (
        "No γ tried costs at most 0.4% of MLE's perplexity: the cheapest, γ=0.8, costs +0.5% (20.10 against 20.00). "
        "Allow more, or try γ nearer to 1. Over the budget, γ=0.2 comes nearest to human text of all γ tried: Rep-1 "
        ".310, perplexity 23.00 against 20.00, +15.0%."
    )
    assert recommend(swept(), 0.01).sentence == (
        "Take γ=0.8: of the 4 γ tried it alone costs at most 1% of MLE's perplexity (20.10 against 20.00, +0.5%), and "
        "its Rep-1 of .550 is nearer to human text (.330) than MLE's own (.600)."
    )


def test_a_model_that_repeats_no_more_than_people_keeps_mle():
    found = recommend(swept(mle=0.34), 0.2)
    assert found.gamma is None
    assert found.sentence.startswith("Stay with MLE: no γ tried within 20% of its perplexity comes nearer")
    assert recommend(swept(human=0.59), 0.2).gamma is None  # .55 is further from .59 than .60


def test_a_larger_budget_is_not_asked_for_where_it_cannot_help():
    # People .310, MLE .330; both γ cost more than 5% and are further away.
    found = recommend(swept({0.2: (23.0, 0.25), 0.6: (22.0, 0.26)}, mle=0.33, human=0.31), 0.05)
    assert found.gamma is None
    assert found.sentence == (
        "No γ tried costs at most 5% of MLE's perplexity: the cheapest, γ=0.6, costs +10.0% (22.00 against 20.00). Nor "
        "does any come nearer to human text than MLE itself (Rep-1 .330): stay with it. Over the budget, γ=0.6 comes "
        "nearest to human text of all γ tried: Rep-1 .260, perplexity 22.00 against 20.00, +10.0%."
    )


def with_penalty(found: Comparison, gamma: float, ppl: float, rep_1: float) -> Comparison:
    """The comparison as a sweep writes it down: with MLE decoded under a penalty of γ."""
    rows = [
        *found.systems,
        System(figures={"ppl": ppl, "rep_1": rep_1}, objective="mle", penalty=f"gamma={gamma}"),
    ]
    gamma_taken = recommend(Comparison(rows), 0.05).spoken_of
    return Comparison(rows, chosen=System(objective="sg", strength=gamma_taken))


def test_a_gamma_over_the_budget_is_named_before_it_is_spoken_of():
    # γ=0.9 costs 1% and repeats more than MLE; γ=0.2 comes nearest to people and costs 15%.
    found = with_penalty(swept({0.2: (23.0, 0.31), 0.9: (20.2, 0.62)}), 0.2, 25.0, 0.2)
    assert recommend(found, 0.05) == Recommendation(
        None,
        "Stay with MLE: no γ tried within 5% of its perplexity comes nearer to human text (Rep-1 .330) than MLE itself "
        "(.600); the nearest, γ=0.9, has .620. Over the budget, γ=0.2 comes nearest to human text of all γ tried: "
        "Rep-1 .310, perplexity 23.00 against 20.00, +15.0%.",
        0.2,
    )
    assert headline(found).startswith("Of 100 words, SG γ=0.2 repeats 31 and MLE 60.")


@pytest.mark.parametrize(
    ("ppl", "rep_1", "better"),
    [
        (20.0, 0.33, True),
        (20.0, 0.45, True),
        (20.8, 0.33, True),
        (20.9, 0.33, True),  # within 1%
        (22.0, 0.33, False),  # each has its merit
        (20.0, 0.50, False),
        (20.8, 0.45, False),  # the same
        (20.7, 0.446, False),  # within 1% and .005
        (20.0, 0.20, False),  # .20 is further from people's .33 than .45
    ],
)
def test_a_penalty_that_does_better_alone_is_named(ppl, rep_1, better):
    """γ=0.6 is taken, at 20.8 and .450."""
    plain = recommend(swept(), 0.05).sentence
    added = recommend(with_penalty(swept(), 0.6, ppl, rep_1), 0.05).sentence.removeprefix(plain)
    assert ("penalty of γ=0.6" in added) == better
    assert bool(added) == better


def test_of_two_equally_near_the_cheaper():
    assert recommend(swept({0.2: (23.0, 0.30), 0.4: (21.6, 0.36)}), 0.2).gamma == 0.4  # .030 from .330 both


def test_without_texts_the_mean_of_rep_l_decides():
    def row(ppl: float, rep: float, objective: str, strength: float | None = None) -> System:
        figures = {"ppl": ppl, "rep_window_16": rep - 0.1, "rep_window_32": rep, "rep_window_128": rep + 0.1}
        return System(figures=figures, objective=objective, strength=strength)

    rows = [row(20.0, 0.5, "mle"), row(20.4, 0.42, "sg", 0.5), row(20.9, 0.36, "sg", 0.2), row(0.0, 0.4, "human")]
    found = recommend(Comparison(rows), 0.05)
    assert found.gamma == 0.5
    assert "its mean Rep/l of .420" in found.sentence


def test_mistakes():
    with pytest.raises(ValueError, match="budget must be 0 or more"):
        recommend(swept(), -0.1)
    with pytest.raises(ValueError, match="needs an MLE model"):
        recommend(Comparison([System(figures={"ppl": 2.0}, objective="mle")]))
