"""`mailout`: the commands, and how each of them ends.

Exit codes: 0 done, 1 failed, 2 wrong usage or settings, 75 deferred; and 130 Ctrl-C, 143 SIGTERM, 141 when
nobody reads on.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from cli.output import (
    OutputError,
    choose_json,
    open_closed_streams,
    print_in_any_alphabet,
    say,
    say_error,
    writing,
)
from mailout import __version__
from mailout.base.errors import MailoutError, UsageError
from mailout.base.private_files import keep_private

COMMANDS = {
    "init": "Set up: answer a few questions, and .env is written.",
    "demo": "See it work: made-up people, no account, half a minute.",
    "send": "Send one mailout to everyone who should have it, once.",
    "preview": "Write a mail to files, to look at before it is sent.",
    "status": "Show the status of everything, one mailout, or one message.",
    "subscribers": "The people on your list: import, export, look one up.",
    "lists": "The lists that people can be on, and the form to join one.",
    "segments": "Who should get it: filters over your subscribers, by name.",
    "doctor": "Would a mailout go through? If not: what to do about it.",
    "queue": "What waits and what was sent: pause, cancel, retry, settle.",
    "messages": "Single mails that failed or wait: list, retry, cancel.",
    "article": "Articles put together for each reader: import, census, send.",
    "dead-letters": "Failed messages of articles, unreadable events: requeue, drop.",
    "events": "Apply what SES has reported; sync its suppression list.",
    "notify": "Send what a producer's SQLite queue of notifications asks for.",
    "publish": "Put a letter into the archive on the web.",
    "unpublish": "Take a letter out of the archive on the web.",
    "retention": "Move old mailouts out of the store, into files.",
    "tokens": "Tokens for programs that send single mails over HTTP.",
    "companies": "The companies these tokens belong to, and their limits.",
    "up": "Run everything here: Prefect, the flows, the gateway.",
    "gateway": "Serve unsubscribe links, SES's events and pictures over HTTP.",
    "notion": "Make the databases to write in, in Notion.",
}
"""Each is a module of `cli.commands`, imported when it is asked for: `--help` need not load an engine."""
TOGETHER = {"unpublish": "publish"}
"""Two commands that are one module."""
_NO_SUCH = re.compile(r"No such command '(.*?)'")


def module_of(command: str) -> str:
    return f"cli.commands.{TOGETHER.get(command, command).replace('-', '_')}"


class Commands(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        command = typer.main.get_command(import_module(module_of(cmd_name)).app)
        command = getattr(command, "commands", {}).get(cmd_name, command)  # if it is one of two in there
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


app = typer.Typer(cls=Commands, rich_markup_mode=None)


def _show_version(wanted: bool) -> None:
    if wanted:
        say(f"mailout {__version__}")
        raise typer.Exit


@app.callback(epilog="Begin with: mailout demo. Each command has a --help of its own.")
def mailout(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version),
    ] = False,
) -> None:
    """Sends a letter that you wrote in Notion or in a Markdown file to everyone on your list, once."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command. What it could not do becomes one line on stderr; the unforeseen is not hidden."""
    keep_private()
    open_closed_streams()
    print_in_any_alphabet()
    arguments = sys.argv[1:] if arguments is None else arguments
    choose_json("--json" in arguments)
    try:
        code = _run(arguments)
        with writing():
            sys.stdout.flush()
        return code
    except BrokenPipeError:  # whoever read our output (`| head`) has seen enough
        code = 128 + signal.SIGPIPE
    except OutputError as error:
        code = 1
        say_error(f"The output cannot be written: {error.strerror}.", MailoutError.code, code)
    finally:
        try:
            sys.stderr.flush()
        except OSError:  # nobody can be told
            _discard(sys.stderr)
    _discard(sys.stdout)
    return code


def _discard(stream: TextIO) -> None:
    """What it still holds: Python would complain of it once more on its way out."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(arguments: list[str]) -> int:
    try:
        command = typer.main.get_command(app)
        command._main_shell_completion({}, "mailout")  # ends here when the shell asks for completions
        arguments = arguments or ["--help"]
        output = writing() if "--help" in arguments else nullcontext()
        with output, command.make_context("mailout", arguments) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except MailoutError as error:
        say_error(str(error), error.code, error.exit_code)
        return error.exit_code
    except TyperException as error:
        if _is_help(error):
            say(error.format_message())
        else:
            say_error(_usage(error), UsageError.code, error.exit_code)
        return error.exit_code
    except UnicodeEncodeError:
        if not (odd := _not_text(arguments)):
            raise
        said = f"`{odd}` contains bytes that are not UTF-8 text. Retype it."
        say_error(said, UsageError.code, UsageError.exit_code)
        return UsageError.exit_code
    except (KeyboardInterrupt, typer.Abort) as stop:
        return 128 + getattr(stop, "number", signal.SIGINT)
    return 0


def _not_text(arguments: Sequence[str]) -> str | None:
    """The first one in another encoding than the shell's, with its odd bytes as numbers."""
    shown = (os.fsencode(one).decode(errors="backslashreplace") for one in arguments)
    return next((one for one, typed in zip(shown, arguments, strict=True) if one != typed), None)


def _is_help(error: TyperException) -> bool:
    """A group that was given nothing to do shows its help."""
    context = getattr(error, "ctx", None)
    return context is not None and error.format_message() == context.get_help()


def _usage(error: TyperException) -> str:
    """What is wrong, and where to read how it is done."""
    context, said = getattr(error, "ctx", None), error.format_message()
    if context is not None and (missing := _NO_SUCH.match(said)):
        return _mistyped(missing[1], context)
    more = f" See `{context.command_path} --help`." if context is not None else ""
    return said.rstrip(".") + "." + more


def _mistyped(typed: str, context: Any) -> str:
    """What a command that is not there was meant to be."""
    path, names = str(context.command_path), context.command.list_commands(context)
    meant = [f"{path} {name} {typed}" for name in names if typed in _below(context, name)]
    meant = meant or [f"{path} {name}" for name in get_close_matches(typed, names, n=3, cutoff=0.5)]
    if meant:
        return f"There is no command `{path} {typed}`. Did you mean {_either(meant)}?"
    return f"There is no command `{path} {typed}`. There are: {', '.join(names)}."


def _below(context: Any, name: str) -> Sequence[str]:
    return tuple(getattr(context.command.get_command(context, name), "commands", ()))


def _either(commands: Sequence[str]) -> str:
    quoted = [f"`{command}`" for command in commands]
    return " or ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
