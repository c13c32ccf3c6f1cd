"""Settings: a wrong one is named with its remedy before anything is sent, and no secret is ever told."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from mailout.base.errors import SettingsError
from mailout.base.setting_values import DAY_MINUTES, WEEKDAYS, SendWindow, parse_days
from mailout.base.settings import Settings, load_settings

EXAMPLE = Path(__file__).parents[3] / ".env.example"
NAMES = {name.upper() for name in Settings.model_fields}


def problems(**env: str) -> list[str]:
    with pytest.raises(SettingsError) as raised:
        load_settings(env)
    return str(raised.value).splitlines()


def test_without_any_setting_everything_stays_on_this_machine() -> None:
    settings = load_settings({})
    assert settings == Settings()
    assert (settings.mailout_transport, settings.supabase_url) == ("folder", None)
    assert (settings.send_rate_per_sec, settings.batch_size, settings.log_redact) == (5, 50, True)


def test_texts_become_what_they_mean() -> None:
    settings = load_settings(
        {
            "RETRY_DELAYS": "1, 2.5,3,4",
            "SEND_WINDOW": "22:00-06:30",
            "SEND_DAYS": "Mon,wed-fri",
            "WARMUP": "50,100",
            "SNS_TOPIC_ARNS": "arn:aws:sns:eu-west-1:123456789012:a,arn:aws-cn:sns:cn-north-1:123456789012:b",
            "UNSUBSCRIBE_SECRETS_OLD": "one,two",
            "LOG_REDACT": "false",
            "LIMIT_PER_DAY": "10",
            "FROM_EMAIL": "Ana@bücher.example",
            "AWS_DEFAULT_REGION": "eu-west-1",
        }
    )
    assert settings.retry_delays == (1.0, 2.5, 3.0, 4.0)
    assert settings.send_window == SendWindow(22 * 60, 6 * 60 + 30)
    assert settings.send_days == {0, 2, 3, 4}
    assert settings.warmup == (50, 100)
    assert len(settings.sns_topic_arns) == 2
    assert [secret.get_secret_value() for secret in settings.unsubscribe_secrets_old] == ["one", "two"]
    assert settings.log_redact is False
    assert settings.limit_per_day == 10
    assert settings.from_email == "ana@xn--bcher-kva.example"
    assert settings.region == "eu-west-1"


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("SEND_RATE_PER_SEC", "five", "must be a number, not 'five'. Set it like SEND_RATE_PER_SEC=5"),
        ("SEND_RATE_PER_SEC", "-1", "must be 0 or more"),
        ("SEND_RATE_PER_SEC", "nan", "must be a number"),
        ("BATCH_SIZE", "0", "must be 1 or more"),
        ("BATCH_SIZE", "1001", "must be 1000 or less"),
        ("BATCH_SIZE", "5.5", "must be a whole number"),
        ("LOCK_SECONDS", "0", "must be more than 0"),
        ("MAILOUT_TRANSPORT", "smtp", "must be 'folder' or 'ses', not 'smtp'"),
        ("SES_MODE", "fast", "must be 'auto', 'single' or 'bulk'"),
        ("SEND_CONCURRENCY", "0", "must be auto or a number from 1 to 256"),
        ("SEND_CONCURRENCY", "many", "must be auto or a number from 1 to 256"),
        ("SEND_CONCURRENCY", "257", "must be auto or a number from 1 to 256"),
        ("BOUNCE_POLICY", "none", "must be 'smart', 'any' or 'permanent'"),
        ("LOG_FORMAT", "xml", "must be 'text' or 'json'"),
        ("LOG_REDACT", "perhaps", "must be true or false"),
        ("FROM_EMAIL", "ana", "must be an e-mail address, not"),
        ("SEND_TIMEZONE", "Mars/Base", "must be a time zone's name"),
        ("SEND_TIMEZONE", "../etc", "must be a time zone's name"),
        ("SEND_WINDOW", "9-18", "must be two times, HH:MM-HH:MM"),
        ("SEND_WINDOW", "09:00-25:00", "00:00 to 24:00"),
        ("SEND_WINDOW", "09:75-10:00", "00:00 to 24:00"),
        ("SEND_WINDOW", "09:00-09:00", "at different times"),
        ("SEND_DAYS", "mon-fry", "must be days or ranges of mon"),
        ("SEND_DAYS", ",", "must name a day"),
        ("RETRY_DELAYS", "1,x,3,4", "must be seconds"),
        ("RETRY_DELAYS", "1,-5,3,4", "none below 0"),
        ("RETRY_DELAYS", "1,5", "has 2 delays for 5 attempts. Give at least 4"),
        ("WARMUP", "50,0", "whole numbers above 0"),
        ("MAX_BOUNCE_RATE", "5", "must be 1 or less"),
        ("UNSUBSCRIBE_BASE_URL", "mail.example.org/unsubscribe", "must be a URL that starts with http"),
        ("UNSUBSCRIBE_BASE_URL", "https://", "must be a URL"),
        ("UNSUBSCRIBE_BASE_URL", "https://mail.example.org/u?x=1", "without ? and #"),
        ("SNS_TOPIC_ARNS", "arn:aws:sqs:eu-west-1:123456789012:q", "must be ARNs of SNS topics"),
        ("NOTIFY_LOCALE", "english", "must be a language"),
        ("SES_CONFIGURATION_SET", "a b", "must be a name of letters"),
    ],
)
def test_a_wrong_value_is_named_with_its_remedy(name: str, value: str, told: str) -> None:
    [line] = problems(**{name: value})
    assert line.startswith(f"{name}: ")
    assert told in line


def test_all_problems_are_told_at_once() -> None:
    """Nobody should have to start five times to learn of five mistakes."""
    lines = problems(BATCH_SIZE="0", SEND_DAYS="never", FROM_EMAIL="ana")
    assert [line.partition(":")[0] for line in lines] == ["FROM_EMAIL", "BATCH_SIZE", "SEND_DAYS"]


@pytest.mark.parametrize(
    ("env", "missing"),
    [
        ({"SUPABASE_URL": "https://abcdefgh.supabase.co"}, "SUPABASE_SERVICE_ROLE_KEY"),
        ({"SUPABASE_SERVICE_ROLE_KEY": "sb_secret_hush"}, "SUPABASE_URL"),
        ({"MAILOUT_TRANSPORT": "ses"}, "FROM_EMAIL"),
    ],
)
def test_half_a_pair_is_an_error(env: dict[str, str], missing: str) -> None:
    [line] = problems(**env)
    assert line.startswith(f"{missing}: is missing.")
    assert "hush" not in line


@pytest.mark.parametrize("who", ["SIGN_IN_ADMINS", "SIGN_IN_EDITORS"])
def test_a_secret_that_signs_people_in_is_long(who: str) -> None:
    """Every reader has a link to test guesses against, at home and as fast as their machine is."""
    env = {"UNSUBSCRIBE_SECRET": "harbour1", "PUBLIC_URL": "https://x.example", "FROM_EMAIL": "a@example.org"}
    assert load_settings(env).unsubscribe_keys == ("harbour1",), "it only unsubscribes"
    [line] = problems(**env, **{who: "ana@example.org"})
    assert line.startswith("UNSUBSCRIBE_SECRET: must have at least 24 characters; make one with `openssl")
    assert who in line
    assert "UNSUBSCRIBE_SECRETS_OLD" in line, "links in letters have to go on working"
    changed = {"UNSUBSCRIBE_SECRET": "h" * 24, "UNSUBSCRIBE_SECRETS_OLD": "harbour1"}
    assert load_settings(env | changed | {who: "ana@example.org"}).has_dashboard


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("https://Mail.Example.ORG/News", "https://mail.example.org/News"),
        ("HTTPS://mail.example.org:443", "https://mail.example.org"),
        ("http://mail.example.org:80/", "http://mail.example.org/"),
        ("https://mail.example.org:8443", "https://mail.example.org:8443"),
        ("http://mail.example.org:443", "http://mail.example.org:443"),
        ("https://Bücher.example:443/a", "https://xn--bcher-kva.example/a"),
        ("http://[::1]:8080", "http://[::1]:8080"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
    ],
)
def test_the_public_address_is_kept_as_browsers_write_it(written: str, kept: str) -> None:
    """A request's Host is compared with it: written otherwise, nobody could sign in."""
    assert load_settings({"PUBLIC_URL": written}).public_url == kept


