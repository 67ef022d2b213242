"""The start symbol (BOS) that some models read before every text, because they were trained so."""

from __future__ import annotations

from typing import Any

STARTS = ("auto", "yes", "no")


def start_ids(tokenizer: Any, start: str = "auto") -> tuple[int, ...]:
    """The ids to put before a text: none for most models, one for those that begin every text with a symbol.

    "auto" is what the tokenizer does when it encodes a text with special tokens: Gemma's and Llama's put a symbol
    before it, GPT-2's does not. "yes" takes the tokenizer's start symbol in any case, "no" takes none.
    """
    check_start(start)
    if start == "no":
        return ()
    ids = _ids_before_a_text(tokenizer)
    if ids or start == "auto":
        return ids
    if tokenizer.bos_token_id is None:
        raise ValueError("start is yes, and the tokenizer has no start symbol")
    return (tokenizer.bos_token_id,)


def check_start(start: str) -> None:
    """Refuse any other word, before a model is loaded."""
    if start not in STARTS:
        raise ValueError(f"start must be auto, yes or no, not {start!r}")


def start_text(tokenizer: Any, ids: tuple[int, ...]) -> str | None:
    """The symbol in letters, for records and sentences; None where there is none."""
    return "".join(tokenizer.convert_ids_to_tokens(list(ids))) or None


def start_sentence(tokenizer: Any, start: str, text: str | None) -> str:
    """One line that says what a model was given, and how to have it otherwise."""
    if text:
        why = "the tokenizer adds it" if start == "auto" else f"--start {start}"
        return f"start symbol: {text} before every text ({why}; --start no leaves it out)"
    other = "" if tokenizer.bos_token is None else f"; --start yes puts {tokenizer.bos_token} before every text"
    return f"start symbol: none ({'the tokenizer adds none' if start == 'auto' else '--start no'}{other})"


def _ids_before_a_text(tokenizer: Any) -> tuple[int, ...]:
    whole = list(tokenizer("a")["input_ids"])
    alone = list(tokenizer("a", add_special_tokens=False)["input_ids"])
    places = (at for at in range(len(whole)) if whole[at : at + len(alone)] == alone)
    return tuple(whole[: next(places, 0)])
