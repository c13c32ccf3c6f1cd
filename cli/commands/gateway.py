"""`mailout gateway`: the HTTP side, on its own."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from cli.engine import read_settings
from cli.output import note
from cli.processes.listening import listen
from cli.processes.prefect_api import environment, headers, run_address
from gateway.app import create_app
from gateway.dashboard.desk import Tools
from gateway.looks import looks
from gateway.prefect_events import Emitter
from gateway.server import server_for
from gateway.watch import Watch
from mailout.app import forgetting, notification_wiring, wiring
from mailout.app.drafts import Drafts
from mailout.app.examination import examine
from mailout.base.clock import SystemClock
from mailout.base.settings import Settings
from mailout.store import Store

log = logging.getLogger("mailout.gateway")

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(epilog="Example: mailout gateway --host 0.0.0.0 --port 8080")
def gateway(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port.")] = 8080,
) -> None:
    """Serve requests to send, SES events, the unsubscribe page, pictures and the queue, until it is stopped.

    Put TLS in front of it.
    """
    settings = read_settings(logging.INFO)
    for missing in _missing(settings):
        note(f"mailout: {missing}")
    listening = listen("--host, --port", host, port)
    store = wiring.open_store(settings)
    certificates = wiring.sns_certificates(settings)
    clock = SystemClock()
    pages, drafts = wiring.notion_pages(settings, clock), Drafts(settings, store)
    try:
        served = create_app(
            settings,
            store,
            wiring.queue_forecast(settings, store),
            certificates=certificates,
            confirm=wiring.sns_topics(settings).confirm,
            emitter=_emitter(settings.mailout_home),
            page_lookup=wiring.page_lookup(settings),
            tools=_tools(settings, store, drafts),
            watch=Watch(list(looks(settings, store, pages, wiring.event_queue(settings))), clock),
        )
        log.info("The gateway listens on %s, port %d.", host, listening.getsockname()[1])
        server_for(served, trusted_proxies=settings.trusted_proxies).run(sockets=[listening])
    except KeyboardInterrupt:  # the server has ended; it raises the signal again
        return
    finally:
        listening.close()
        certificates.close()
        drafts.close()
        if pages is not None:
            pages.close()
        store.close()


def _tools(settings: Settings, store: Store, drafts: Drafts) -> Tools:
    return Tools(
        examine=partial(examine, settings),
        forget=partial(forgetting.forget_here, settings),
        producer_queue=partial(notification_wiring.producer_queue, settings),
        requeue_notification=partial(notification_wiring.requeue_notification, settings),
        run_address=partial(run_address, environment(settings.mailout_home)),
        drafts=drafts,
    )


def _missing(settings: Settings) -> list[str]:
    """What will be refused for want of a setting; better said now than found out later."""
    refused = {
        "SNS_TOPIC_ARNS is not set: every event will be refused.": settings.sns_topic_arns,
        "UNSUBSCRIBE_SECRET is not set: no unsubscribe link will work.": settings.unsubscribe_secret,
        "ADMIN_PASSWORD is not set: the dashboard stays closed.": settings.has_dashboard,
        "API_TOKEN is not set: /send-mailout, /mailouts and /metrics are closed.": settings.api_token,
    }
    return [why for why, is_set in refused.items() if not is_set]


def _emitter(home: Path) -> Emitter | None:
    """Prefect's API and its key, from the variables that Prefect itself reads."""
    env = environment(home)
    url = env.get("PREFECT_API_URL")
    return Emitter(url, headers=headers(env)) if url else None
