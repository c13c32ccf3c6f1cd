"""Intake of an article: from slices and an audience to variants, a census, and rows in the outbox."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial

from mailout.base import ids
from mailout.base.error_log import ERROR_TABLE, ErrorRecord
from mailout.base.errors import Abort, AbortCode, UsageError
from mailout.base.settings import Settings
from mailout.kinds.articles import article_rows
from mailout.kinds.articles.order import ArticleOrder
from mailout.kinds.articles.port import ArticleBatch, IntakeStore, Member
from mailout.kinds.articles.variants import Census, Variants, counted, problems
from mailout.letters.audience import list_rows, subscriber_rows
from mailout.letters.audience.list_rows import GENERAL
from mailout.letters.audience.places import AudienceFilter, FilterError, read_filter
from mailout.letters.content.article import attributes_in, document_of
from mailout.letters.content.content_rows import keep_content
from mailout.letters.content.document import Document, Problem
from mailout.letters.content.from_settings import footer_of, from_email_of, require_public_addresses
from mailout.letters.content.layout import render
from mailout.letters.content.model import Content
from mailout.letters.content.port import Kind
from mailout.letters.content.preflight import findings
from mailout.letters.content.slices import Article, Slice, live
from mailout.outbox.delivery.protocol import ARTICLE_RETRIES
from mailout.outbox.queue import segment_names
from mailout.outbox.queue.mailout import Mailout, NewMailout
from mailout.outbox.queue.port import Recipient, mailout_or_none

log = logging.getLogger("mailout.articles")

CHUNK = 20_000
PLACES_COMPARED = 10_000
"""Places of people among which the census looks for those that resemble a slice's scope."""


