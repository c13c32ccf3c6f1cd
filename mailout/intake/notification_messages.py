"""From a producer's row to a message for the outbox."""

from __future__ import annotations

from dataclasses import dataclass
from zoneinfo import ZoneInfo

from mailout import ids
from mailout.audience.addresses import normalise
from mailout.content.model import UNSUBSCRIBE_URL, Content
from mailout.content.notification_templates import MANAGE_URL, NotificationTemplates, TemplateProblem
from mailout.errors import Abort
from mailout.intake.notification_job import BrokenJob, JobOptions, MailJob, build_job, read_job
from mailout.intake.notification_port import NewNotification, ProducerRow
from mailout.intake.notification_rules import Fail


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """Whose rows, and how they are treated."""

    source: str
    provider: str
    zone: ZoneInfo
    job: JobOptions
    batch: int = 100
    lost_after: float = 900.0  # seconds until a sender that was given up is no longer waited for
    rehearsal: bool = False  # written to a folder: ids of its own
    on_a_copy: bool = False  # every run begins with the producer's rows as they are: none was requeued
    leave_other_channels: bool = False


class NotificationMessages:
    """Builds and renders; it writes nothing."""

    def __init__(self, templates: NotificationTemplates, options: WorkerOptions) -> None:
        self._templates = templates
        self._options = options

    def key(self, row: ProducerRow) -> str:
        named = row.notification
        return ids.notification_key(
            self._options.source,
            str(named["dedupe_key"]),
            str(named["subscription_id"]),
            row.notification_id,
            rehearsal=self._options.rehearsal,
        )

    def make(self, row: ProducerRow) -> tuple[MailJob, Content] | Fail:
        """The row's job and its rendered mail."""
        try:
            job = read_job(build_job(row, self._options.job))
        except BrokenJob as error:
            return Fail("broken_payload", str(error))
        try:
            return job, self._templates.render(
                job.template_id, job.template_version, job.locale, job.variables
            )
        except TemplateProblem as problem:
            return Fail(problem.code, str(problem))
        except Abort as abort:
            return Fail("invalid_template", str(abort))

    def message(self, key: str, requeues: int, job: MailJob, content: Content) -> NewNotification:
        """For the outbox. `requeues`: each time a person has requeued a row, it gets another message."""
        rehearsed = content.hash if self._options.rehearsal else None
        values = {
            "notification_id": str(job.notification_id),
            MANAGE_URL: job.manage_url,
            UNSUBSCRIBE_URL: job.unsubscribe_url,
            "traceId": job.trace_id,
            **job.metadata,
        }
        return NewNotification(
            key=key,
            id=ids.notification_id(
                self._options.source, job.dedupe_key, str(job.subscription_id), requeues, rehearsed
            ),
            email=normalise(job.email),
            content_hash=content.hash,
            variables={name: value for name, value in values.items() if value is not None},
            dedupe_key=job.dedupe_key,
            request_id=job.trace_id,
            is_rehearsal=self._options.rehearsal,
        )
