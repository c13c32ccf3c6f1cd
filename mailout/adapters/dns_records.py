"""The DNS, asked briefly: whoever has none to ask must not wait for it."""

from __future__ import annotations

from collections.abc import Sequence

import dns.exception
import dns.rdatatype
import dns.resolver

from mailout.base.errors import CheckSkipped

DNS_TIMEOUT_SECONDS = 4.0


class DnsRecords:
    def __init__(
        self, server: str | None = None, port: int = 53, *, seconds: float = DNS_TIMEOUT_SECONDS
    ) -> None:
        """`server` None: those that this machine asks. `seconds` is for one question, retries included."""
        self._server = server
        self._port = port
        self._seconds = seconds
        self._silent = False

    def txt(self, name: str) -> Sequence[str]:
        answer = self._ask(name, dns.rdatatype.TXT)
        return [b"".join(one.strings).decode("utf-8", "replace") for one in answer or ()]

    def cname(self, name: str) -> str | None:
        answer = self._ask(name, dns.rdatatype.CNAME)
        return next((one.target.to_text(omit_final_dot=True).lower() for one in answer or ()), None)

    def _ask(self, name: str, kind: dns.rdatatype.RdataType) -> dns.resolver.Answer | None:
        """None: there is no such record. Who did not answer once is not waited for again."""
        if self._silent:
            raise _skipped("it did not answer")
        try:
            resolver = dns.resolver.Resolver(configure=self._server is None)
            if self._server is not None:
                resolver.nameservers, resolver.port = [self._server], self._port
            resolver.timeout, resolver.lifetime = self._seconds / 2, self._seconds
            return resolver.resolve(name, kind, search=False)
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
            return None
        except dns.exception.Timeout:
            self._silent = True
            raise _skipped("it did not answer") from None
        except (dns.exception.DNSException, OSError) as error:
            raise _skipped(str(error).rstrip(".")) from error


def _skipped(why: str) -> CheckSkipped:
    return CheckSkipped(
        f"the DNS could not be asked ({why})", remedy="Run `mailout doctor` where the DNS can be asked."
    )