class ArticleIntake:
    """What `MailoutIntake` is for letters: whatever would stop a batch stops it before the queue."""

    def __init__(self, settings: Settings, store: IntakeStore, *, rehearses: bool) -> None:
        self._settings = settings
        self._store = store
        self._rehearses = rehearses  # what is sent is written to a folder and reaches nobody
        self._bound = partial(segment_names.bound, store)

    def live_slices(self, article_key: str) -> list[Slice]:
        """Those that would be sent now, in the order of the body; there is one at least."""
        slices = article_rows.slices(self._store, article_key)
        found = live(slices, self._store.now())
        if not found:
            why = (
                "is none at all" if not slices else "are only drafts, archived ones, or ones for another time"
            )
            raise UsageError(
                f"No slice of the article {article_key} is published now: there {why}.",
                remedy="Import some: mailout article import FILE.csv",
            )
        return found

    def census(self, article_key: str, audience_filter: Mapping[str, str]) -> Census:
        """Nothing is written."""
        audience, slices = self.read_filter(audience_filter), self.live_slices(article_key)
        return self._census(article_key, audience, slices, keep=lambda document, content: None)

    def read_filter(self, written: Mapping[str, str]) -> AudienceFilter:
        audience = read_filter(written, partial(segment_names.anybody_has, self._store), self._bound)
        if (of := list_rows.named_list(self._store, audience.list_key)) is not None:
            audience = replace(audience, list_key=of.key)
        if audience.list_key != GENERAL and not subscriber_rows.anybody_on(self._store, audience.list_key):
            raise FilterError(
                "list",
                f"Nobody is on the list {audience.list_key}.",
                remedy="Correct its name, or bring people onto it: subscribers import FILE.csv --list NAME",
            )
        return audience

    def id_if_anybody(self, order: ArticleOrder) -> str | None:
        """The id it will have, once the first one is found who would get it; None: there is nobody."""
        slices = self.live_slices(order.article_key)
        self.check_variables(slices)
        variants = Variants(slices)
        for members in self._members(self.read_filter(order.audience_filter)):
            if any(variants.article(key) is not None for key in variants.keys(members).unique()):
                return self.id_of(order, slices)
        return None

    def enqueue(self, order: ArticleOrder) -> Mailout | None:
        """Write it into the queue, or find it: a batch is one mailout, however often it is asked for. None:
        nobody would get it, and nothing was written."""
        known = self.known(order)
        if known is not None:
            return known
        from_email_of(self._settings)
        self._store.normalise_addresses()
        audience = self.read_filter(order.audience_filter)
        slices = self.live_slices(order.article_key)
        id = self.id_of(order, slices)
        found: list[Problem] = []

        def keep(document: Document, content: Content) -> None:
            keep_content(self._store, content)
            found.extend(findings(document, content))

        try:
            require_public_addresses(self._settings, rehearses=self._rehearses)
            census = self._census(order.article_key, audience, slices, keep=keep)
        except Abort as abort:
            self._store.put(ERROR_TABLE, [ErrorRecord(abort.code, abort.message, "content", mailout=id)])
            raise
        if not census.recipients:
            return None
        batch = ArticleBatch(
            article_key=order.article_key,
            audience_filter=audience.written,
            as_of=self._store.now(),
            slices=slices,
            contents={one.key: one.content_hash for one in census.variants},
            census=census.to_dict(),
        )
        mailout = self._store.enqueue_article(self._new(id, order, audience, census), batch)
        self._store.put(ERROR_TABLE, list(problems(census, found, id)))
        return mailout

    def known(self, order: ArticleOrder) -> Mailout | None:
        """The batch as it was asked for before. Another article under its id is refused."""
        mailout = mailout_or_none(self._store, self.id_of(order))
        if mailout is None:
            return None
        batch = article_rows.article_batch(self._store, mailout.id)
        if (batch.article_key, batch.audience_filter) != (order.article_key, order.audience_filter):
            raise BatchUsed.for_other(batch.article_key, batch.audience_filter)
        return mailout

    def id_of(self, order: ArticleOrder, slices: Sequence[Slice] | None = None) -> str:
        """A rehearsal's is of its content, too: of these slices, or of those that are live."""
        if not self._rehearses:
            return ids.article_id(order.campaign_tag, order.send_batch_id)
        slices = slices or self.live_slices(order.article_key)
        content = json.dumps([[asdict(one) for one in slices], dict(order.audience_filter)], sort_keys=True)
        return ids.article_id(order.campaign_tag, order.send_batch_id, ids.uuid_of(content))

    def freeze(self, mailout: Mailout) -> None:
        """The audience by parts into the outbox, each with its variant. A crash goes on where it was."""
        freezing = self._store.begin_freezing(mailout.id)
        if freezing is None:
            return
        batch = article_rows.article_batch(self._store, mailout.id)
        audience = read_filter(batch.audience_filter, lambda attribute: True, self._bound)
        audience = replace(audience, list_key=mailout.list_key or GENERAL)
        variants = Variants(batch.slices)
        contents: dict[str, str | None] = dict(batch.contents)
        self._store.normalise_addresses()
        for members in self._members(audience, after=freezing.up_to, existed_at=freezing.began):
            keys = variants.keys(members).to_list()
            for key in set(keys) - contents.keys():  # of whoever came after the census
                article = variants.article(key)
                contents[key] = keep_content(self._store, self.render(article)[1]) if article else None
            recipients = [
                Recipient(member.email, member.from_name, content_hash)
                for member, key in zip(members, keys, strict=True)
                if (content_hash := contents[key]) is not None
            ]
            self._store.freeze_recipients(mailout.id, recipients, members[-1].email)
            log.info("%d recipients are in the outbox", self._store.mailout(mailout.id).ledger.recipients)
        self._store.freeze_recipients(mailout.id, [], None)

    def check_variables(self, slices: Sequence[Slice]) -> None:
        """Readers of one variant share one content, so no slice can ask for what differs between them."""
        for one in slices:
            if names := attributes_in(one):
                asked = " and ".join(f"{{{{ {name} }}}}" for name in names)
                raise Abort(
                    AbortCode.VARIABLE_MISSING,
                    f"The slice in section {one.section_order} for {one.scope_ocd_id or 'everybody'} asks for"
                    f" {asked}: articles cannot fill in subscribers' attributes, also not with a fallback.",
                    remedy="Write that slice without them and import it again. Braces that readers should see"
                    " are written \\{{ so }}.",
                )

    def render(self, article: Article) -> tuple[Document, Content]:
        """Its layout and footer around it."""
        document = document_of(article)
        if document.media:
            raise Abort(
                AbortCode.MEDIA_UNAVAILABLE,
                f"a slice shows {document.media[0].source}, and slices have no folder to look in.",
                remedy="Give the picture's https:// address.",
            )
        return document, render(document, footer_of(self._settings))

    def _members(
        self,
        audience: AudienceFilter,
        *,
        after: str = "",
        existed_at: float | None = None,
        snoozed: bool = False,
    ) -> Iterator[Sequence[Member]]:
        while page := self._store.members(
            after=after,
            limit=CHUNK,
            list_key=audience.list_key,
            segment=audience.segment,
            existed_at=existed_at,
            snoozed=snoozed,
        ):
            after = page[-1].email
            yield page

    def _census(
        self,
        article_key: str,
        audience: AudienceFilter,
        slices: Sequence[Slice],
        *,
        keep: Callable[[Document, Content], object],
    ) -> Census:
        self.check_variables(slices)
        variants = Variants(slices)
        people: Counter[str] = Counter()
        places: set[str] = set()
        for members in self._members(audience):
            people.update(dict(variants.keys(members).value_counts(name="n").iter_rows()))
            if len(places) < PLACES_COMPARED:
                places.update(place for one in members for place in one.ocd_ids)
        no_slices = 0
        found = []
        for key, n in people.most_common():
            article = variants.article(key)
            if article is None:
                no_slices += n
                continue
            document, content = self.render(article)
            keep(document, content)
            found.append(counted(key, n, article, content))
        return Census(
            article_key,
            audience.written,
            sorted(found, key=lambda one: (-one.recipients, one.key)),
            no_slices,
            variants.nearest(places) if no_slices else {},
            sum(len(members) for members in self._members(audience, snoozed=True)),
        )

    def _new(self, id: str, order: ArticleOrder, audience: AudienceFilter, census: Census) -> NewMailout:
        delay = self._settings.send_delay  # time to take it back
        of = list_rows.list_or_none(self._store, audience.list_key)
        return NewMailout(
            id=id,
            kind=Kind.ARTICLE,
            ref=order.article_key,
            subject=census.variants[0].title,
            list_key=audience.list_key,
            from_name=of.from_name if of else None,
            reply_to=of.reply_to if of else None,
            public=False,  # every place has another text
            is_rehearsal=self._rehearses,
            scheduled_at=self._store.now() + delay if delay else None,
            campaign_tag=order.campaign_tag,
            send_batch_id=order.send_batch_id,
            actor=order.actor,
            retry_plan=ARTICLE_RETRIES,
        )


class BatchUsed(UsageError):
    """A batch id stands for one article and one audience."""

    @classmethod
    def for_other(cls, article_key: str, audience: Mapping[str, str]) -> BatchUsed:
        shown = ", ".join(f"{key}={value}" for key, value in audience.items()) or "(none)"
        return cls(
            f"This batch was asked for with the article {article_key} and the filter {shown}.",
            remedy="Ask for exactly the same, or give another send_batch_id.",
        )
