"""`scalegrad complete`: continuations for prefixes, by any decoding, to JSONL."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scalegrad.counts import counted
from scalegrad.extras import need
from scalegrad.runs.terminal import Device, Dtype, Start, Trust, bars, quiet_transformers, read_batch, status

if TYPE_CHECKING:
    from scalegrad.decoding import Completed, Prefix, Strategy

PAPER = {"prefix_tokens": 50, "new_tokens": 100}

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A causal or encoder-decoder model: a folder, a hub name, a .gguf file, or base (shipped).",
    ),
]
Prefixes = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Prefixes to continue: a .txt (one on each line), .jsonl or .csv file, or - for standard input.",
    ),
]
Field = Annotated[str | None, typer.Option(help="Field or column that holds the prefix (default: prefix).")]
Protocol = Annotated[str | None, typer.Option(help="paper: 50-token prefixes of WikiText-103 test, 100 new tokens.")]
Text = Annotated[str | None, typer.Option(metavar="FILE", help="With --protocol: cut the prefixes from this text.")]
Out = Annotated[str, typer.Option(metavar="FILE", help="JSONL to write, or - for standard output (not resumable).")]
Strat = Annotated[str, typer.Option("--strategy", "-s", help="greedy, beam=6, top_k=40, top_p=0.9, min_p, typical, …")]
Gamma = Annotated[
    float | None,
    typer.Option(help="Novelty penalty, γ in (0, 1]: log γ is added to the logits of tokens already said."),
]
Most = Annotated[int | None, typer.Option("--max-new-tokens", help="Generate at most this many tokens (default: 100).")]
Least = Annotated[int | None, typer.Option("--min-new-tokens", help="Generate at least this many tokens (default: 0).")]
Seed = Annotated[int, typer.Option(help="Seed; a text depends on it, its prefix and its place in the file.")]
Batch = Annotated[str, typer.Option(help="Prefixes at a time, or auto: what fits into memory.")]
Limit = Annotated[int | None, typer.Option(help="Continue only this many prefixes, the first ones.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Start anew, whatever FILE holds.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")]


def command(
    model: Model,
    prefixes: Prefixes = None,
    field: Field = None,
    protocol: Protocol = None,
    text: Text = None,
    out: Out = "-",
    strategy: Strat = "greedy",
    gamma: Gamma = None,
    max_new_tokens: Most = None,
    min_new_tokens: Least = None,
    start: Start = "auto",
    seed: Seed = 0,
    batch: Batch = "auto",
    limit: Limit = None,
    device: Device = "auto",
    dtype: Dtype = "auto",
    trust_remote_code: Trust = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Continue prefixes with a model, by any decoding, to a JSONL file that `scalegrad measure` reads.

    Stopped at any moment, the same command goes on where it was and ends with the same file.

    Example: scalegrad complete gpt2 --prefixes prefixes.txt --strategy top_p=0.9 --gamma 0.5 --out completions.jsonl
    """
    chosen = _strategy(strategy, gamma)
    size = read_batch(batch)
    from scalegrad.models.start import check_start

    check_start(start)
    least, most = _lengths(protocol, min_new_tokens, max_new_tokens)
    _check(prefixes, field, protocol, text, out, limit, as_json)
    need("transformers", extra="complete")
    quiet_transformers()
    from scalegrad import decoding
    from scalegrad.models.start import start_sentence, start_text
    from scalegrad.runs.progress import bind

    texts = list(islice(_texts(prefixes, field), limit)) if prefixes else []
    corpus = _corpus(text) if protocol else ""
    with status(f"loading {model}"):
        network, tokenizer = decoding.load(model, device, dtype, trust_remote_code)
        if protocol and network.config.is_encoder_decoder:
            raise ValueError(f"--protocol paper continues text, and {model} is an encoder-decoder")
        before = _start(network, tokenizer, start)
        if protocol:
            items = _paper_prefixes(corpus, tokenizer, limit, before or ())
        else:
            items = decoding.prefixes_of(texts, tokenizer, before)
    with _target(out) as target, bars() as told:
        done = decoding.complete(
            network,
            tokenizer,
            items,
            target,
            chosen,
            max_new_tokens=most,
            min_new_tokens=least,
            seed=seed,
            batch=size,
            name=model,
            overwrite=overwrite,
            progress=bind(told, "continuing"),
        )
    if before is not None:
        print(start_sentence(tokenizer, start, start_text(tokenizer, before)), file=sys.stderr)
    _report(done, chosen, out, as_json)