SECRETS = (
    "ADMIN_PASSWORD",
    "API_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "NOTION_AUTOMATION_SECRET",
    "NOTION_TOKEN",
    "NOTION_WEBHOOK_TOKEN",
    "SUPABASE_SERVICE_ROLE_KEY",
    "UNSUBSCRIBE_SECRET",
    "UNSUBSCRIBE_SECRETS_OLD",
)


def test_secrets_are_never_told_neither_in_errors_nor_in_prints() -> None:
    lines = problems(
        SUPABASE_SERVICE_ROLE_KEY="sb_publishable_hush",
        PUBLIC_URL="ftp://user:hush@example.org",
        API_TOKEN="hush",
        UNSUBSCRIBE_SECRET="hush",
    )
    names = ["SUPABASE_SERVICE_ROLE_KEY", "API_TOKEN", "PUBLIC_URL"]
    assert [line.partition(":")[0] for line in lines] == names
    assert "hush" not in "".join(lines)
    secrets = dict.fromkeys(SECRETS, "hush" * 6) | {"SUPABASE_URL": "https://x.example"}
    settings = load_settings(secrets)
    assert "hush" not in repr(settings) + str(settings) + str(settings.model_dump())
    assert isinstance(settings.notion_token, SecretStr)


def test_the_environment_goes_before_the_file_and_empty_is_unset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    Path(".env").write_text("FROM_NAME=File\nORG_NAME='Harbour ${X}'\nREPLY_TO=\nORG_ADDRESS=Quay\n")
    monkeypatch.setenv("FROM_NAME", "Environment")
    monkeypatch.setenv("ORG_ADDRESS", " ")
    settings = load_settings()
    assert (settings.from_name, settings.org_name) == ("Environment", "Harbour ${X}")
    assert (settings.reply_to, settings.org_address) == (None, "Quay")


