"""What tests of articles play out: slices for a few places, people who live there, an engine on any store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mailout.app import wiring
from mailout.app.engine import Engine
from mailout.base.settings import Settings
from mailout.kinds.articles.order import ArticleOrder
from mailout.letters.audience.port import SubscriberRow
from mailout.letters.content.slices import PublishStatus, Slice, slice_id
from mailout.store import Store
from tests.clocks import FakeClock
from tests.unit.outbox.delivery.sending import ListTransport, MemoryJournals

US = "ocd-division/country:us"
OHIO = f"{US}/state:oh"
FRANKLIN, CUYAHOGA = f"{OHIO}/county:franklin", f"{OHIO}/county:cuyahoga"
ARLINGTON, CLEVELAND = f"{OHIO}/place:upper_arlington", f"{OHIO}/place:cleveland"

UNA, CLEO, TEX = "una@example.org", "cleo@example.org", "tex@example.org"
BATCH = "7c2cd1a2-5d0b-4b43-9a4e-2f7c53b0f1aa"


def part(section: int, scope: str | None, body: str, **fields: Any) -> Slice:
    fields = {"publish_status": PublishStatus.PUBLISHED, "article_key": "budget", **fields}
    one = Slice(section_order=section, scope_ocd_id=scope, body_md=body, **fields)
    return replace(one, id=slice_id(one.place))


SLICES = [
    part(1, US, "The nation.", is_headline=True, title="The budget", dek="Where the money goes"),
    part(2, OHIO, "The state.", title="Ohio"),
    part(3, FRANKLIN, "The county."),
    part(
        4, ARLINGTON, "The town.", is_headline=True, title="The budget in Upper Arlington", dek="Roads first"
    ),
]


def settle_in(store: Store, slices: Sequence[Slice] = SLICES) -> None:
    """Una lives in Upper Arlington, Cleo in Cleveland, Tex in no place that has a slice."""
    store.import_slices(slices)
    store.import_subscribers(
        [
            SubscriberRow(UNA, UNA, ocd_ids=(US, OHIO, FRANKLIN, ARLINGTON), attributes={"plan": "gold"}),
            SubscriberRow(CLEO, CLEO, ocd_ids=(US, OHIO, CUYAHOGA, CLEVELAND)),
            SubscriberRow(TEX, TEX, ocd_ids=("ocd-division/country:mx",)),
        ]
    )


def order(**fields: Any) -> ArticleOrder:
    wanted = {
        "campaign_tag": "spring",
        "article_key": "budget",
        "send_batch_id": BATCH,
        "actor": "ann",
        **fields,
    }
    return ArticleOrder.checked(**wanted)


def engine_on(
    store: Store,
    clock: FakeClock,
    home: Path,
    *,
    unsubscribe_base_url: str = "https://mail.example.org/unsubscribe",
    **transport: Any,
) -> Engine:
    """Sends into a list, on the test's clock: nothing is rehearsed, nobody is written to."""
    settings = Settings(
        mailout_home=home,
        from_email="news@example.org",
        org_name="The Ledger",
        org_address="1 Main Street",
        unsubscribe_base_url=unsubscribe_base_url,
        unsubscribe_secret="a secret of some length",
        send_rate_per_sec=0,
    )
    return wiring.build(
        settings,
        clock,
        store=store,
        transport=ListTransport(clock, **transport),
        journals=MemoryJournals(),
        worker="test",
        inline=True,  # a call moves the virtual clock
    )
