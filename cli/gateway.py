"""`mailout gateway`: the HTTP side, on its own."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer
import uvicorn

from cli.engine import read_settings
from cli.listening import require_free
from cli.output import note
from cli.prefect_api import environment, headers
from gateway.app import create_app
from gateway.prefect_events import Emitter
from mailout import wiring
from mailout.settings import Settings

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(epilog="Example: mailout gateway --host 0.0.0.0 --port 8080")
def gateway(
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port.")] = 8080,
) -> None:
    """Serve requests to send, SES events, the unsubscribe page, pictures and the queue, until it is stopped.

    Put TLS in front of it.
    """
    settings = read_settings(logging.INFO)
    for missing in _missing(settings):
        note(f"mailout: {missing}")
    require_free("--host, --port", host, port)
    store = wiring.open_store(settings)
    certificates = wiring.sns_certificates(settings)
    try:
        uvicorn.run(
            create_app(
                settings,
                store,
                certificates=certificates,
                confirm=wiring.sns_topics(settings).confirm,
                emitter=_emitter(settings.mailout_home),
            ),
            host=host,
            port=port,
            log_config=None,
            access_log=False,  # its lines would hold tokens, which are addresses
            server_header=False,
            ws="none",
            timeout_graceful_shutdown=10,
        )
    finally:
        certificates.close()
        store.close()


def _missing(settings: Settings) -> list[str]:
    """What will be refused for want of a setting; better said now than found out later."""
    missing = []
    if not settings.sns_topic_arns:
        missing.append("SNS_TOPIC_ARNS is not set: every event will be refused.")
    if settings.unsubscribe_secret is None:
        missing.append("UNSUBSCRIBE_SECRET is not set: no unsubscribe link will work.")
    if settings.api_token is None:
        missing.append("API_TOKEN is not set: nothing can be sent, watched or changed over HTTP.")
    return missing


def _emitter(home: Path) -> Emitter | None:
    """Prefect's API and its key, from the variables that Prefect itself reads."""
    env = environment(home)
    url = env.get("PREFECT_API_URL")
    return Emitter(url, headers=headers(env)) if url else None
