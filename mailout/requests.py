"""Pages that ask to be sent: their status says so, and their time has come."""

from __future__ import annotations

import logging

from mailout.engine import Engine
from mailout.errors import Abort, MailoutError, SourceRefused, SourceUnavailable, StoreError
from mailout.ports import ErrorRecord
from mailout.queue.model import Mailout

log = logging.getLogger("mailout.requests")


def take_up_ready(engine: Engine) -> list[Mailout]:
    """Write every page that asks for it into the queue; what could not be told before is told first.

    A page that must not be sent asks no more, and the errors database says why. A page that cannot be read
    just now is asked again in a minute.
    """
    engine.pages.tell_due()
    reporter = engine.pages.reporter
    if reporter is None or engine.pages.away:
        return []
    try:
        refs = reporter.ready(engine.store.now())
    except StoreError:
        raise
    except MailoutError as error:
        log.warning("Notion was not asked for new mailouts: %s", error)
        return []
    # A page that is still to be told how it went asks no more, whatever it says.
    told_later = {engine.store.mailout(id).ref for id in engine.store.due_reports()}
    taken = [_take_up(engine, ref) for ref in refs if ref not in told_later]
    return [mailout for mailout in taken if mailout is not None]


def _take_up(engine: Engine, ref: str) -> Mailout | None:
    try:
        mailout = engine.take_up(ref)
    except StoreError:
        raise
    except (SourceUnavailable, SourceRefused) as error:
        log.warning("%s could not be read: %s", ref, error)
        return None
    except MailoutError as error:
        log.warning("%s is not sent: %s", ref, error)
        if not isinstance(error, Abort):  # an abort has been written down
            engine.store.record_errors([ErrorRecord("cannot_be_sent", str(error), "content", mailout=ref)])
            engine.pages.refuse(ref)
        return None
    told = engine.pages.tell(mailout.id)
    if mailout.is_test and not told:
        # It would ask again every minute, and every answer would be another mail.
        log.warning("%s is not tried out: its page could not be told", ref)
        engine.store.cancel(mailout.id)
        return None
    return mailout
