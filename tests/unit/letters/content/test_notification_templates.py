"""A notification looks like the letters, in its reader's language; nothing a producer wrote breaks it."""

from __future__ import annotations

from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from mailout.letters.content.notification_templates import NotificationTemplates, TemplateProblem

VARIABLES = {
    "courseTitle": "Intro <b>& more</b>",
    "courseString": "01:198:111",
    "sectionIndex": "12345",
    "sectionNumber": "01",
    "meetingSummary": "M 09:00–10:00",
    "manageUrl": "https://app.example.org/subscriptions/1",
    "unsubscribeUrl": "https://app.example.org/unsubscribe?token=t",
}


@pytest.fixture
def templates(tmp_path: Path) -> NotificationTemplates:
    return NotificationTemplates(tmp_path, ZoneInfo("America/New_York"), "Course Watch")


@pytest.mark.parametrize(
    ("locale", "word"), [("en-US", "Unsubscribe"), ("es-US", "Cancelar la suscripción"), ("zh-CN", "退订")]
)
def test_each_locale_has_every_part(templates: NotificationTemplates, locale: str, word: str) -> None:
    seen = {**VARIABLES, "eventDetectedAt": "2026-11-15T12:00:00Z", "campus": "NB", "notes": "Bring a pen."}
    content = templates.render("open-seat", "v1", [locale], seen)
    assert f'<html lang="{locale}"' in content.html
    assert "max-width: 600px" in content.html
    assert "Course Watch" in content.html
    for part in (content.html, content.text):
        assert word in part
        assert "07:00 EST" in part
        assert "Bring a pen." in part
    assert sorted(content.html_segments.names) == ["manage_url", "unsubscribe_url"]
    assert sorted(content.text_segments.names) == ["manage_url", "unsubscribe_url"]
    assert "Intro &lt;b&gt;&amp; more&lt;/b&gt;" in content.html
    assert "Intro <b>& more</b>" in content.text
    assert "Intro <b>& more</b>" in content.subject


def test_the_same_news_is_one_content_for_all_who_get_it(templates: NotificationTemplates) -> None:
    other = {**VARIABLES, "manageUrl": "https://app.example.org/subscriptions/2"}
    assert templates.render("open-seat", "v1", ["en-US"], VARIABLES) is templates.render(
        "open-seat", "v1", ["en-US"], other
    )


def test_without_a_token_there_is_no_link_to_leave_by(templates: NotificationTemplates) -> None:
    known = {name: value for name, value in VARIABLES.items() if name != "unsubscribeUrl"}
    content = templates.render("open-seat", "v1", ["en-US"], known)
    assert "Unsubscribe" not in content.html + content.text


def test_a_person_can_add_a_version(templates: NotificationTemplates, tmp_path: Path) -> None:
    with pytest.raises(TemplateProblem, match="open-seat v2 has no locale en-US"):
        templates.render("open-seat", "v2", ["en-US"], VARIABLES)
    folder = tmp_path / "open-seat" / "v2" / "en-US"
    folder.mkdir(parents=True)
    for name in ("subject.txt.j2", "body.html.j2", "footer.html.j2", "body.txt.j2"):
        (folder / name).write_text("Seats in {{ courseString }}", encoding="utf-8")
    assert templates.render("open-seat", "v2", ["en-US"], VARIABLES).subject == "Seats in 01:198:111"


@pytest.mark.parametrize(
    "written",
    [
        "{{ courseString.__class__.__mro__[1].__subclasses__() }}",
        "{{ ''.format.__globals__ }}",
        "{{ '{0.__class__}'.format(courseString) }}",
    ],
)
def test_a_template_shows_its_variables_and_runs_nothing_else(
    templates: NotificationTemplates, tmp_path: Path, written: str
) -> None:
    """Whoever may write a template would otherwise read every secret of the process."""
    folder = tmp_path / "open-seat" / "v2" / "en-US"
    folder.mkdir(parents=True)
    for name in ("subject.txt.j2", "body.html.j2", "footer.html.j2", "body.txt.j2"):
        (folder / name).write_text(written, encoding="utf-8")
    with pytest.raises(TemplateProblem, match="unsafe"):
        templates.render("open-seat", "v2", ["en-US"], VARIABLES)


def test_a_locale_cannot_lead_out_of_the_folder(templates: NotificationTemplates) -> None:
    with pytest.raises(TemplateProblem, match="no locale"):
        templates.render("open-seat", "v1", ["../../../layout"], VARIABLES)
