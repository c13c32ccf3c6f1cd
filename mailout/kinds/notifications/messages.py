"""From a producer's row to a message for the outbox."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mailout.base import ids
from mailout.base.addresses import normalise
from mailout.base.errors import Abort
from mailout.base.logs import NOTIFICATION_FIELDS
from mailout.kinds.notifications.job import BrokenJob, WorkerOptions, build_job, require_valid
from mailout.kinds.notifications.port import ProducerRow
from mailout.kinds.notifications.rules import Fail
from mailout.letters.content.model import UNSUBSCRIBE_URL, Content
from mailout.letters.content.notification_templates import MANAGE_URL, NotificationTemplates, TemplateProblem
from mailout.outbox.delivery.protocol import TAGGED_WITH, TRIED_ONCE
from mailout.outbox.delivery.single_mails import DEFAULT_COMPANY, SingleMail


class NotificationMessages:
    """Builds and renders; it writes nothing."""

    def __init__(self, templates: NotificationTemplates, options: WorkerOptions) -> None:
        self._templates = templates
        self._options = options

    def id(self, row: ProducerRow, requeues: int, content: Content | None) -> str:
        """Of its message. `requeues`: each time a person has requeued a row, it gets another one. A rehearsal
        has another one for each content."""
        named = row.notification
        rehearsed = (content.hash if content else "none") if self._options.rehearsal else None
        return ids.notification_id(
            self._options.source, str(named["dedupe_key"]), str(named["subscription_id"]), requeues, rehearsed
        )

    def make(self, row: ProducerRow) -> tuple[Mapping[str, Any], Content] | Fail:
        """The row's job, held against the schema, and its rendered mail."""
        try:
            job = build_job(row, self._options)
            require_valid(job)
            template = job["template"]
            locales = list(dict.fromkeys([job["locale"], self._options.locale]))
            return job, self._templates.render(
                template["id"], template["version"], locales, template["variables"]
            )
        except (BrokenJob, TemplateProblem) as error:
            return Fail(error.code, str(error))
        except Abort as abort:
            return Fail("invalid_template", str(abort))

    def message(self, id: str, requeues: int, job: Mapping[str, Any], content: Content) -> SingleMail:
        """For the outbox."""
        values = {
            "notification_id": str(job["notificationId"]),
            MANAGE_URL: job["links"]["manageUrl"],
            UNSUBSCRIBE_URL: job["links"].get("unsubscribeUrl"),
            TRIED_ONCE: "yes",  # the producer's queue counts the attempts
            TAGGED_WITH: " ".join(NOTIFICATION_FIELDS),
            "requeues": str(requeues) if requeues else None,
            "traceId": job.get("traceId"),
            "subscriptionId": str(job["subscriptionId"]),
            "openEventId": str(job["openEventId"]),
            "term": job["event"]["termId"],
            "campus": job["event"]["campusCode"],
        }
        return SingleMail(
            id=id,
            company_id=DEFAULT_COMPANY,
            email=str(normalise(job["recipient"]["email"])),
            content=content,
            values={name: value for name, value in values.items() if value is not None},
            idempotency_key=job["dedupeKey"],
            request_id=job.get("traceId"),
            is_rehearsal=self._options.rehearsal,
        )
