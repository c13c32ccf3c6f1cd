"""From an ask to rows in the outbox: mailouts, articles, single mails, notifications."""
