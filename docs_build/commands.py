"""Every verb and option in one view: `python docs_build/commands.py` writes docs/commands.md."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from scalegrad.cli import arguments, command, shown, verbs

PAGE = Path(__file__).parent.parent / "docs" / "commands.md"
HEAD = """# Commands

Every verb of the command line and all of its options. The same name means the same thing everywhere. An option that
may be repeated ends in `…`. This page is made by `python docs_build/commands.py`.

## Which verb has which option

"""


def page() -> str:
    """The whole page."""
    options = {
        words.removeprefix("scalegrad "): arguments(verb) for words, verb in verbs(command(), "scalegrad").items()
    }
    names: dict[str, list[str]] = {}
    for verb, its in options.items():
        for argument in its:
            names.setdefault(name_of(argument), []).append(verb)
    shared = [f"| `{name}` | {', '.join(its)} |" for name, its in sorted(names.items()) if len(its) > 1]
    parts = [HEAD + "\n".join(["| option | verbs |", "|---|---|", *shared])]
    for verb, its in options.items():
        rows = [f"| `{name_of(argument)}` | {kind_of(argument)} | {cell(argument)} |" for argument in its]
        parts.append("\n".join([f"## scalegrad {verb}", "", "| option | value | what it is |", "|---|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def name_of(argument: Any) -> str:
    """MODEL, or --batch."""
    long = next((name for name in argument.names if name.startswith("--")), argument.name)
    return str(long if argument.index is None else long.lstrip("-").upper())


def kind_of(argument: Any) -> str:
    """The type of an option, the same wherever its name stands; "…" where it may be repeated."""
    hint = argument.resolved_hint
    repeated = " …" if str(hint).startswith("tuple") else ""
    one = getattr(hint, "__args__", (hint,))[0] if repeated else hint
    kinds = {bool: "flag", int: "number", float: "number", Path: "path"}
    special = {"N|auto": "number, or auto", "GAMMA": "number, or schedule", "NAME": "text" + repeated}
    if argument.parameter.metavar in special:
        return special[argument.parameter.metavar]
    if argument.parameter.allow_leading_hyphen:  # "-" is standard input or output
        return "path" + repeated
    return kinds.get(one, "text") + repeated


def cell(argument: Any) -> str:
    """The help text, with the default where there is one to show."""
    text, default = argument.parameter.help or "", argument.field_info.default
    nothing = default is inspect.Parameter.empty
    if nothing or argument.required or "default:" in text or not shown(default):
        return str(text)
    return f"{text} Default: {shown(default)}."


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
