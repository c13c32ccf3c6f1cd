"""The domain that letters come from: SPF, DKIM and DMARC, by which those who receive mail judge it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from mailout.base.errors import CheckSkipped
from mailout.insight.doctor.checks import Check, checked

SPF_LOOKUPS = 10  # who receives mail follows no more of them (RFC 7208)
POLICIES = ("none", "quarantine", "reject")


class Names(Protocol):
    """The DNS. `CheckSkipped` if it cannot be asked."""

    def txt(self, name: str) -> Sequence[str]: ...
    def cname(self, name: str) -> str | None: ...


@dataclass(frozen=True, slots=True)
class MailDomain:
    """The domain, and what the provider says of it."""

    name: str  # behind the @ of FROM_EMAIL
    provider: str  # whose SPF has to be included
    signed_as: str | None = None  # the verified domain whose key signs: this one, or one above it
    signing: bool = False  # the provider has seen the DKIM records, and signs
    keys: Mapping[str, str | None] = field(default_factory=dict)
    """Names of the DKIM records, and what each has to point to; None: it holds a key of your own."""
    mail_from: str | None = None  # the custom MAIL FROM domain: where bounces go, and whose SPF counts


def domain_checks(domain: MailDomain, dns: Names) -> Iterator[Check]:
    for name, look in (("SPF", _spf), ("DKIM", _dkim), ("DMARC", _dmarc)):
        yield from checked(name, partial(look, domain, dns))


# ── SPF: who may send ────────────────────────────────────────────────────────────────────────────


def _spf(domain: MailDomain, dns: Names) -> Iterator[Check]:
    """Asked of the domain that bounces go to. Without one of your own that is the provider's, and holds."""
    asked = domain.mail_from or domain.name
    records = _records(dns, asked, "spf1")
    publish = f'Publish one TXT record at {asked}: "v=spf1 include:{domain.provider} ~all"'
    if len(records) > 1:
        yield Check("SPF", "warn", f"{asked} has {len(records)} records, so none of them counts", publish)
    elif _allows(dns, asked, domain.provider, set()):
        yield Check("SPF", "ok", f"{asked} lets {domain.provider} send")
    elif domain.mail_from:
        yield Check("SPF", "warn", f"{asked} does not let {domain.provider} send", publish)
    elif domain.signing:
        yield Check("SPF", "ok", f"that of {domain.provider} holds; DMARC rests on DKIM")
    else:
        remedy = "Finish DKIM, or set a custom MAIL FROM domain in SES: DMARC needs one of the two."
        yield Check("SPF", "warn", f"that of {domain.provider} holds, but is not {domain.name}'s own", remedy)


def _allows(dns: Names, name: str, provider: str, seen: set[str]) -> bool:
    """Includes and redirects are followed, as far as receivers follow them."""
    if name == provider:
        return True
    if name in seen or len(seen) >= SPF_LOOKUPS:
        return False
    seen.add(name)
    others = [
        other
        for record in _records(dns, name, "spf1")
        for other in re.findall(r"\s\+?(?:include:|redirect=)(\S+)", record.lower())
    ]
    return any(_allows(dns, other, provider, seen) for other in others)


# ── DKIM: who signed ─────────────────────────────────────────────────────────────────────────────


def _dkim(domain: MailDomain, dns: Names) -> Iterator[Check]:
    """The provider's word counts; the DNS tells what is missing, and what has gone since."""
    publish = "Publish the DKIM records that SES shows for this identity: Gmail and Yahoo ask for them."
    if domain.signed_as is None or not domain.keys:
        word = "SES signs" if domain.signing else "nothing of this domain is signed"
        yield Check("DKIM", "ok" if domain.signing else "warn", word, "" if domain.signing else publish)
        return
    try:
        missing = [name for name, target in domain.keys.items() if not _holds(dns, name, target)]
    except CheckSkipped as skipped:
        if domain.signing:
            yield Check("DKIM", "ok", f"SES signs as {domain.signed_as}; {skipped.message}")
        else:
            yield Check("DKIM", "warn", f"SES has not seen the records yet; {skipped.message}", publish)
        return
    if missing and domain.signing:
        message = f"SES signs as {domain.signed_as}, and the DNS no longer has {', '.join(missing)}"
        yield Check("DKIM", "warn", message, "Publish them again, before SES notices and stops signing.")
    elif missing:
        yield Check("DKIM", "warn", f"missing: {', '.join(missing)}", publish)
    elif domain.signing:
        yield Check("DKIM", "ok", f"SES signs as {domain.signed_as}")
    else:
        remedy = "Wait: SES looks again for up to 72 hours; then start the verification again in its console."
        yield Check("DKIM", "warn", "the records are there, and SES has not seen them yet", remedy)


def _holds(dns: Names, name: str, target: str | None) -> bool:
    if target is None:
        return any("p=" in record.replace(" ", "") for record in dns.txt(name))
    return dns.cname(name) == target


# ── DMARC: what to do with the others ────────────────────────────────────────────────────────────


def _dmarc(domain: MailDomain, dns: Names) -> Iterator[Check]:
    for name in with_parents(domain.name):
        records = _records(dns, f"_dmarc.{name}", "dmarc1")
        if records:
            yield _policy(domain, name, records)
            return
    remedy = f'Publish a TXT record at _dmarc.{domain.name}: "v=DMARC1; p=none". Once all is well, p=reject.'
    yield Check("DMARC", "warn", "there is none: Gmail and Yahoo ask for it of whoever sends much", remedy)


def _policy(domain: MailDomain, name: str, records: Sequence[str]) -> Check:
    place = f"_dmarc.{name}"
    if len(records) > 1:
        return Check(
            "DMARC", "warn", f"{place} has {len(records)} records, so none counts", "Keep one of them."
        )
    written = (tag.partition("=") for tag in records[0].split(";"))
    tags = {key.strip().lower(): value.strip() for key, _, value in written}
    policy = (tags.get("sp") if name != domain.name else None) or tags.get("p", "")
    if policy.lower() not in POLICIES:
        remedy = "Write v=DMARC1; p=none (or quarantine, or reject)."
        return Check("DMARC", "warn", f"{place} has no policy that is understood: {records[0]}", remedy)
    if tags.get("adkim", "r").lower() == "s" and domain.signed_as not in (None, domain.name):
        message = f"{place} asks for a strict match, and SES signs as {domain.signed_as}, not {domain.name}"
        return Check("DMARC", "warn", message, f"Verify {domain.name} itself in SES, or drop adkim=s.")
    return Check("DMARC", "ok", f"p={policy.lower()} at {place}")


# ── Names ────────────────────────────────────────────────────────────────────────────────────────


def with_parents(name: str) -> list[str]:
    """`a.b.org`, `b.org`: a name and those above it that can belong to somebody."""
    labels = name.split(".")
    return [".".join(labels[n:]) for n in range(len(labels) - 1)]


def _records(dns: Names, name: str, kind: str) -> list[str]:
    """TXT records that begin with `v=spf1` or `v=DMARC1`, and not with `v=spf10`."""
    return [text for text in dns.txt(name) if re.match(rf"\s*v\s*=\s*{kind}(\s|;|$)", text, re.IGNORECASE)]
