"""An option is a field of a frozen dataclass; what the command line alone needs to know of it is declared here.

The help text of an option is the string below its field. Its name on the command line is the field's, unless `option`
says otherwise. A dataclass within another is marked `FLAT`: its fields become options of the command itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any

try:
    from cyclopts import Group, Parameter
except ModuleNotFoundError:  # the library works without a command line
    Group = Parameter = None  # type: ignore[assignment, misc]


def option(**how: Any) -> Any:
    """How the command line reads a field, for `Annotated`: alias, group, converter, … of `cyclopts.Parameter`."""
    return None if Parameter is None else Parameter(**how)


def parsed(read: Any, **how: Any) -> Any:
    """A field that `read` makes from the text of its option; a ValueError of `read` is shown as it is."""
    return option(converter=lambda _, tokens: read(tokens[-1].value), accepts_keys=False, n_tokens=1, **how)


def several(read: Any) -> Any:
    """A field of several values: its option may be repeated, and `read` makes each of them."""
    return option(converter=lambda _, tokens: tuple(read(token.value) for token in tokens), accepts_keys=False)


def numbers(text: str) -> tuple[float, ...]:
    """Numbers with commas between them; "none" is no number at all.

    >>> numbers("0.2,0.5"), numbers("none")
    ((0.2, 0.5), ())
    """
    try:
        return () if text == "none" else tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"expected numbers with commas between them, such as 0.2,0.5, not {text!r}") from None


def read_batch(text: str) -> int | None:
    """How many items at a time: None for auto.

    >>> read_batch("8"), read_batch("auto")
    (8, None)
    """
    if text == "auto":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"expected auto or a whole number of at least 1, not {text!r}")
    return int(text)


def _group(name: str, place: int) -> Any:
    """A part of the help that has a title; parts come in the order of their places."""
    return None if Group is None else Group(name, sort_key=place)


FLAT = option(name="*")
DATA, OPTIMISER, SAVING, MACHINE = (
    _group(name, place) for place, name in enumerate(("Data", "Optimiser", "Validation and saving", "Machine"))
)
NUMBERS = parsed(numbers, metavar="LIST")
MODEL = "A hub name, a folder, a run's folder, a .gguf file, or base: the small model that is shipped."
Model = Annotated[str, option(help=MODEL)]
AsJson = Annotated[bool, option(name="--json", help="Print JSON in place of tables and sentences.")]
Overwrite = Annotated[bool, option(help="Start anew, whatever work of this kind is there already.")]
SkipBad = Annotated[bool, option(help="Leave out lines or items that cannot be read, and count them.")]
Html = Annotated[Path | None, option(metavar="FILE", help="Write one HTML page as well.")]
# A file, or "-" for standard input or output: the only word that begins with a hyphen and is no option.
Stream = Annotated[str, option(allow_leading_hyphen=True)]
Batch = Annotated[int | None, parsed(read_batch, metavar="N|auto", show_default="auto")]


def values(config: Any) -> dict[str, Any]:
    """The options of a dataclass by name, those of dataclasses within it included.

    >>> from scalegrad.models.pretrained import Loading
    >>> values(Loading(device="cpu"))
    {'device': 'cpu', 'dtype': 'auto', 'trust_remote_code': False}
    """
    found: dict[str, Any] = {}
    for field in fields(config):
        value = getattr(config, field.name)
        found |= values(value) if is_dataclass(value) and not _is_one_value(value) else {field.name: value}
    return found


def _is_one_value(value: Any) -> bool:
    """Whether a dataclass is written as one text, as an objective is, and not as options."""
    return "__str__" in vars(type(value))


def fill(arguments: Any, known: Mapping[str, Any], source: str) -> None:
    """Give every option that was not typed its value among `known`: for the providers of `cyclopts.App(config=…)`."""
    from cyclopts import Token

    for argument in arguments:
        value = known.get(argument.field_info.name)
        if value is None or argument.tokens or argument.children:
            continue
        if argument.resolved_hint is float:
            value = float(value)
        argument.append(Token(keyword=argument.name, source=source, implicit_value=value))
