"""The job that a producer's row becomes: built from its tables, held against the contract's schema."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

from mailout.base.clock import timestamp_of
from mailout.kinds.notifications.port import ProducerRow
from mailout.letters.content.model import in_every_text

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

VERSION = "1.0"
TEMPLATE = "open-seat"
VARIABLES = "template.variables"


MAX_ATTEMPTS = 3
LOCK_SECONDS = 120
"""How long a row is a worker's."""
RETRY_MS = (0, 2000, 7000)
"""After each attempt."""


def retry_delay(attempts: int, retry_after: float | None = None) -> float:
    """Seconds until the next pick after so many attempts: the later of both, within the lock's time."""
    scheduled = RETRY_MS[min(attempts, len(RETRY_MS)) - 1] / 1000
    return min(max(scheduled, retry_after or 0.0), float(LOCK_SECONDS))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """Whose rows, and how they are treated."""

    source: str
    provider: str
    zone: ZoneInfo
    base_url: str  # of the producer's site
    locale: str
    template_version: str = "v1"
    batch: int = 100
    lost_after: float = 900.0  # seconds until a sender that was given up is no longer waited for
    rehearsal: bool = False  # written to a folder: ids of its own
    on_a_copy: bool = False  # every run begins with the producer's rows as they are


FALLBACKS = {"courseTitle": "Course update", "courseString": "TBD", "sectionNumber": "TBD"}
NO_MEETINGS = "TBA"
"""What a mail says of a section that the producer knows nothing about."""
FIRST_MOMENT = datetime(2, 1, 1, tzinfo=UTC).timestamp()
LAST_MOMENT = datetime(9999, 1, 1, tzinfo=UTC).timestamp()
"""A year from either end of the calendar: what lies between can be shown in every zone."""
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")
"""What JSON can say and neither a database nor a mail can hold: NUL, and half of a character."""


class BrokenJob(ValueError):
    """The row does not make a valid job; `code` is what its row is told."""

    def __init__(self, message: str, code: str = "broken_payload") -> None:
        super().__init__(message)
        self.code = code


# ── building ──


