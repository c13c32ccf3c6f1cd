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

from mailout.audience.addresses import Dropped, normalise

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY = 24 * 60
SHORTEST_TOKEN = 24
SHORTEST_PASSWORD = 12


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
        if max(minutes) > 59 or start >= DAY or end > DAY:
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


def parse_confirm(written: Any) -> Any:
    """`auto`, or yes and no in all the ways in which people write them."""
    word = str(written).strip().lower()
    if word in ("true", "1", "yes", "on"):
        return "true"
    return "false" if word in ("false", "0", "no", "off") else word


def parse_list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def parse_delays(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in parse_list(text))
    except ValueError:
        raise ValueError("must be seconds, separated by commas") from None


def parse_ceilings(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in parse_list(text))
    except ValueError:
        raise ValueError("must be whole numbers, one a day, separated by commas") from None


def _check_delays(delays: tuple[float, ...]) -> tuple[float, ...]:
    if not all(0 <= delay < float("inf") for delay in delays):
        raise ValueError("must be seconds, none below 0")
    return delays


def _check_ceilings(ceilings: tuple[int, ...]) -> tuple[int, ...]:
    if any(ceiling < 1 for ceiling in ceilings):
        raise ValueError("must be whole numbers above 0")
    return ceilings


def _check_address(address: str) -> str:
    """As written, since some providers distinguish case; an IDN domain becomes punycode."""
    match normalise(address):
        case Dropped():
            raise ValueError("must be an e-mail address")
        case norm:
            return address if address.isascii() else norm


def _check_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 0) >= 0
    except ValueError:
        sound = False
    if not sound or re.search(r"\s", url):
        raise ValueError("must be a URL that starts with http:// or https://")
    return url


def _check_bare_url(url: str) -> str:
    """The token is put behind it, so it has no query of its own."""
    if "?" in url or "#" in url:
        raise ValueError("must be a URL without ? and #")
    return url


def _check_timezone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError("must be a time zone's name") from None
    return name


def _check_topics(arns: tuple[str, ...]) -> tuple[str, ...]:
    if not all(re.fullmatch(r"arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_.-]+", arn) for arn in arns):
        raise ValueError("must be ARNs of SNS topics, separated by commas")
    return arns


def is_of_this_machine(url: str) -> bool:
    """Whether nobody else can open it."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _check_api_token(token: SecretStr) -> SecretStr:
    if len(token.get_secret_value()) < SHORTEST_TOKEN:
        raise ValueError(
            f"must have at least {SHORTEST_TOKEN} characters; make one with `openssl rand -hex 32`"
        )
    return token


def _check_password(password: SecretStr) -> SecretStr:
    if len(password.get_secret_value()) < SHORTEST_PASSWORD:
        raise ValueError(f"must have at least {SHORTEST_PASSWORD} characters; a few words are easy to keep")
    return password


def _check_proxies(proxies: tuple[str, ...]) -> tuple[str, ...]:
    try:
        for one in proxies:
            ip_network(one)
    except ValueError:
        raise ValueError("must be IP addresses or networks (10.0.0.0/8), separated by commas") from None
    return proxies


def _check_locale(locale: str) -> str:
    if not re.fullmatch(r"[a-z]{2,3}(-[A-Z][a-z]{3})?(-[A-Z]{2})?", locale):
        raise ValueError("must be a language, with a country or without")
    return locale


def _check_color(color: str) -> str:
    if not re.fullmatch(r"#(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})", color):
        raise ValueError("must be a colour in hexadecimal digits")
    digits = color.lower().removeprefix("#")
    return f"#{digits if len(digits) == 6 else ''.join(digit * 2 for digit in digits)}"


def _check_ses_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        raise ValueError("must be a name of letters, digits, _ and -, at most 64")
    return name


def _check_service_key(key: SecretStr) -> SecretStr:
    if key.get_secret_value().startswith("sb_publishable_"):
        raise ValueError("must be a secret key (sb_secret_… or service_role), not the publishable one")
    return key


def _text(parse: Callable[[str], Any]) -> BeforeValidator:
    """From the environment a value is text; code may hand in the real thing."""
    return BeforeValidator(lambda value: parse(value) if isinstance(value, str) else value)


Password = Annotated[SecretStr, AfterValidator(_check_password)]
ApiToken = Annotated[SecretStr, AfterValidator(_check_api_token)]
Proxies = Annotated[tuple[str, ...], _text(parse_list), AfterValidator(_check_proxies)]
Address = Annotated[str, AfterValidator(_check_address)]
Url = Annotated[str, AfterValidator(_check_url)]
BareUrl = Annotated[Url, AfterValidator(_check_bare_url)]
Color = Annotated[str, AfterValidator(_check_color)]
Locale = Annotated[str, AfterValidator(_check_locale)]
SesName = Annotated[str, AfterValidator(_check_ses_name)]
Timezone = Annotated[str, AfterValidator(_check_timezone)]
Window = Annotated[SendWindow, _text(SendWindow.parse)]
Days = Annotated[frozenset[int], _text(parse_days)]
Delays = Annotated[tuple[float, ...], _text(parse_delays), AfterValidator(_check_delays)]
Ceilings = Annotated[tuple[int, ...], _text(parse_ceilings), AfterValidator(_check_ceilings)]
Topics = Annotated[tuple[str, ...], _text(parse_list), AfterValidator(_check_topics)]
Secrets = Annotated[tuple[SecretStr, ...], _text(parse_list)]
ServiceKey = Annotated[SecretStr, AfterValidator(_check_service_key)]
Confirm = Annotated[Literal["auto", "true", "false"], BeforeValidator(parse_confirm)]
