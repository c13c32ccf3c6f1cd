"""Who gets the tests."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from mailout.audience.addresses import parse_address_list
from mailout.errors import Abort, AbortCode
from mailout.queue.port import Recipient
from mailout.redact import redact
from mailout.settings import Settings

log = logging.getLogger("mailout.intake")


class EmailsForTests:
    """The recipients in TEST_EMAILS; what is no address there is logged once."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._logged: set[str] = set()

    def recipients(self) -> Sequence[Recipient]:
        parsed = parse_address_list(self._settings.test_emails)
        for written, reason in parsed.rejected:
            if written not in self._logged:
                self._logged.add(written)
                log.warning("TEST_EMAILS: %s is left out (%s)", redact(written), reason)
        if not parsed.addresses:
            raise Abort(
                AbortCode.TEST_EMAILS_EMPTY,
                "A test run goes to TEST_EMAILS, and there is no valid address in it.",
                remedy="Set TEST_EMAILS to one or more addresses, separated by commas.",
            )
        return [Recipient(address) for address in parsed.addresses]
