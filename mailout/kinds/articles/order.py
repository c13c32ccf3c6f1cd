"""An order for an article: who asks for what, to whom."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from uuid import UUID

from mailout.base.errors import UsageError

KEY = re.compile(r"[a-z0-9-]+")
DEFAULT_ACTOR = "admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArticleOrder:
    """Who asks for which article to be sent to whom. The tag and the batch id together name one mailout."""

    campaign_tag: str
    article_key: str
    send_batch_id: str
    audience_filter: Mapping[str, str] = field(default_factory=dict)
    actor: str = DEFAULT_ACTOR

    @classmethod
    def checked(
        cls,
        campaign_tag: str,
        article_key: str,
        send_batch_id: str,
        audience_filter: Mapping[str, str] | None = None,
        actor: str | None = None,
    ) -> ArticleOrder:
        """UsageError names the first field that is wrong."""
        for name, value in (("campaign_tag", campaign_tag), ("article_key", article_key)):
            if not KEY.fullmatch(value):
                raise UsageError(
                    f"{name} {value!r} is not a key.", remedy="Use lowercase letters, digits and hyphens."
                )
        try:
            batch = str(UUID(send_batch_id))
        except ValueError:
            raise UsageError(
                f"send_batch_id {send_batch_id!r} is no UUID.", remedy="Make one with: uuidgen"
            ) from None
        return cls(
            campaign_tag=campaign_tag,
            article_key=article_key,
            send_batch_id=batch,
            audience_filter={key: value.strip() for key, value in sorted((audience_filter or {}).items())},
            actor=actor or DEFAULT_ACTOR,
        )

    def to_ref(self) -> str:
        """As a request keeps it. Whoever asks again for the same is the same request."""
        return json.dumps(asdict(self), sort_keys=True, ensure_ascii=False)

    @classmethod
    def from_ref(cls, ref: str) -> ArticleOrder:
        return cls(**json.loads(ref))
