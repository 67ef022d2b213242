"""`scalegrad complete`: continuations for prompts, by any decoding, to JSONL."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from scalegrad.counts import counted
from scalegrad.decoding.strategies import Strategy, check_new_tokens, parse
from scalegrad.extras import need
from scalegrad.models.pretrained import Loading, check_causal, check_start, find_place
from scalegrad.options import FLAT, AsJson, Batch, Model, Overwrite, SkipBad, Stream, option
from scalegrad.runs.terminal import bars, quiet_transformers, status

if TYPE_CHECKING:
    from scalegrad.data import Problems
    from scalegrad.decoding import Completed, Prefix

PAPER = {"prefix_tokens": 50, "new_tokens": 100}
_LOADING = Loading()


@dataclass(frozen=True)
class Completion:
    """What to continue, and how."""

    model: Model
    _: KW_ONLY
    prompts: Annotated[str | None, option(allow_leading_hyphen=True)] = None
    """Texts to continue: a .txt (one on each line), .jsonl or .csv file, a folder of these, or - for standard input."""
    field: str | None = None
    """Field or column that holds the prompt (default: prefix)."""
    protocol: str | None = None
    """paper: 50-token prefixes of WikiText-103 test, 100 new tokens."""
    text: str | None = None
    """With --protocol: cut the prefixes from this file."""
    out: Stream = "-"
    """JSONL file to write, or - for standard output (not resumable)."""
    strategy: str = "greedy"
    """How to decode: greedy, beam=6, top_k=40, top_p=0.9, min_p, typical, …"""
    penalty: float | None = None
    """Novelty penalty, γ in (0, 1]: log γ is added to the logits of tokens already said."""
    new_tokens: int | None = None
    """Generate at most this many tokens (default: 100)."""
    min_new_tokens: int | None = None
    """Generate at least this many tokens (default: 0)."""
    start: str = "auto"
    """Put the model's start symbol before every text: yes, no, or auto, which does as the tokenizer does."""
    seed: int = 0
    """Seed; a text depends on it, its prompt and its place in the file."""
    batch: Batch = None
    """Prompts at a time, or auto: what fits into memory."""
    limit: int | None = None
    """Continue only this many prompts, the first ones."""

    def __post_init__(self) -> None:
        check_start(self.start)
        self.decoding()
        self.lengths()
        if (self.prompts is None) == (self.protocol is None):
            raise ValueError("give either --prompts FILE or --protocol paper")
        if self.text is not None and self.protocol is None:
            raise ValueError("--text is what --protocol cuts its prefixes from; texts to continue are --prompts FILE")
        if self.field is not None and self.protocol is not None:
            raise ValueError("--field is for --prompts FILE; --protocol cuts its prefixes itself")
        if self.limit is not None and self.limit < 1:
            raise ValueError(f"limit must be at least 1, not {self.limit}")

    def decoding(self) -> Strategy:
        """The strategy with its penalty."""
        strategy = parse(self.strategy)
        if self.penalty is None:
            return strategy
        if strategy.gamma != 1.0:
            raise ValueError(f"--penalty {self.penalty} and the gamma of --strategy {self.strategy}: give one of them")
        return replace(strategy, gamma=self.penalty)

    def lengths(self) -> tuple[int, int]:
        """(min, max) new tokens. The paper's continuations all have 100, so the end symbol is banned."""
        if self.protocol is None:
            least, most = self.min_new_tokens or 0, 100 if self.new_tokens is None else self.new_tokens
            check_new_tokens(least, most)
            return least, most
        if self.protocol != "paper":
            raise ValueError(f"protocol must be paper, not {self.protocol!r}")
        if self.min_new_tokens is not None or self.new_tokens is not None:
            raise ValueError(f"--protocol paper means {PAPER['new_tokens']} new tokens: leave out the other lengths")
        return PAPER["new_tokens"], PAPER["new_tokens"]


def command(
    completion: Annotated[Completion, FLAT],
    *,
    loading: Annotated[Loading, FLAT] = _LOADING,
    skip_bad: SkipBad = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Continue prompts with a model, by any decoding, to a JSONL file that `scalegrad measure` reads.

    Stopped at any moment, the same command goes on where it was and ends with the same file.

    Example: scalegrad complete gpt2 --prompts prompts.txt --strategy top_p=0.9 --penalty 0.5 --out completions.jsonl
    """
    model, out, strategy = completion.model, completion.out, completion.decoding()
    if as_json and out == "-":
        raise ValueError("--json reports on standard output, where the texts go: give --out FILE")
    _check_out(out)
    from scalegrad.data import Problems

    problems = Problems(skip_bad)
    texts = list(islice(_texts(completion, problems), completion.limit)) if completion.prompts else []
    corpus = _corpus(completion.text) if completion.protocol else ""
    if completion.protocol:
        check_causal(model)
    find_place(model)
    need("transformers", extra="complete")
    quiet_transformers()
    from scalegrad import decoding
    from scalegrad.models.pretrained import start_sentence, start_text
    from scalegrad.runs.progress import bind

    with status(f"loading {model}"):
        network, tokenizer = decoding.load(model, loading.device, loading.dtype, loading.trust_remote_code)
        before = _start(network, tokenizer, completion.start)
        if completion.protocol:
            items = _paper_prefixes(corpus, tokenizer, completion.limit, before or ())
        else:
            items = decoding.prefixes_of(texts, tokenizer, before, problems)
    least, most = completion.lengths()
    with _target(out) as target, bars() as progress:
        done = decoding.complete(
            network,
            tokenizer,
            items,
            target,
            strategy,
            new_tokens=most,
            min_new_tokens=least,
            seed=completion.seed,
            batch=completion.batch,
            name=model,
            overwrite=overwrite,
            progress=bind(progress, "continuing"),
        )
    problems.report()
    if before is not None:
        print(start_sentence(tokenizer, completion.start, start_text(tokenizer, before)), file=sys.stderr)
    _report(done, strategy, out, as_json)


def _start(model: Any, tokenizer: Any, start: str) -> tuple[int, ...] | None:
    """The ids before every text; None for an encoder, which reads what its tokenizer adds, before a text and after."""
    from scalegrad.decoding import start_ids

    if not model.config.is_encoder_decoder:
        return start_ids(tokenizer, start)
    if start != "auto":
        raise ValueError(f"--start {start} is for causal models, and this one is an encoder-decoder")
    return None


def _check_out(out: str) -> None:
    from scalegrad.runs import check_writable_folder

    if out != "-":
        if Path(out).is_dir():
            raise ValueError(f"out: {out} is a folder; expected the name of a file to write")
        check_writable_folder(Path(out).parent, "out", make=False)


def _texts(completion: Completion, problems: Problems) -> Iterator[str]:
    from scalegrad.data import read_texts
    from scalegrad.data.readers import files_of, kind_of

    source = completion.prompts or ""
    plain = any(kind_of(file) == "txt" for file in files_of(source))
    field = completion.field or (None if plain else "prefix")
    return read_texts(source, field, empty=False, problems=problems)


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