def build_job(row: ProducerRow, options: WorkerOptions) -> dict[str, Any]:
    """The payload as the contract describes it. What the event noted goes before what tables say now."""
    event, subscription = row.event or {}, row.subscription or {}
    section, course = row.section or {}, row.course or {}
    noted = _json_object(event.get("payload"), "open_events.payload")
    links = links_of(subscription, options.base_url)
    title = noted.get("courseTitle") or course.get("title")
    number = noted.get("sectionNumber") or section.get("section_number")
    event_at = as_date_time(event.get("event_at"))
    variables = {
        "courseTitle": title,
        "courseString": noted.get("courseString") or course.get("course_string"),
        "sectionIndex": event.get("index_number"),
        "sectionNumber": number,
        "meetingSummary": noted.get("meetingSummary")
        or meeting_summary(row.meetings, section)
        or NO_MEETINGS,
        "campus": event.get("campus_code"),
        "eventDetectedAt": as_date_time(noted.get("detectedAt")) or event_at,
        "notes": noted.get("notes"),
        **links,
    }
    job = {
        "version": noted.get("version", VERSION),
        "notificationId": row.notification_id,
        "openEventId": row.notification.get("open_event_id"),
        "subscriptionId": row.notification.get("subscription_id"),
        "dedupeKey": row.notification.get("dedupe_key"),
        "traceId": event.get("trace_id"),
        "locale": language_tag(subscription.get("locale") or options.locale),
        "recipient": {"email": subscription.get("contact_value")},
        "template": {
            "id": TEMPLATE,
            "version": options.template_version,
            "variables": FALLBACKS | _known(variables),
        },
        "event": _known(
            {
                "sectionId": event.get("section_id"),
                "termId": event.get("term_id"),
                "campusCode": event.get("campus_code"),
                "indexNumber": event.get("index_number"),
                "sectionNumber": number,
                "subjectCode": section.get("subject_code"),
                "courseTitle": title,
                "statusBefore": event.get("status_before"),
                "statusAfter": event.get("status_after"),
                "eventAt": event_at,
                "detectedBy": event.get("detected_by"),
                "snapshotHash": noted.get("snapshotHash"),
            }
        ),
        "subscription": _known(
            {
                "status": str(subscription.get("status")).lower(),
                "contactType": str(subscription.get("contact_type")).lower(),
                "contactValue": subscription.get("contact_value"),
                "contactHash": subscription.get("contact_hash"),
                "lastKnownSectionStatus": subscription.get("last_known_section_status"),
                "preferences": preferences_of(subscription),
            }
        ),
        "links": links,
        "deliveryPolicy": {
            "maxAttempts": MAX_ATTEMPTS,
            "lockTtlSeconds": LOCK_SECONDS,
            "retryScheduleMs": list(RETRY_MS),
        },
    }
    return _known(job)


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def preferences_of(subscription: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = _json_object(subscription.get("metadata"), "subscriptions.metadata")
    preferences = metadata.get("preferences")
    if preferences is None:
        return {}
    if not isinstance(preferences, dict):
        raise BrokenJob("subscriptions.metadata: preferences is not an object")
    return preferences


def _json_object(text: Any, where: str) -> Mapping[str, Any]:
    if text is None or text == "":
        return {}
    try:
        value = json.loads(text)
    except (ValueError, TypeError) as error:
        raise BrokenJob(f"{where} is not JSON: {error}") from None
    except RecursionError:
        raise BrokenJob(f"{where} is nested too deeply") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BrokenJob(f"{where} is not a JSON object")
    return value


def links_of(subscription: Mapping[str, Any], base_url: str) -> dict[str, str]:
    """The producer's own pages."""
    base = base_url.rstrip("/")
    links = {"manageUrl": f"{base}/subscriptions/{quote(str(subscription.get('subscription_id')), safe='')}"}
    if subscription.get("unsubscribe_token"):
        links["unsubscribeUrl"] = (
            f"{base}/unsubscribe?token={quote(str(subscription['unsubscribe_token']), safe='')}"
        )
    return links


def language_tag(locale: str) -> str:
    """`en_us` → `en-US`: written in many ways, meant as one."""
    language, *rest = re.split(r"[-_]", locale.strip())
    return "-".join([language.lower(), *(part.upper() if len(part) == 2 else part.title() for part in rest)])


def as_date_time(written: Any) -> str | None:
    """RFC 3339, from either form that a producer writes: ISO with a zone, or `datetime('now')`, which is UTC
    without saying so. What is no time stays, for the schema to refuse. BrokenJob: no zone could show it."""
    if written is None or written == "":
        return None
    moment = timestamp_of(str(written))
    if moment is None:
        return str(written)
    if not FIRST_MOMENT <= moment < LAST_MOMENT:
        raise BrokenJob("a time of the event is outside of the years 2 to 9998")
    return datetime.fromtimestamp(moment, UTC).isoformat().replace("+00:00", "Z")


def meeting_summary(meetings: Sequence[Mapping[str, Any]], section: Mapping[str, Any]) -> str:
    """`M 09:00–10:00, TIL 124`, one after another."""
    said = list(dict.fromkeys(filter(None, map(_meeting, meetings))))
    return "; ".join(said) or str(section.get("meeting_mode_summary") or "")


def _meeting(meeting: Mapping[str, Any]) -> str:
    start, end = meeting.get("start_minutes"), meeting.get("end_minutes")
    hours = f"{_clock(start)}–{_clock(end)}" if isinstance(start, int) and isinstance(end, int) else None
    when = " ".join(filter(None, [meeting.get("meeting_day"), hours]))
    building = meeting.get("building_code") or meeting.get("campus_abbrev") or ""
    where = " ".join(filter(None, [building, str(meeting.get("room_number") or "")]))
    return ", ".join(filter(None, [when, where or meeting.get("campus_location_desc")]))


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


# ── checking ──


@cache
def _validator() -> Draft202012Validator:
    from jsonschema import Draft202012Validator  # a while to import: only for whoever has jobs

    schema = json.loads(files(__package__).joinpath("mail_job.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)


def require_valid(job: Mapping[str, Any]) -> None:
    """BrokenJob says where it departs from the contract. No value is repeated: it may be an address."""
    if job.get("version") != VERSION:
        raise BrokenJob(
            f"version {job.get('version')!r} is not {VERSION}, the only one that this program knows"
        )
    problems = []
    for error in sorted(_validator().iter_errors(job), key=lambda error: list(map(str, error.path))):
        where = ".".join(map(str, error.path)) or "job"
        is_named = error.validator in ("required", "additionalProperties", "enum", "const")
        said = error.message if is_named else f"is not of {error.validator} {error.validator_value}"
        problems.append(f"{where}: {said}")
    if problems:
        missing = all(one.startswith(f"{VARIABLES}: ") and "required" in one for one in problems)
        code = "template_variable_missing" if missing else "broken_payload"
        raise BrokenJob("; ".join(problems[:5]), code)
    for name in job.keys() - {"subscription"}:  # of which nothing is stored or mailed
        in_every_text(job[name], partial(_require_storable, name))


def _require_storable(where: str, text: str) -> str:
    if _UNSTORABLE.search(text):
        raise BrokenJob(f"{where}: a text in it has a NUL, or half of a character (a lone surrogate)")
    return text
