"""`scalegrad show`: the paper's explanatory figures, for strengths and sentences of your own."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scalegrad.results.figure import check_picture_path, save_figure

if TYPE_CHECKING:
    from paper.gradients import GradientCurves
    from paper.novel_set import NovelSet

app = typer.Typer(
    help="The paper's explanatory figures, for your own strengths and sentences.\n\n"
    "Example: scalegrad show gradients --gamma 0.2 --out gradients.png",
    no_args_is_help=True,
)

Out = Annotated[Path | None, typer.Option(metavar="FILE", help="Draw it as well: .png, .svg or .pdf.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")]


@app.command()
def gradients(
    gamma: Annotated[float, typer.Option(help="ScaleGrad's γ, in (0, 1]; smaller pushes harder.")] = 0.2,
    alpha: Annotated[float, typer.Option(help="Unlikelihood's α, from 0.")] = 1.0,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """How hard MLE, ScaleGrad and unlikelihood push a token, by its kind and its probability.

    The paper's gradient figure for two tokens, one novel, and unlikelihood beside it:
    where its factor 1 − αR turns negative, and what that does to the target.

    Example: scalegrad show gradients --gamma 0.2 --out gradients.png
    """
    from paper.gradients import draw_gradients, gradient_curves

    if out is not None:
        check_picture_path(out)
    curves = gradient_curves(gamma, alpha)
    if out is not None:
        save_figure(draw_gradients(curves), out)
    if as_json:
        print(json.dumps(asdict(curves), indent=2))
    else:
        _print_gradients(curves, Console())
        _say_where(out, "gradients.png")


@app.command("novel-set")
def novel_set(
    sentence: Annotated[
        str, typer.Argument(metavar="SENTENCE", help="What the model learns to predict, in quotation marks.")
    ],
    tokenizer: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="A saved tokenizer: its tokens in place of words.")
    ] = None,
    window: Annotated[
        int | None, typer.Option(help="Count only this many previous tokens as seen (default: all).")
    ] = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """How the novel set shrinks along a sentence you type.

    Without a tokenizer the vocabulary is the sentence's own words, punctuation apart.

    Example: scalegrad show novel-set "people who are interested in text" --out novel-set.png
    """
    from paper import novel_set as report

    if out is not None:
        check_picture_path(out)
    if tokenizer is None:
        result = report.novel_set(report.split_words(sentence), window)
    else:
        result = report.novel_set_of_tokens(sentence, tokenizer, window)
    if out is not None:
        save_figure(report.draw_novel_set(result), out)
    if as_json:
        print(json.dumps(asdict(result), indent=2, ensure_ascii=False))
    else:
        _print_novel_set(result, Console(), ids=tokenizer is not None)
        _say_where(out, "novel-set.png")


def _print_gradients(curves: GradientCurves, console: Console) -> None:
    from paper.gradients import unlikelihood_sentences

    table = Table(title=f"Gradient norm |∂L/∂o| of a token, ScaleGrad γ = {curves.gamma:g}", title_justify="left")
    for name in ("p", *curves.scale_grad, "MLE T", "MLE NT"):
        table.add_column(name, justify="right")
    for i in range(9, len(curves.p), 20):  # .1, .3, .5, .7, .9
        values = [*curves.scale_grad.values(), *curves.mle.values()]
        table.add_row(f"{curves.p[i]:.1f}", *(f"{line[i]:.4f}" for line in values))
    console.print(table)
    console.print(
        "p: the token's probability; there are two tokens, one of them novel. T: the target, NT: not it; N: novel, "
        "NN: not.\n"
    )

    table = Table(
        title=f"Unlikelihood α = {curves.alpha:g} at the target, its probability p_k rising", title_justify="left"
    )
    for name in ("p_neg", "gradient norm", "change of p_k / step"):
        table.add_column(name, justify="right")
    for at in curves.at_target:
        norm, change = (f"{line[0]:.4f} to {line[-1]:.4f}" for line in (at.norm, at.p_change))
        table.add_row(f"{at.p_negative:.4g}", norm, change)
    console.print(table)
    for line in unlikelihood_sentences(curves):
        console.print(line, highlight=False)


def _print_novel_set(result: NovelSet, console: Console, *, ids: bool) -> None:
    from paper.novel_set import shown

    kind = "tokens" if ids else "words"
    limit = "" if result.window is None else f", seen = the previous {result.window}"
    table = Table(title=f"The novel set over {result.vocab:,} {kind}{limit}", title_justify="left")
    for name, side in (("step", "right"), ("target", "left"), *([("id", "right")] if ids else [])):
        table.add_column(name, justify=side)  # type: ignore[arg-type]
    for name in ("is novel", "seen", "novel"):
        table.add_column(name, justify="right")
    for t, step in enumerate(result.steps, start=1):
        identity = [f"{step.target_id}"] if ids else []
        sizes = (f"{step.n_seen:,}", f"{step.n_novel:,}")
        table.add_row(f"{t}", Text(shown(step.target)), *identity, "yes" if step.is_novel else "no", *sizes)
    console.print(table)


def _say_where(out: Path | None, example: str) -> None:
    print(f"Drawn in {out}" if out is not None else f"Draw it: --out {example}")