def test_given_an_environment_nothing_hidden_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make demo` on a machine that is set up for SES must still send into a folder."""
    monkeypatch.chdir(tmp_path)
    Path(".env").write_text("MAILOUT_TRANSPORT=ses\nFROM_EMAIL=a@example.org\n")
    monkeypatch.setenv("MAILOUT_TRANSPORT", "ses")
    assert load_settings({}).mailout_transport == "folder"
    assert Settings().mailout_transport == "folder"
    assert load_settings({}, tmp_path / ".env").mailout_transport == "ses"


def test_misspelt_names_are_warned_about_where_they_are_likely_ours(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("ORG_NAMES=x\nPOSTGRES_PASSWORD=x\nfrom_name=x\nAWS_ENDPOINT_URL_SES=x\nnot a line\n")
    env = {"MAILOUT_TRANSPRT": "ses", "SEND_RATE_PER_SECOND": "9", "MAILOUT_COLOUR": "x", "ORG_NAMEE": "x"}
    assert load_settings(env, file).warnings == (
        f"{file}, line 5: is not NAME=value and was not read.",
        f"ORG_NAMES in {file} is not a setting. Did you mean ORG_NAME?",
        f"from_name in {file} is not a setting. Did you mean FROM_NAME?",
        "MAILOUT_TRANSPRT in the environment is not a setting. Did you mean MAILOUT_TRANSPORT?",
        "SEND_RATE_PER_SECOND in the environment is not a setting. Did you mean SEND_RATE_PER_SEC?",
        "MAILOUT_COLOUR in the environment is not a setting and has no effect.",
    )


def test_a_file_that_was_named_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="There is no file"):
        load_settings({}, tmp_path / "production.env")
    with pytest.raises(SettingsError, match="cannot be read"):
        load_settings({}, tmp_path)


@given(st.integers(0, DAY_MINUTES - 1), st.integers(0, DAY_MINUTES))
def test_a_window_reads_as_it_is_written_over_midnight_too(start: int, end: int) -> None:
    """Mail at three in the morning costs subscribers."""
    if start == end:
        return
    window = SendWindow(start, end)
    assert SendWindow.parse(str(window)) == window


@given(st.sets(st.integers(0, 6), min_size=1))
def test_days_can_be_listed_in_any_order(days: set[int]) -> None:
    assert parse_days(", ".join(WEEKDAYS[day] for day in sorted(days, reverse=True))) == days


def test_a_range_of_days_may_run_over_the_weekend() -> None:
    assert parse_days("fri-mon") == {4, 5, 6, 0}
    assert parse_days("sun") == {6}


def test_the_example_file_has_every_setting_and_no_other() -> None:
    """It is where people learn what can be set."""
    shown = re.findall(r"^#([A-Z0-9_]+)=", EXAMPLE.read_text(), re.MULTILINE)
    assert sorted(shown) == sorted(NAMES)


def test_the_example_file_shows_defaults_and_valid_examples(tmp_path: Path) -> None:
    """Whoever takes the # from a line gets what the line says."""
    text = re.sub(r"^#([A-Z0-9_]+=)", r"\1", EXAMPLE.read_text(), flags=re.MULTILINE)
    file = tmp_path / "example.env"
    text = text.replace("UNSUBSCRIBE_SECRET=", f"UNSUBSCRIBE_SECRET={'x' * 24}")  # too short as it is
    file.write_text(text.replace("MEDIA_SUPABASE_BUCKET=", "#MEDIA_SUPABASE_BUCKET="))  # one of two buckets
    settings = load_settings({}, file)
    assert settings.warnings == ()
    for name, field in Settings.model_fields.items():
        value = getattr(settings, name)
        if field.default in (None, (), ""):
            assert value or name == "media_supabase_bucket", name
        else:
            assert value == field.default, name


def test_the_example_file_explains_every_group_of_settings() -> None:
    """A setting stands under its explanation, never under an empty line."""
    lines = EXAMPLE.read_text().splitlines()
    for before, line in pairwise(lines):
        if re.match(r"#[A-Z0-9_]+=", line):
            assert before.startswith("#"), line
