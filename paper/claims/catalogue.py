"""The claims of "Straight to the Gradient: Learning to Use Novel Tokens for Neural Text Generation" that can be checked.

Each has a function of a table that gives comparisons of its figures: `t(SG, "ppl") < t(UL, "ppl")`. No verdict is
written here: it is what the comparisons give on the paper's own tables and on the stored results.
"""
# ruff: noqa: E501 -- a sentence is a line

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise

from paper.claims.figures import Check, Figure, Stated, extreme
from paper.claims.table import Key, Table
from paper.claims.verdicts import Claim

MLE, UL5, UL, UL15 = Key("mle"), Key("ul", 0.5), Key("ul", 1.0), Key("ul", 1.5)
SG, SG5, SG8 = Key("sg", 0.2), Key("sg", 0.5), Key("sg", 0.8)
UL_CHOSEN, SG_CHOSEN, HUMAN, NOVEL_SET = (
    Key("ul", chosen=True),
    Key("sg", chosen=True),
    Key("human"),
    Key(name="novel set"),
)
MLE_BLOCK, UL5_BLOCK, SG5_BLOCK = (replace(key, penalty="soft_block=3") for key in (MLE, UL5, SG5))
OVER_MLE, OVER_UL = Key(name="SG vs MLE"), Key(name="SG vs UL")
SAMPLED = ("top_p=0.3", "top_p=0.9", "top_k=40", "top_k=100")
REP_L, REP = "rep_window_16 rep_window_32 rep_window_128", "rep_1 rep_2 rep_3"
ROUGE, QUALITY = "rouge_1 rouge_2 rouge_l", "rouge_1 rouge_2 rouge_l moverscore_1"
AC1 = "By its own tables: AC1 computed from the win rate and the agreement that the paper prints."
ANYWHERE = "Held at equal Rep/l wherever that lies on ScaleGrad's curve, not at a given γ."
NO_RATERS = "It takes people: nobody has rated texts here. `python -m paper human-study` sets the study up."
NO_PTB = (
    "The Penn Treebank is licensed by the LDC and was not at hand. `python -m paper ptb --ptb PATH` does it with yours."
)
PREMISE = "At the paper's γ and α; that the two have one perplexity, within 5%, is its premise. See the last claims on equal perplexity."

SMALL = "no: GPT-2 small's shape, pre-trained here for five minutes, in place of GPT-2 medium"
TUNED = "in part: tuned on WikiText-2 in place of WikiText-103"
LONG = f"{TUNED}, 500 updates of 32 × 300 tokens; the same test text"
PREFIXES = f"{TUNED}; 962 prefixes of the same test text"
SCENES = ("no: the same kind of LSTM, smaller, with a small detector",
          "no: drawn scenes whose paragraphs a grammar writes, in place of Visual Genome")  # fmt: skip
NEWS = ("no: BertSum with a small encoder, and a causal LM, in place of BertSum with BERT-base",
        "no: the abstracts of SciTLDR for BertSum, 900 pairs of CNN/DM for the causal LM")  # fmt: skip
SETTINGS = {  # are model and data of these results the paper's: yes, no or in part, then how they differ
    "novel-set": ("not needed: exact", "not needed: a sentence"),
    "gradients": ("not needed: exact", "not needed: exact"),
    "wikitext": (SMALL, LONG),
    "wikitext-smollm2": ("no: SmolLM2-135M-Instruct in place of GPT-2 medium", f"{LONG}, another tokenizer"),
    "demo": ("no: the shipped model of 5.5 million weights in place of GPT-2 medium", "in part: tuned on WikiText-2 prose in place of WikiText-103; 24 chunks and 120 prefixes of the same test text"),
    "sensitivity": (SMALL, f"{TUNED}; the same validation text"),
    "decoding": (SMALL, PREFIXES),
    "lengths": (SMALL, PREFIXES),
    "imdb": (SMALL, f"{TUNED}; 500 IMDB reviews"),
    "captioning": SCENES,
    "summarization": NEWS,
}  # fmt: skip


