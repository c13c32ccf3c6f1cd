"""What `mailout doctor` finds: one check a line, each with what to do about it.

The parts check themselves (the store, SES, Notion); what is here needs the settings alone. `mail_domain`
and `event_path` check what takes more than one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import tzinfo
from zoneinfo import ZoneInfo

from mailout.base.addresses import LEFT_OUT, address_of, parse_address_list
from mailout.base.select import Reads, first
from mailout.base.setting_values import is_of_this_machine
from mailout.base.settings import Settings
from mailout.base.time_format import day
from mailout.insight.doctor.checks import Check, Level
from mailout.letters.audience.subscriber_rows import COLUMNS
from mailout.letters.content.from_settings import unreachable
from mailout.outbox.feedback import feedback_rows

CLOCK_SECONDS = 2.0
DISK_BYTES = 1_000_000_000
SECRET_LENGTH = 16
HTTP_COOKIES_MENDED = {(3, 11): (3, 11, 10), (3, 12): (3, 12, 6)}


def settings_checks(settings: Settings) -> Iterator[Check]:
    """What a mailout would stop at, known before anybody is asked."""
    for warning in settings.warnings:
        yield Check("settings", "warn", warning, "Correct or remove it.")
    needed = {
        "FROM_EMAIL": (settings.from_email, "the address that letters come from"),
        "ORG_NAME": (settings.org_name, "your organisation's name: it stands in the footer"),
        "ORG_ADDRESS": (settings.org_address, "your postal address: the law asks for it in the footer"),
        "UNSUBSCRIBE_BASE_URL": (settings.unsubscribe_base_url, "where the gateway's /unsubscribe is"),
        "UNSUBSCRIBE_SECRET": (settings.unsubscribe_secret, "a long random text, and keep it"),
    }
    weak = {check.name: check for check in _not_good_enough(settings)}
    for name, (value, what) in needed.items():
        if value:
            yield weak.get(name) or Check(name, "ok", "is set")
        else:
            yield Check(name, "fail", "is missing; no mail is sent without it", f"Set it to {what}.")
    yield from (check for name, check in weak.items() if name not in needed)
    yield _test_emails(settings)
    yield _admin_email(settings)
    yield _media(settings)
    if settings.signup:
        yield _sign_ups(settings)


def _not_good_enough(settings: Settings) -> Iterator[Check]:
    """Set, and yet not good enough for real readers."""
    url, secret, sends = settings.unsubscribe_base_url, settings.unsubscribe_secret, not settings.rehearses
    local = {name: (harm, remedy) for name, harm, remedy in unreachable(settings) if sends}
    for name, (harm, remedy) in local.items():
        yield Check(name, "fail", f"is an address of this machine: {harm}", remedy)
    if url and sends and "UNSUBSCRIBE_BASE_URL" not in local and not url.lower().startswith("https://"):
        message = "is not https, and mail programs show their unsubscribe button for https alone"
        yield Check(
            "UNSUBSCRIBE_BASE_URL", "warn", message, "Put the gateway behind TLS; docs/feedback.md says how."
        )
    if secret and len(secret.get_secret_value()) < SECRET_LENGTH:
        remedy = "Set a long random one before the first mail: openssl rand -hex 32"
        yield Check("UNSUBSCRIBE_SECRET", "warn", "is short: whoever guesses it can sign links", remedy)


def _test_emails(settings: Settings) -> Check:
    parsed = parse_address_list(settings.test_emails)
    if not parsed.addresses:
        remedy = "Set it to one or more addresses, separated by commas."
        return Check("TEST_EMAILS", "warn", "holds no valid address; test runs stop at it", remedy)
    if parsed.rejected:
        wrong = ", ".join(written for written, _ in parsed.rejected)
        return Check("TEST_EMAILS", "warn", f"left out: {wrong}", "Correct or remove them.")
    n = len(parsed.addresses)
    return Check("TEST_EMAILS", "ok", f"tests go to {'1 address' if n == 1 else f'{n} addresses'}")


def _admin_email(settings: Settings) -> Check:
    if settings.admin_email:
        return Check("ADMIN_EMAIL", "ok", "is set")
    remedy = "Set it to the address of your administrator."
    return Check("ADMIN_EMAIL", "warn", "is missing; nobody is told when a mailout needs a person", remedy)


def reach_checks(settings: Settings, store: Reads) -> Iterator[Check]:
    """To an address that bounced for good or complained nothing is sent, not even to ourselves."""
    ours = {
        "ADMIN_EMAIL": ((settings.admin_email,), "alerts do"),
        "SIGN_IN_ADMINS": (settings.sign_in_admins, "sign-in links do"),
        "SIGN_IN_EDITORS": (settings.sign_in_editors, "sign-in links do"),
    }
    for name, (addresses, what) in ours.items():
        for address in filter(None, addresses):
            if why := _turned_away(store, address_of(address) or address, ZoneInfo(settings.send_timezone)):
                message = f"{address} {why}: {what} not reach it"
                yield Check(name, "fail", message, "Set it to another address.")


def _turned_away(store: Reads, email: str, zone: tzinfo) -> str | None:
    """Why the store lets no single mail go there. Of a subscriber their status decides, else the events."""
    person = first(store, COLUMNS, {"email_norm": email})
    if person is None:
        events = feedback_rows.delivery_events(store, email=email)
        complaints = [one["event_at"] for one in events if one["event_type"] == "spamreport"]
        bounces = [one["event_at"] for one in events if one["detail"].get("bounceType") == "Permanent"]
    else:
        complaints = [person["complained_at"]] if person["complained_at"] else []
        bounces = [person["status_updated_at"] or 0.0] if person["status"] == "bounced" else []
    for why, moments in (("complained", complaints), ("bounced", bounces)):
        for at in moments:
            return f"{why} on {day(at, zone).strip()}" if at else why
    return None


def _sign_ups(settings: Settings) -> Check:
    if settings.trusted_proxies:
        return Check("SIGNUP", "ok", "strangers may join by /join")
    message = (
        "TRUSTED_PROXIES is not set: behind a proxy all visitors come from its address and share one limit"
    )
    return Check("SIGNUP", "warn", message, "Set it to the proxy's address, such as 127.0.0.1.")


def _media(settings: Settings) -> Check:
    if settings.media_bucket or settings.media_supabase_bucket:
        bucket = settings.media_bucket or settings.media_supabase_bucket
        return Check("media", "ok", f"kept in the bucket {bucket}")
    address = settings.media_base_url or settings.public_url
    if address and (settings.rehearses or not is_of_this_machine(address)):
        return Check("media", "ok", f"served from {address}")
    level: Level = "fail" if settings.mailout_transport == "ses" else "warn"
    remedy = "Set PUBLIC_URL (the gateway's address), MEDIA_BUCKET or MEDIA_SUPABASE_BUCKET."
    return Check("media", level, "pictures can only be seen on this machine", remedy)


def python_check(version: tuple[int, int, int]) -> Check:
    """Known holes of Python itself that strangers can reach through the gateway."""
    written = ".".join(map(str, version))
    mended = HTTP_COOKIES_MENDED.get(version[:2])
    if mended is None or version >= mended:
        return Check("Python", "ok", written)
    better = ".".join(map(str, mended))
    message = f"{written} has a known hole: long cookies make its http.cookies slow (CVE-2024-7592)"
    return Check("Python", "warn", message, f"Install Python {better} or newer, and make .venv again.")


def clock_check(difference: float) -> Check:
    """Slots and limits go by the store's time; what people read in logs goes by this machine's."""
    if abs(difference) <= CLOCK_SECONDS:
        return Check("clock", "ok", f"{abs(difference):.1f} s from the store's")
    way = "behind" if difference > 0 else "ahead of"
    remedy = "Let this machine set its clock from the network (NTP)."
    return Check("clock", "warn", f"{abs(difference):.0f} s {way} the store's", remedy)


def disk_check(free: int) -> Check:
    """A journal that cannot be written stops the sending; a report that cannot be written is missed later."""
    if free >= DISK_BYTES:
        return Check("disk", "ok", f"{free / 1e9:,.1f} GB free in MAILOUT_HOME")
    level: Level = "warn" if free >= DISK_BYTES / 10 else "fail"
    return Check(
        "disk", level, f"{free / 1e6:,.0f} MB free in MAILOUT_HOME", "Make room, or move MAILOUT_HOME."
    )


def people_checks(
    active: int, left_out: Mapping[str, int], unknown: Mapping[str, int] | None = None
) -> Iterator[Check]:
    """Is there anybody to write to, and who is there in vain? `unknown`: how many have which other status."""
    if active:
        yield Check("subscribers", "ok", f"{active:,} {'is' if active == 1 else 'are'} active")
    else:
        remedy = "Import some: mailout subscribers import FILE.csv"
        yield Check("subscribers", "warn", "nobody is on the list yet", remedy)
    if unknown:
        words = ", ".join(f"“{word}”" for word in sorted(unknown))
        n = sum(unknown.values())
        who = f"{n:,} {'person has' if n == 1 else 'people have'}"
        yield Check(
            "subscribers",
            "warn",
            f"{who} a status that mailout does not know ({words}): they get no mail",
            "Set it to active, unsubscribed or bounced in the table subscribers.",
        )
    for reason, n in left_out.items():
        remedy = "Look at `email_problem` in the table subscribers, and correct the address."
        yield Check(
            "subscribers",
            "warn",
            f"{n:,} active {'one gets' if n == 1 else 'ones get'} no mail: {LEFT_OUT[reason]}",
            remedy,
        )
