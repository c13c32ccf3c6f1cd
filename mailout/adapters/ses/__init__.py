"""Amazon SES: one mail a call or up to fifty (`SES_MODE`), the same mail either way."""

from mailout.adapters.ses.transport import SesConfig, SesMode, SesTransport, scope_of

__all__ = ["SesConfig", "SesMode", "SesTransport", "scope_of"]
