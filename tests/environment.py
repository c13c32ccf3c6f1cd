"""The settings that a sender needs before anything can be sent."""

SENDER = {
    "FROM_EMAIL": "news@example.org",
    "ORG_NAME": "The Harbour",
    "ORG_ADDRESS": "1 Quay",
    "UNSUBSCRIBE_BASE_URL": "https://mail.example.org/unsubscribe",
    "UNSUBSCRIBE_SECRET": "a secret of some length",
    "TEST_EMAILS": "editor@example.org",
}
