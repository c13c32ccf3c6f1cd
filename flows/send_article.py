"""Send one batch of an article: each recipient gets it put together from the slices for their places."""

from __future__ import annotations

from typing import Any

from prefect import State
from prefect.runtime import flow_run
from prefect.states import Completed
from pydantic.json_schema import SkipJsonSchema

from flows.delivery import Delivery, deliver, deliver_again
from flows.runs import first_name, mailout_flow
from mailout.app.engine import Engine
from mailout.kinds.articles.order import DEFAULT_ACTOR, ArticleOrder
from mailout.kinds.mailouts.requests import still_asked
from mailout.outbox.queue.port import Request, RequestKind
from tasks.steps import assemble_variants, load_slices


@mailout_flow(flow_run_name=first_name)
def send_article(
    engine: Engine,
    campaign_tag: str,
    article_key: str,
    send_batch_id: str,
    audience_filter: dict[str, str] | None = None,
    actor: str = DEFAULT_ACTOR,
    asked: SkipJsonSchema[bool] = False,  # a request from outside: if the queue was faster, nothing happens
) -> State[Any]:
    """Send one batch of an article to everyone it has something for, once.

    The same batch again adds nobody and sends nothing twice; after a crash it goes on where it stopped.

    Args:
        campaign_tag: What the batch belongs to: small letters, digits, hyphens.
        article_key: Which article: the key of its slices.
        send_batch_id: A UUID. Together with the tag it names the batch.
        audience_filter: Only these: state, county, place, list, an attribute, or filter: a segment's filter.
        actor: Who sends it, for the record.
    """
    if again := deliver_again(engine):
        return again
    order = ArticleOrder.checked(campaign_tag, article_key, send_batch_id, audience_filter, actor)
    request = Request(order.to_ref(), RequestKind.ARTICLE)
    if asked and flow_run.run_count <= 1 and not still_asked(engine.intake, request):
        return Completed(message="The queue was faster: it has answered this request.", name="Answered")
    load_slices(order)
    letter = assemble_variants(order)
    if letter is None:
        return Completed(message="Nobody is in the audience: nothing was sent.", name="No recipients")
    steps = Delivery(engine)
    steps.add(letter)
    return deliver(steps, letter.id)