def _start(model: Any, tokenizer: Any, start: str) -> tuple[int, ...] | None:
    """The ids before every text; None for an encoder, which reads what its tokenizer adds, before a text and after."""
    from scalegrad.decoding import start_ids

    if not model.config.is_encoder_decoder:
        return start_ids(tokenizer, start)
    if start != "auto":
        raise ValueError(f"--start {start} is for causal models, and this one is an encoder-decoder")
    return None


def _strategy(text: str, gamma: float | None) -> Strategy:
    from scalegrad.decoding.strategies import parse

    found = parse(text)
    if gamma is None:
        return found
    if found.gamma != 1.0:
        raise ValueError(f"--gamma {gamma} and the gamma of --strategy {text}: give one of them")
    return replace(found, gamma=gamma)


def _lengths(protocol: str | None, least: int | None, most: int | None) -> tuple[int, int]:
    """(min, max) new tokens. The paper's continuations all have 100, so the end symbol is banned."""
    if protocol is None:
        return least or 0, 100 if most is None else most
    if protocol != "paper":
        raise ValueError(f"--protocol must be paper, not {protocol!r}")
    if least is not None or most is not None:
        raise ValueError(f"--protocol paper means {PAPER['new_tokens']} new tokens: leave out the other lengths")
    return PAPER["new_tokens"], PAPER["new_tokens"]


def _check(
    prefixes: str | None, field: str | None, protocol: str | None, text: str | None, out: str, limit: int | None,
    as_json: bool,
) -> None:  # fmt: skip
    from scalegrad.runs import check_writable_folder

    if (prefixes is None) == (protocol is None):
        raise ValueError("give either --prefixes FILE or --protocol paper")
    if text is not None and protocol is None:
        raise ValueError("--text FILE is what --protocol cuts its prefixes from; a file of prefixes is --prefixes FILE")
    if field is not None and protocol is not None:
        raise ValueError("--field is for --prefixes FILE; --protocol cuts its prefixes itself")
    if limit is not None and limit < 1:
        raise ValueError(f"--limit must be at least 1, not {limit}")
    if as_json and out == "-":
        raise ValueError("--json reports on standard output, where the texts go: give --out FILE")
    if out != "-":
        if Path(out).is_dir():
            raise ValueError(f"--out: {out} is a folder; expected the name of a file to write")
        check_writable_folder(Path(out).parent, "--out", make=False)  # before the model is loaded


def _texts(source: str, field: str | None) -> Iterator[str]:
    from scalegrad.data import read_texts
    from scalegrad.data.readers import files_of, kind_of

    plain = any(kind_of(file) == "txt" for file in files_of(source))
    return read_texts(source, field or (None if plain else "prefix"), empty=False)


def _corpus(text: str | None) -> str:
    from scalegrad.data import read_texts, wikitext103

    return "".join(f"{line}\n" for line in read_texts(text, format="txt")) if text else wikitext103("test")


def _paper_prefixes(corpus: str, tokenizer: Any, limit: int | None, start: Sequence[int]) -> list[Prefix]:
    """50-token prefixes, cut by the model's own tokenizer."""
    from scalegrad.data import completion_blocks, encode_corpus
    from scalegrad.decoding import prefixes_from_ids

    ids = encode_corpus(corpus, tokenizer)
    blocks = completion_blocks(ids, length=PAPER["prefix_tokens"])
    if not len(blocks):
        raise ValueError(
            f"--text has {counted(len(ids), 'token')}, and the protocol cuts its prefixes from chunks of 301"
        )
    return prefixes_from_ids(blocks[:limit].tolist(), tokenizer, start)


@contextmanager
def _target(out: str) -> Iterator[Path]:
    """The file to write; for standard output a temporary one, printed at the end."""
    if out != "-":
        yield Path(out)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "completions.jsonl"
        yield path
        sys.stdout.flush()
        with path.open("rb") as lines:
            shutil.copyfileobj(lines, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _report(done: Completed, strategy: Strategy, out: str, as_json: bool) -> None:
    if as_json:
        print(json.dumps({**asdict(done), "out": str(done.out), "strategy": str(strategy)}))
        return
    before = f", {done.resumed:,} of them made before" if done.resumed else ""
    where = "" if out == "-" else f" in {done.out}"
    print(f"{counted(done.texts, 'continuation')} by {strategy}{where} ({done.seconds:.1f} s{before})", file=sys.stderr)
