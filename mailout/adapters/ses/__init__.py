"""Amazon SES: one mail a call (`SES_MODE=single`) or up to fifty (`bulk`), the same mail either way."""

from mailout.adapters.ses.transport import SesConfig, SesMode, SesTransport, scope_of

__all__ = ["SesConfig", "SesMode", "SesTransport", "scope_of"]
