"""What the text of a setting means. A complaint begins with "must": `settings` puts the name before it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, SecretStr

from mailout.base.addresses import Dropped, normalise, punycode

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY_MINUTES = 24 * 60
SHORTEST_TOKEN = 24
SHORTEST_PASSWORD = 12
MAKE_ONE = "make one with `openssl rand -hex 32`"
MAX_CONCURRENCY = 256


@dataclass(frozen=True, slots=True)
class SendWindow:
    """The hours in which mail may leave, in minutes after midnight. It may cross midnight."""

    start_minute: int
    end_minute: int  # the first minute outside; 1440 is midnight

    @classmethod
    def parse(cls, text: str) -> SendWindow:
        found = re.fullmatch(r"(\d\d?):(\d\d)\s*[-–]\s*(\d\d?):(\d\d)", text.strip())
        if not found:
            raise ValueError("must be two times, HH:MM-HH:MM")
        hours, minutes = (int(found[1]), int(found[3])), (int(found[2]), int(found[4]))
        start, end = (hour * 60 + minute for hour, minute in zip(hours, minutes, strict=True))
        if max(minutes) > 59 or start >= DAY_MINUTES or end > DAY_MINUTES:
            raise ValueError("must be two times of a day, 00:00 to 24:00")
        if start == end:
            raise ValueError("must open and close at different times")
        return cls(start, end)

    def __str__(self) -> str:
        start, end = (f"{m // 60:02}:{m % 60:02}" for m in (self.start_minute, self.end_minute))
        return f"{start}-{end}"


def parse_days(text: str) -> frozenset[int]:
    """`mon-fri` or `mon,wed,sat` as days of the week, Monday 0. A range may run over the week's end."""
    days: set[int] = set()
    for part in parse_list(text.lower()):
        ends = [WEEKDAYS.index(end) if end in WEEKDAYS else None for end in re.split(r"\s*-\s*", part)]
        first, last = ends[0], ends[-1]
        if first is None or last is None or len(ends) > 2:
            raise ValueError(f"must be days or ranges of {', '.join(WEEKDAYS)}")
        days.update((first + step) % 7 for step in range((last - first) % 7 + 1))
    if not days:
        raise ValueError("must name a day")
    return frozenset(days)


def parse_concurrency(value: Any) -> int | str:
    if value == "auto" or (str(value).isdecimal() and 1 <= int(value) <= MAX_CONCURRENCY):
        return value if value == "auto" else int(value)
    raise ValueError(f"must be auto or a number from 1 to {MAX_CONCURRENCY}")


def parse_confirm(written: Any) -> Any:
    """`auto`, or yes and no in all the ways in which people write them."""
    word = str(written).strip().lower()
    if word in ("true", "1", "yes", "on"):
        return "true"
    return "false" if word in ("false", "0", "no", "off") else word


def parse_list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def parse_links(text: str) -> tuple[tuple[str, str], ...]:
    """`Website=https://example.org, Mastodon=https://…` as (label, address)."""
    pairs = [part.partition("=") for part in parse_list(text)]
    links = tuple((label.strip(), address.strip()) for label, _, address in pairs)
    if not all(label and _is_url(address) for label, address in links):
        raise ValueError("must be labels with addresses, Website=https://example.org, separated by commas")
    return links


def parse_addresses(text: str) -> tuple[str, ...]:
    """Normalised, each once; separated by commas, semicolons or spaces."""
    given = [normalise(part) for part in re.split(r"[,;\s]+", text) if part]
    if any(isinstance(one, Dropped) for one in given):
        raise ValueError("must be e-mail addresses, separated by commas")
    return tuple(dict.fromkeys(map(str, given)))


def _check_address(address: str) -> str:
    """As written, since some providers distinguish case; an IDN domain becomes punycode."""
    match normalise(address):
        case Dropped():
            raise ValueError("must be an e-mail address")
        case norm:
            return address if address.isascii() else norm


def _is_url(url: str) -> bool:
    parts = urlsplit(url)
    sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 0) >= 0
    return sound and not re.search(r"\s", url)


def as_browsers_write(url: str) -> str:
    """The host in lower case and punycode, without the scheme's own port: as `Host` has it."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = host if host.isascii() else punycode(host)
    if not host:
        raise ValueError("must have a valid host name")
    port = "" if parts.port in (None, _OWN_PORTS.get(parts.scheme)) else f":{parts.port}"
    user, at, _ = parts.netloc.rpartition("@")
    named = f"[{host}]" if ":" in host else host
    return parts._replace(netloc=f"{user}{at}{named}{port}").geturl()


_OWN_PORTS = {"http": 80, "https": 443}


def is_of_this_machine(url: str) -> bool:
    """Whether nobody else can open it."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _six_digits(color: str) -> str:
    digits = color.lower().removeprefix("#")
    return f"#{digits if len(digits) == 6 else ''.join(digit * 2 for digit in digits)}"


