"""The `scalegrad` command. Each verb has a module that parses, calls the library and prints; it loads when needed."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from scalegrad._version import __version__
from scalegrad.extras import MissingExtra, need

if TYPE_CHECKING:
    from cyclopts import App, Argument, CycloptsError

# Verbs in the order `scalegrad --help` lists them: the package that a verb is built on, if it can be deleted, and the
# function or `App` of the verb.
OPEN_ENDED = "scalegrad.tasks.open_ended"
VERBS = {
    "demo": (OPEN_ENDED, "scalegrad.cli.demo:command"),
    "train": (OPEN_ENDED, "scalegrad.tasks.open_ended.train_command:app"),
    "evaluate": (OPEN_ENDED, "scalegrad.tasks.open_ended.evaluate_command:command"),
    "report": ("scalegrad.cli", "scalegrad.cli.report:command"),
    "sweep": (OPEN_ENDED, "scalegrad.cli.sweep:app"),
    "summarize": ("scalegrad.tasks.summarization", "scalegrad.tasks.summarization.command:app"),
    "caption": ("scalegrad.tasks.captioning", "scalegrad.tasks.captioning.command:app"),
    "complete": ("scalegrad.cli", "scalegrad.cli.complete:command"),
    "measure": ("scalegrad.cli", "scalegrad.cli.measure:command"),
    "study": ("scalegrad.study", "scalegrad.study.command:app"),
    "doctor": ("scalegrad.cli", "scalegrad.cli.doctor:command"),
}
HELP = """Train text generators that repeat themselves less, decode them, and measure how much they do.

Example: scalegrad demo --out demo"""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the `scalegrad` command line."""
    words = sys.argv[1:] if argv is None else list(argv)
    run(command(load=not VERBS.keys() & {*words}), words)


def command(load: bool = True) -> App:
    """The whole command, with the verbs whose packages are there; `load` them all, as its help does, or on demand."""
    app = new_app("scalegrad", HELP)
    for order, (verb, (package, place)) in enumerate(VERBS.items()):
        if _exists(package):
            app.command(place, name=verb, sort_key=order)
            if load:
                app[verb]
    return app


def new_app(name: str, help: str | None = None, **how: Any) -> App:
    """A command line in the style of ours: a flag has no opposite, and of a repeated option the last counts."""
    cyclopts = need("cyclopts", extra="cli")
    usual = cyclopts.Parameter(
        negative="", show_default=shown, allow_repeating=True, short_alias=lambda field, _: SHORT.get(field.name)
    )
    return cyclopts.App(  # type: ignore[no-any-return]
        name=name,
        help=help,
        help_format="plaintext",
        version=f"scalegrad {__version__}",
        default_parameter=usual,
        **how,
    )


SHORT = {"strategy": "-s", "objective": "-o"}  # options with a short name, the same in every verb


def shown(default: Any) -> str | None:
    """A default as help shows it; None where it says nothing."""
    if default is None or default is False or default == ():
        return None
    return ", ".join(map(str, default)) if isinstance(default, tuple) else str(default)


def run(app: App, argv: Sequence[str] | None = None) -> None:
    """Parse and run, and end the process.

    What only the user can put right (a bad value, a missing file, a missing extra) ends with exit code 2 and one
    sentence, failed jobs with exit code 1; `SCALEGRAD_TRACEBACK=1` shows where it came from.
    """
    from cyclopts import CycloptsError

    from scalegrad.runs.jobs import JobsFailed

    words = sys.argv[1:] if argv is None else list(argv)
    try:
        _check_words(app, words)
        code = app(words, exit_on_error=False, print_error=False, result_action="return_value")
    except (CycloptsError, ValueError, OSError, MissingExtra, JobsFailed) as mistake:
        if os.environ.get("SCALEGRAD_TRACEBACK"):
            raise
        if isinstance(mistake, CycloptsError):
            sentence = _usage(mistake, app.name[0])
        else:
            sentence = _with_options(_sentence(mistake), app, words)
        print(f"{app.name[0].split()[-1]}: {sentence}", file=sys.stderr)
        sys.exit(1 if isinstance(mistake, JobsFailed) else 2)
    sys.exit(code or 0)


def _check_words(app: App, words: list[str]) -> None:
    """Refuse an option that the verb does not have: where "-" is a file, the parser would take it for one, too."""
    if {"--help", "-h", "--version"} & {*words}:
        return
    names = {name for argument in _arguments(app, words) for name in argument.names}
    for word in words:
        option = word.partition("=")[0]
        if names and option.startswith("--") and option not in (*names, "--"):
            near = get_close_matches(option, names, n=1)
            raise ValueError(f"there is no option {option}" + (f"; did you mean {near[0]}?" if near else ""))


def _usage(mistake: CycloptsError, program: str) -> str:
    """What is wrong with the words that were typed, in one sentence."""
    from cyclopts import MissingArgumentError, UnusedCliTokensError

    mistake.verbose = False
    if isinstance(mistake, UnusedCliTokensError):
        return f"{(mistake.unused_tokens or [''])[0]!r} is one argument too many"
    argument = mistake.argument
    if isinstance(mistake, MissingArgumentError) and argument is not None and mistake.keyword is None:
        verb = " ".join((program, *(mistake.command_chain or ())))
        return f"{_typed_name(argument)} is missing; {verb} --help says what it is"
    return str(mistake)


def _sentence(mistake: Exception) -> str:
    """What a mistake says; of the system's own "[Errno 2] No such file or directory: 'x'" the file comes first."""
    if isinstance(mistake, OSError) and mistake.filename is not None and mistake.strerror is not None:
        return f"{mistake.filename}: {mistake.strerror}"
    return str(mistake)


def _with_options(sentence: str, app: App, words: list[str]) -> str:
    """The library's sentence with its arguments as they are typed: `new_tokens` is --new-tokens, `model` MODEL."""
    names = {argument.field_info.name: _typed_name(argument) for argument in _arguments(app, words)}
    first = re.match(r"([a-z_]+)(?=:| must| is | ')", sentence)
    if first and first[1] in names:
        sentence = names[first[1]] + sentence[first.end() :]
    return re.sub(r"(?<![\w-])[a-z]+(?:_[a-z]+)+(?![\w=])", lambda word: names.get(word[0], word[0]), sentence)


def _arguments(app: App, words: list[str]) -> list[Argument]:
    """What the verb in `words` takes, options and arguments; nothing where no verb is named."""
    _, apps, _ = app.parse_commands(words)
    return arguments(apps[-1])


def arguments(verb: App) -> list[Argument]:
    """What a verb takes, arguments and options."""
    if verb.default_command is None:
        return []
    taken = verb.assemble_argument_collection(parse_docstring=True)
    return [argument for argument in taken if argument.parse and not argument.children]


def verbs(app: App, typed: str) -> dict[str, App]:
    """Every verb by the words that are typed for it: "scalegrad train", "scalegrad summarize write"."""
    names = [name for name in app if not name.startswith("-")]
    own = {typed: app} if app.default_command else {}
    return own | {words: verb for name in names for words, verb in verbs(app[name], f"{typed} {name}").items()}


def _typed_name(argument: Argument) -> str:
    return argument.name if argument.index is None else argument.name.lstrip("-").upper()


def _exists(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False
