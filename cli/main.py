"""`mailout`: the commands, and how each of them ends.

Exit codes: 0 done, 1 failed, 2 wrong usage or settings, 75 deferred, 130 Ctrl-C, 141 nobody reads on, 143 SIGTERM.
"""

from __future__ import annotations

import os
import sys

import click
import typer

from cli import demo, preview, queue, send, status, subscribers
from cli.output import say_error
from mailout.errors import MailoutError

app = typer.Typer(
    name="mailout",
    help="Send a letter that you wrote in Notion or in a Markdown file to everyone on your list, once.",
    epilog="Try it without any account: mailout demo",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo", epilog=demo.EXAMPLE)(demo.demo)
app.command("send", epilog=send.EXAMPLE)(send.send)
app.command("preview", epilog=preview.EXAMPLE)(preview.preview)
app.command("status", epilog=status.EXAMPLE)(status.status)
app.add_typer(subscribers.app, name="subscribers")
app.add_typer(queue.app, name="queue")

CTRL_C, BROKEN_PIPE = 130, 141


def main() -> int:
    """Run one command; what it could not do becomes one line on stderr. The unforeseen is not hidden."""
    try:
        code = app(prog_name="mailout", standalone_mode=False)
        sys.stdout.flush()
    except MailoutError as error:
        say_error(str(error), error.exit_code)
        return error.exit_code
    except click.ClickException as error:
        say_error(_usage(error), error.exit_code)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return CTRL_C
    except BrokenPipeError:
        # Whoever read our output (`| head`) has seen enough; Python would complain once more on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    return code if isinstance(code, int) else 0


def _usage(error: click.ClickException) -> str:
    """click's sentence, and where to read more."""
    context = getattr(error, "ctx", None)
    more = f" See `{context.command_path} --help`." if context is not None else ""
    return error.format_message().rstrip(".") + "." + more