def _text(parse: Callable[[str], Any]) -> BeforeValidator:
    """From the environment a value is text; code may hand in the real thing."""
    return BeforeValidator(lambda value: parse(value) if isinstance(value, str) else value)


def _numbers(kind: type[float], complaint: str) -> BeforeValidator:
    """Numbers between commas."""

    def parse(text: str) -> tuple[float, ...]:
        try:
            return tuple(kind(part) for part in parse_list(text))
        except ValueError:
            raise ValueError(complaint) from None

    return _text(parse)


def _must(complaint: str, holds: Callable[[Any], object]) -> AfterValidator:
    """Refuses what does not hold, or what `holds` itself refuses."""

    def check(value: Any) -> Any:
        try:
            sound = holds(value)
        except (ValueError, LookupError, OSError):
            sound = False
        if not sound:
            raise ValueError(complaint)
        return value

    return AfterValidator(check)


def _must_have(characters: int, advice: str) -> AfterValidator:
    """So many at least, of a secret."""
    return _must(too_short(characters, advice), lambda secret: len(secret) >= characters)


def too_short(characters: int, advice: str) -> str:
    return f"must have at least {characters} characters; {advice}"


_TOPIC = re.compile(r"arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_.-]+")
_LOCALE = re.compile(r"[a-z]{2,3}(-[A-Z][a-z]{3})?(-[A-Z]{2})?")
_COLOR = re.compile(r"#(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})")
_SES_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

Password = Annotated[SecretStr, _must_have(SHORTEST_PASSWORD, "a few words are easy to keep")]
ApiToken = Annotated[SecretStr, _must_have(SHORTEST_TOKEN, MAKE_ONE)]
ServiceKey = Annotated[
    SecretStr,
    _must(
        "must be a secret key (sb_secret_… or service_role), not the publishable one",
        lambda key: not key.get_secret_value().startswith("sb_publishable_"),
    ),
]
Secrets = Annotated[tuple[SecretStr, ...], _text(parse_list)]
Proxies = Annotated[
    tuple[str, ...],
    _text(parse_list),
    _must(
        "must be IP addresses or networks (10.0.0.0/8), separated by commas",
        lambda proxies: all(map(ip_network, proxies)),
    ),
]
Address = Annotated[str, AfterValidator(_check_address)]
Addresses = Annotated[tuple[str, ...], _text(parse_addresses)]
Url = Annotated[str, _must("must be a URL that starts with http:// or https://", _is_url)]
PublicUrl = Annotated[Url, AfterValidator(as_browsers_write)]
Links = Annotated[tuple[tuple[str, str], ...], _text(parse_links)]
# A token is put behind it.
BareUrl = Annotated[Url, _must("must be a URL without ? and #", lambda url: not {"?", "#"} & set(url))]
Color = Annotated[
    str, _must("must be a colour in hexadecimal digits", _COLOR.fullmatch), AfterValidator(_six_digits)
]
Locale = Annotated[str, _must("must be a language, with a country or without", _LOCALE.fullmatch)]
SesName = Annotated[str, _must("must be a name of letters, digits, _ and -, at most 64", _SES_NAME.fullmatch)]
Timezone = Annotated[str, _must("must be a time zone's name", ZoneInfo)]
Window = Annotated[SendWindow, _text(SendWindow.parse)]
Days = Annotated[frozenset[int], _text(parse_days)]
Delays = Annotated[
    tuple[float, ...],
    _numbers(float, "must be seconds, separated by commas"),
    _must("must be seconds, none below 0", lambda delays: all(0 <= one < float("inf") for one in delays)),
]
Ceilings = Annotated[
    tuple[int, ...],
    _numbers(int, "must be whole numbers, one a day, separated by commas"),
    _must("must be whole numbers above 0", lambda ceilings: all(one >= 1 for one in ceilings)),
]
Topics = Annotated[
    tuple[str, ...],
    _text(parse_list),
    _must("must be ARNs of SNS topics, separated by commas", lambda arns: all(map(_TOPIC.fullmatch, arns))),
]
Confirm = Annotated[Literal["auto", "true", "false"], BeforeValidator(parse_confirm)]
Concurrency = Annotated[int | Literal["auto"], BeforeValidator(parse_concurrency)]