def decoded(row: Key, how: str) -> Key:
    """The same model under another decoding."""
    return replace(row, decoding=how)


def rising(t: Table, columns: str, *rows: Key) -> list[Check]:
    """In each column every row is below the next."""
    return [t(low, c) < t(high, c) for low, high in pairwise(rows) for c in columns.split()]


def less(column: str, row: Key, other: Key, stated: str, t: Table) -> list[Check | Stated]:
    """A row is below another, by what the paper states."""
    return [t(row, column) < t(other, column), Stated(stated, t(other, column) - t(row, column))]


def more(column: str, row: Key, other: Key, stated: str, t: Table) -> list[Check | Stated]:
    """A row is above another, by what the paper states."""
    return [t(row, column) > t(other, column), Stated(stated, t(row, column) - t(other, column))]


def from_human(t: Table, row: Key, column: str) -> Figure:
    """How far a row is from human text."""
    return abs(t(row, column) - t(HUMAN, column))


def agreement(pair: Key, stated: str, t: Table) -> list[Check | Stated]:
    """Raters agree on a pair."""
    chance = 2 * t(pair, "win_rate") * (1 - t(pair, "win_rate"))
    return [t(pair, "ac1") > 0.6, Stated(stated, (t(pair, "agreement") - chance) / (1 - chance))]


def most_human(t: Table) -> Iterator[Check]:
    """ScaleGrad with blocking repeats less than the others and is nearer to people."""
    others = (MLE, SG5, MLE_BLOCK)
    for c in REP.split():
        yield t(SG5_BLOCK, c) < extreme(min, *(t(row, c) for row in others))
        yield from_human(t, SG5_BLOCK, c) < extreme(min, *(from_human(t, row, c) for row in others))


def dearer_at_equal_repetition(row: Key, stated: str, t: Table) -> list[Check | Stated]:
    """Unlikelihood costs more perplexity than ScaleGrad where that repeats as much."""
    there = t.along("sg", "ppl", "rep_l", t(row, "rep_l"))
    return [t(row, "ppl") > there, Stated(stated, t(row, "ppl") - there)]


def ahead_at_equal_perplexity(row: Key, t: Table) -> list[Check]:
    """ScaleGrad repeats less and predicts more tokens than unlikelihood where that has its perplexity."""
    rep_l, uniq = (t.along("ul", column, "ppl", t(row, "ppl")) for column in ("rep_l", "uniq"))
    return [t(row, "rep_l") < rep_l, t(row, "uniq") > uniq]


def one_perplexity(t: Table) -> Check:
    """Have γ = .2 and α = .5 one perplexity, within 5%?"""
    return replace(abs(t(SG, "ppl") - t(UL5, "ppl")) < 0.05 * t(UL5, "ppl"), premise=True)


gradients = partial(Claim, experiment="gradients")
wikitext = partial(Claim, experiment="wikitext", also=("demo",), table=1)
wikitext_valid = partial(Claim, experiment="wikitext", table=11)
people = partial(Claim, experiment="human-study", table=3, not_tested=NO_RATERS)
ptb = partial(Claim, experiment="ptb", table=2, not_tested=NO_PTB)
imdb = partial(Claim, experiment="imdb", table=12)
captions = partial(Claim, experiment="captioning", table=4)
cnn_dm = partial(Claim, experiment="summarization", table=5, corpus="cnn/dm")
nyt50 = partial(Claim, experiment="summarization", table=5, corpus="nyt50")
decoding = partial(Claim, experiment="decoding", table=17)
degeneration = partial(Claim, experiment="captioning-degeneration", table=9)
sensitivity = partial(Claim, experiment="sensitivity", also=("wikitext",), table=11)

CLAIMS: list[Claim] = [
    # ---- section 3: the method
    Claim("novel-set-shrinks", "section 3, appendix B (figure 4)", "The set of novel tokens begins as the whole vocabulary and only shrinks as a sequence goes on.",
        lambda t: [t(NOVEL_SET, "missing_at_first") < 0.5, t(NOVEL_SET, "most_growth") < 0.5,
                   t(NOVEL_SET, "shrunk") > 0], experiment="novel-set"),
    gradients("scaling-factors", "section 3.2, equation 4", "ScaleGrad multiplies the probability of a novel token by a factor between 0 and 1 and that of a seen one by a factor above 1.",
        lambda t: [t(SG, "least factor NT-N") > 0, t(SG, "most factor NT-N") < 1, t(SG, "least factor NT-NN") > 1]),
    gradients("scaled-gradients", "section 3.2, equation 6 (figure 1)", "ScaleGrad's gradient norm is above MLE's for novel targets and for other tokens already seen, below it for seen targets and other novel tokens.",
        lambda t: [t(SG, "least over MLE T-N") > 0, t(SG, "most over MLE T-NN") < 0,
                   t(SG, "most over MLE NT-N") < 0, t(SG, "least over MLE NT-NN") > 0]),
    gradients("monotone-gradients", "section 3.2 (figure 1)", "Under ScaleGrad the gradient norm of a target falls as its probability rises, and that of any other token rises with its probability.",
        lambda t: [extreme(max, t(SG, "most rise T-N"), t(SG, "most rise T-NN")) < 0,
                   extreme(min, t(SG, "least rise NT-N"), t(SG, "least rise NT-NN")) > 0]),
    gradients("unlikelihood-factor-turns-negative", "section 3.3, appendix C", "With one negative token, unlikelihood's factor at the target turns negative where that token's probability passes 1/(α+1).",
        lambda t: [abs(t(ul, "turns_negative_at") - 1 / (alpha + 1)) < 1e-6
                   for ul, alpha in ((UL, 1), (UL5, 0.5), (UL15, 1.5))]),
    gradients("unlikelihood-norm-grows", "section 3.3, appendix C", "Beyond that place unlikelihood's gradient norm at the target grows with the target's probability.",
        lambda t: [t(ul, "norm_growth") > 0 for ul in (UL5, UL, UL15)]),
    gradients("unlikelihood-lowers-the-target", "section 3.3, appendix C", "Training with unlikelihood therefore lowers the target's probability there.",
        lambda t: [t(ul, "lowered") > 0.5 for ul in (UL5, UL, UL15)],
        note="A growing norm does not mean that descent turns round: a small step down the gradient raises the target's probability at every one of 49 × 49 places tried."),
    # ---- section 4.1: open-ended generation
    wikitext("likelihood-repeats", "sections 1 and 4.1 (table 1)", "A model trained by maximum likelihood repeats itself more than people do.",
        lambda t: rising(t, f"{REP_L} {REP}", HUMAN, MLE)),
    wikitext("human-row", "section 4.1 (table 1)", "Human text, on the tokens of the test set: Rep/16, /32, /128 of .177, .285, .480 and 18.27k distinct tokens.",
        lambda t: [abs(t(HUMAN, "uniq") - 18270) < 5.1, *(abs(t(HUMAN, c) - stated) < 0.00051
                   for c, stated in zip(REP_L.split(), (0.177, 0.285, 0.480), strict=True))],
        also=(), without=("wikitext-smollm2",), note="In GPT-2's tokens, as the paper counts: with another tokenizer it cannot hold."),
    wikitext("likelihood-has-the-lowest-perplexity", "section 4.1 (table 1)", "Maximum likelihood has the lowest perplexity of the three objectives.",
        lambda t: rising(t, "ppl", MLE, UL) + rising(t, "ppl", MLE, SG)),
    wikitext("perplexity-below-unlikelihood", "section 4.1 (table 1)", "ScaleGrad's perplexity is 11% below unlikelihood's.",
        lambda t: [t(SG, "ppl") < t(UL, "ppl"), Stated("11%", 1 - t(SG, "ppl") / t(UL, "ppl"))]),
    wikitext("rep-16-below-unlikelihood", "section 4.1 (table 1)", "ScaleGrad's Rep/16 is 1 point below unlikelihood's.",
        partial(less, "rep_window_16", SG, UL, "1%")),
    wikitext("rep-32-below-unlikelihood", "section 4.1 (table 1)", "ScaleGrad's Rep/32 is 2 points below unlikelihood's.",
        partial(less, "rep_window_32", SG, UL, "2%")),
    wikitext("rep-128-below-unlikelihood", "section 4.1 (table 1)", "ScaleGrad's Rep/128 is 4 points below unlikelihood's.",
        partial(less, "rep_window_128", SG, UL, "4%")),
    wikitext("tokens-nearest-to-human", "section 4.1 (table 1), section 6", "ScaleGrad's next-token predictions are nearer to human text than those of the others, in Rep/l and in distinct tokens.",
        lambda t: [from_human(t, SG, c) < from_human(t, other, c)
                   for other in (UL, MLE) for c in f"{REP_L} uniq".split()]),
    wikitext("more-distinct-tokens", "section 4.1 (table 1)", "ScaleGrad predicts more distinct tokens than the others, 3% more than unlikelihood.",
        lambda t: [t(SG, "uniq") > t(UL, "uniq"), t(SG, "uniq") > t(MLE, "uniq"),
                   Stated("3%", t(SG, "uniq") / t(UL, "uniq") - 1)]),
    wikitext("fewer-repeated-words", "section 4.1 (table 1)", "In its own texts ScaleGrad repeats far fewer words, pairs and triples than unlikelihood, and unlikelihood fewer than MLE.",
        lambda t: rising(t, REP, SG, UL, MLE)),
    wikitext("more-distinct-words", "section 4.1 (table 1)", "ScaleGrad's texts have nearly 5.5k more distinct words than those of MLE.",
        partial(more, "uniq_w", SG, MLE, "5.5k"), also=()),
    wikitext("seeds-hardly-matter", "appendix F (table 10)", "Over three seeds no share of repetition deviates by more than .0003.",
        lambda t: [t.deviation(row, c) < 0.00031 for row in (MLE, UL, SG) for c in f"{REP_L} {REP}".split()],
        note="The paper may have printed variances: the square of what is seen here would fit its figures."),
    # ---- section 4.1: human evaluation
    people("preferred-to-likelihood", "section 4.1 (table 3)", "Raters prefer ScaleGrad's continuation to MLE's in 84% of the cases.",
        lambda t: [t(OVER_MLE, "win_rate") > 0.5, Stated("84.0%", t(OVER_MLE, "win_rate"))]),
    people("preferred-to-unlikelihood", "section 4.1 (table 3)", "Raters prefer ScaleGrad's continuation to unlikelihood's in 70.5% of the cases.",
        lambda t: [t(OVER_UL, "win_rate") > 0.5, Stated("70.5%", t(OVER_UL, "win_rate"))]),
    people("agreement-against-likelihood", "section 4.1, appendix D (table 3)", "The two raters agree substantially on ScaleGrad against MLE: Gwet's AC1 is .78.",
        partial(agreement, OVER_MLE, "0.78"), note=AC1),
    people("agreement-against-unlikelihood", "section 4.1, appendix D (table 3)", "The two raters agree substantially on ScaleGrad against unlikelihood: Gwet's AC1 is .64.",
        partial(agreement, OVER_UL, "0.64"), note=AC1),
    # ---- section 4.1: other corpora
    ptb("ptb-below-likelihood", "section 4.1 (table 2)", "On Penn Treebank, not trained on it, ScaleGrad repeats less than MLE and varies more in every column.",
        lambda t: rising(t, f"{REP_L} {REP}", SG, MLE) + rising(t, "uniq uniq_w", MLE, SG)),
    ptb("ptb-beats-unlikelihood", "section 4.1 (table 2)", "On Penn Treebank ScaleGrad is better than unlikelihood in every column, perplexity included.",
        lambda t: rising(t, f"ppl {REP_L} {REP}", SG, UL) + rising(t, "uniq uniq_w", UL, SG)),
    imdb("imdb-below-likelihood", "section 4.1, appendix F.2 (table 12)", "On IMDB reviews, not trained on them, ScaleGrad repeats less than MLE and varies more in every column.",
        lambda t: rising(t, f"{REP_L} {REP}", SG, MLE) + rising(t, "uniq uniq_w", MLE, SG)),
    imdb("imdb-beats-unlikelihood", "section 4.1, appendix F.2 (table 12)", "On IMDB reviews the trends are those of Penn Treebank: ScaleGrad is better than unlikelihood in every column, perplexity included.",
        lambda t: rising(t, f"ppl {REP_L} {REP}", SG, UL) + rising(t, "uniq uniq_w", UL, SG)),
    # ---- section 4.2: directed generation
    captions("captions-without-blocking", "section 4.2.1 (table 4)", "Without trigram blocking ScaleGrad's image paragraphs score higher in CIDEr than unlikelihood's, and these higher than MLE's (10.51, 14.65, 19.42).",
        lambda t: rising(t, "cider", MLE, UL5, SG5)),
    captions("captions-with-blocking", "section 4.2.1 (table 4)", "With trigram blocking ScaleGrad still adds 1.85 points of CIDEr to MLE.",
        partial(more, "cider", SG5_BLOCK, MLE_BLOCK, "1.85")),
    captions("captions-unlikelihood-with-blocking", "section 4.2.1 (table 4)", "With trigram blocking unlikelihood is slightly worse than MLE in CIDEr.",
        lambda t: rising(t, "cider", UL5_BLOCK, MLE_BLOCK)),
    captions("captions-blocking-helps", "section 5.2 (tables 4 and 9)", "Trigram blocking raises CIDEr, of MLE above all.",
        lambda t: [*rising(t, "cider", MLE, MLE_BLOCK), *rising(t, "cider", SG5, SG5_BLOCK),
                   t(MLE_BLOCK, "cider") - t(MLE, "cider") > t(SG5_BLOCK, "cider") - t(SG5, "cider")]),
    cnn_dm("summaries-beat-both", "section 4.2.2 (table 5)", "On CNN/DM ScaleGrad's summaries score higher than those of MLE and of unlikelihood in ROUGE-1, -2 and -L.",
        lambda t: rising(t, ROUGE, MLE, SG_CHOSEN) + rising(t, ROUGE, UL_CHOSEN, SG_CHOSEN)),
    cnn_dm("summaries-unlikelihood-beats-likelihood", "section 4.2.2 (table 5)", "On CNN/DM unlikelihood, too, improves on MLE.",
        lambda t: rising(t, QUALITY, MLE, UL_CHOSEN)),
    cnn_dm("summaries-moverscore-alike", "section 4.2.2 (table 5)", "On CNN/DM ScaleGrad and unlikelihood are alike in MoverScore (.02 apart), both above MLE.",
        lambda t: [*rising(t, "moverscore_1", MLE, SG_CHOSEN), *rising(t, "moverscore_1", MLE, UL_CHOSEN),
                   abs(t(SG_CHOSEN, "moverscore_1") - t(UL_CHOSEN, "moverscore_1"))
                   < t(SG_CHOSEN, "moverscore_1") - t(MLE, "moverscore_1")]),
    nyt50("summaries-beat-likelihood-nyt", "section 4.2.2 (table 5)", "On NYT50 ScaleGrad improves on MLE in all four measures.",
        lambda t: rising(t, QUALITY, MLE, SG_CHOSEN)),
    nyt50("summaries-unlikelihood-below-likelihood-nyt", "section 4.2.2 (table 5)", "On NYT50 unlikelihood is below MLE.",
        lambda t: rising(t, QUALITY, UL_CHOSEN, MLE)),
    # ---- section 5.1: decoding and length
    decoding("beam-search-does-not-help", "section 5.1 (tables 7 and 17)", "Beam search does not reduce the repetition of a ScaleGrad model: with beams of 6 and 10 it is above that of greedy search.",
        lambda t: rising(t, REP, SG, decoded(SG, "beam=6")) + rising(t, REP, SG, decoded(SG, "beam=10"))),
    decoding("beam-search-does-not-help-the-others", "section 5.1, appendix H (table 17)", "Nor does a beam of 6 reduce the repetition of the other two objectives.",
        lambda t: rising(t, REP, UL, decoded(UL, "beam=6")) + rising(t, REP, MLE, decoded(MLE, "beam=6"))),
    decoding("small-beam-does-not-help", "section 5.1, appendix H (table 17)", "Nor does a beam of 3 reduce the repetition of a ScaleGrad model.",
        lambda t: rising(t, REP, SG, decoded(SG, "beam=3"))),
    decoding("larger-beams-repeat-more", "section 5.1, appendix H (table 17)", "The larger the beam, the more a ScaleGrad model repeats itself and the fewer distinct words it uses.",
        lambda t: rising(t, REP, decoded(SG, "beam=3"), decoded(SG, "beam=6"), decoded(SG, "beam=10")) + rising(t, "uniq_w", decoded(SG, "beam=10"), decoded(SG, "beam=6"), decoded(SG, "beam=3"))),
    decoding("sampling-reduces-repetition", "section 5.1 (tables 7 and 17)", "Sampling reduces the repetition of a ScaleGrad model further.",
        lambda t: [check for how in SAMPLED for check in rising(t, REP, decoded(SG, how), SG)]),
    decoding("ahead-under-every-decoding", "section 5.1, appendix H (table 17)", "ScaleGrad goes with any decoding: under beam search and sampling, too, it repeats less than unlikelihood, and that less than MLE.",
        lambda t: [check for how in ("beam=6", "top_p=0.3", "top_k=40")
                   for check in rising(t, REP, decoded(SG, how), decoded(UL, how), decoded(MLE, how))]),
    Claim("ahead-at-every-length", "section 5.1 (figure 2)", "Whatever the length of the continuation, from 50 to 300 tokens, ScaleGrad's Rep-1 is below MLE's.",
        lambda t: rising(t, " ".join(f"rep_1_at_{n}" for n in range(50, 301, 50)), SG, MLE), experiment="lengths"),
    # ---- section 5.2: directed generation, analysed
    Claim("sampling-hurts-summaries", "sections 1 and 5.2 (table 8)", "Sampling lowers the quality of summaries below that of beam search, in ROUGE-1 and in MoverScore.",
        lambda t: [check for how in SAMPLED
                   for check in rising(t, "rouge_1 moverscore_1", decoded(MLE, how), MLE)],
        experiment="summarization-decoding", table=8),
    Claim("sampling-hurts-captions", "sections 1 and 5.2, appendix I (table 18)", "Sampling lowers the quality of image paragraphs below that of greedy search with trigram blocking, in CIDEr.",
        lambda t: [check for how in SAMPLED for check in rising(t, "cider", decoded(MLE, how), MLE_BLOCK)],
        experiment="captioning-decoding", table=18),
    degeneration("captions-likelihood-repeats", "section 5.2 (table 9)", "MLE's image paragraphs repeat far more than people's, and ScaleGrad's far less than MLE's.",
        lambda t: rising(t, REP, HUMAN, MLE) + rising(t, REP, SG5, MLE)),
    degeneration("captions-blocking-leaves-words", "section 5.2 (table 9)", "With trigram blocking MLE's words and pairs still repeat more than people's, and some repeated triples remain, the blocking being soft.",
        lambda t: [*rising(t, "rep_1 rep_2", HUMAN, MLE_BLOCK), t(MLE_BLOCK, "rep_3") > 0]),
    degeneration("captions-most-human", "section 5.2 (table 9)", "ScaleGrad with trigram blocking repeats least of all and is the nearest to people.",
        most_human),
    # ---- section 5.3: the choice of γ
    sensitivity("smaller-gamma-higher-perplexity", "section 5.3 (figure 3a, table 11)", "The smaller γ, the higher the perplexity.",
        lambda t: rising(t, "ppl", MLE, SG8, SG5, SG)),
    sensitivity("smaller-gamma-more-tokens", "section 5.3 (figure 3c, table 11)", "The smaller γ, the more distinct tokens are predicted.",
        lambda t: rising(t, "uniq", MLE, SG8, SG5, SG)),
    sensitivity("smaller-gamma-less-repetition", "section 5.3, appendix J (figures 3b and 6, table 11)", "The smaller γ, the lower Rep/l at each length.",
        lambda t: rising(t, REP_L, SG, SG5, SG8, MLE)),
    wikitext_valid("large-gamma-costs-little", "section 5.3 (table 11)", "A large γ (.8) reduces repetition without affecting the perplexity much: by less than a tenth of what γ = .2 costs.",
        lambda t: [*rising(t, "rep_l rep_1", SG8, MLE),
                   t(SG8, "ppl") - t(MLE, "ppl") < 0.1 * (t(SG, "ppl") - t(MLE, "ppl"))],
        note="The tenth is what the paper's own table 11 gives (.10 of 1.26); its text has no number."),
    sensitivity("equal-repetition-at-half", "section 5.3 (figure 3)", "Where unlikelihood with α = .5 repeats as much as ScaleGrad with γ = .5 (mean Rep/l), its perplexity is 1.35 higher.",
        partial(dearer_at_equal_repetition, UL5, "1.35"), note=ANYWHERE),
    sensitivity("equal-repetition-at-one", "section 5.3 (figure 3)", "Where unlikelihood with α = 1 repeats as much as ScaleGrad with γ = .3 (mean Rep/l), its perplexity is 2.58 higher.",
        partial(dearer_at_equal_repetition, UL, "2.58"),
        note=f"{ANYWHERE} The paper's table 11 has no γ = .3: its value lies between γ = .2 and .5."),
    sensitivity("equal-perplexity-repetition", "section 5.3 (figure 3)", "Where unlikelihood with α = .5 has the perplexity of ScaleGrad with γ = .2, ScaleGrad's mean Rep/l is 3.82 points lower.",
        lambda t: [one_perplexity(t), *less("rep_l", SG, UL5, "3.82%", t)], note=PREMISE),
    sensitivity("equal-perplexity-tokens", "section 5.3 (figure 3)", "There ScaleGrad (γ = .2) also predicts 1.11k more distinct tokens than unlikelihood (α = .5).",
        lambda t: [one_perplexity(t), *more("uniq", SG, UL5, "1.11k", t)], note=PREMISE),
    sensitivity("ahead-at-the-perplexity-of-half", "section 5.3 (figure 3)", "At equal perplexity ScaleGrad is the better trade: at that of γ = .5, wherever it lies on unlikelihood's curve, unlikelihood repeats more and predicts fewer distinct tokens.",
        partial(ahead_at_equal_perplexity, SG5)),
    sensitivity("ahead-at-the-perplexity-of-a-fifth", "section 5.3 (figure 3)", "So it is at the perplexity of γ = .2: unlikelihood repeats more there and predicts fewer distinct tokens.",
        partial(ahead_at_equal_perplexity, SG)),
    wikitext_valid("strong-unlikelihood-costs-most", "section 5.3 (caption of figure 3, table 11)", "Unlikelihood with α = 1.5 has a much higher perplexity than all the others.",
        lambda t: [t(UL15, "ppl") > extreme(max, *(t(row, "ppl") for row in (MLE, UL, UL5, SG, SG5, SG8)))]),
]  # fmt: skip
