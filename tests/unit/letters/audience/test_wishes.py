# ruff: noqa: E501
"""What a file may say about wanting mail is asked; what nobody answered for makes nobody active."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mailout.base.addresses import Dropped
from mailout.base.errors import UsageError
from mailout.letters.audience.columns import value_key
from mailout.letters.audience.people_import import read_people
from mailout.letters.audience.wishes import ANY, SHOWN_VALUES, Answers, ImportQuestion, Meaning, only
from tests.unit.letters.audience.test_exports import people, read

NEGATED = """No newsletter; Consent withdrawn; Newsletter abbestellt; Не подписан; Não aceita marketing; Non inscrit;
Unsubscribed; Opted out; Do not email; Do Not Contact; Email opt-out; No emails; Not subscribed; Never subscribed;
Without consent; Blocked; Bounced; Left on; email1_is_bad; IsExcludedFromCampaigns; Email Suppressions; Is this subscriber confirmed;
HasOptedOutOfEmail; is_active; Active; Suppressed; Complained; Marked as spam; Refused; Declined; GDPR; Keine Werbung;
Abgemeldet am; Einwilligung widerrufen; Gesperrt; Newsletter?; Отписан; Отказ от рассылки; Согласие; Статус; Descadastrado;
Cancelou a assinatura; Dado de baja; Fecha de baja; No desea boletín; Désabonné; Désinscription; N'accepte pas; Refus;
Disiscritto; Consenso; Uitgeschreven; Geen nieuwsbrief; Wypisany; Zgoda; Avregistrerad prenumerant; Odhlášen; Відписаний; 配信停止; 退订"""


@pytest.mark.parametrize("header", [one.strip() for one in NEGATED.replace("\n", " ").split(";")])
@pytest.mark.parametrize("cells", [("x", ""), ("yes", "no"), ("2024-01-02", ""), ("abc", "def")])
def test_a_column_that_smells_of_wishes_is_asked_about_in_any_language(
    tmp_path: Path, header: str, cells: tuple[str, str]
) -> None:
    """Guessing swapped both groups in 40 of 47 such headers."""
    found = read(tmp_path, f'Email,"{header}"\na@example.org,{cells[0]}\nb@example.org,{cells[1]}\n')
    assert [one.column for one in found.plan.open] == [header]
    assert found.plan.people == {}
    with pytest.raises(UsageError, match="--mail-if"):
        next(found.batches())


@pytest.mark.parametrize(
    "cells",
    [
        ("true", "false"),
        ("1", "0"),
        ("x", ""),
        ("да", "нет"),
        ("✓", ""),
        ("2024-01-02", ""),
        ("unsubscribed", "VIP"),
        ("Abgemeldet", "Berlin"),
        ("please unsubscribe me", "likes cats"),
    ],
)
def test_cells_that_may_be_a_yes_or_a_no_are_asked_about_under_any_header(
    tmp_path: Path, cells: tuple[str, str]
) -> None:
    found = read(tmp_path, f"Email,Feld 7\na@example.org,{cells[0]}\nb@example.org,{cells[1]}\n")
    assert [one.column for one in found.plan.open] == ["Feld 7"]


REFUSALS = """gekündigt; gesperrt; Widerspruch; hat widersprochen am 3.4.; Kein Newsletter!; uitgeschreven; Afgemeld; heeft zich uitgeschreven;
geen nieuwsbrief; wypisany; Wypisana; rezygnacja; odhlášen; Odhlášena; neposílat; avregistrerad; avmeldt; Frameldt; afmeldt;
inget nyhetsbrev; avprenumererad; peruttu; відписаний; Відписалася; не надсилати; отказ; заблокирован; не присылать; 退会; 退会済み; 配信停止;
退订; 已退订; 退訂; 取消订阅; 수신거부; 구독 취소; iptal; abonelikten çıktı; résilié; cancelado; cancellato; non inviare; declined; hard bounce;
please take me off"""
YES_AND_NO = [
    ("Sim", "Não"),
    ("Sí", "No"),
    ("Evet", "Hayır"),
    ("так", "ні"),
    ("ano", "ne"),
    ("ja", "nei"),
    ("예", "아니오"),
]


@pytest.mark.parametrize(
    "cells",
    [*((one.strip(), "VIP") for one in REFUSALS.replace("\n", " ").split(";")), *YES_AND_NO],
    ids="-".join,
)
def test_a_refusal_is_asked_about_in_any_language(tmp_path: Path, cells: tuple[str, str]) -> None:
    found = read(tmp_path, f"Email,Groep\na@example.org,{cells[0]}\nb@example.org,{cells[1]}\n")
    assert ([one.column for one in found.plan.open], found.plan.people) == (["Groep"], {})


@pytest.mark.parametrize(
    ("header", "cells"),
    [
        ("Order status", ("paid", "cancelled")),
        ("Payment Status", ("pending", "done")),
        ("HasOptedOutOfFax", ("true", "false")),
        ("Accepts SMS Marketing", ("yes", "no")),
        ("Do not phone", ("1", "")),
        ("Postal opt-out", ("1", "")),
        ("Partner offers opt-in", ("0", "1")),
        ("Lead score", ("0", "1")),
        ("Date of birth", ("1980-01-01", "")),
        ("Unsubscribe", ("https://example.com/u/1", "https://example.com/u/2")),
        ("City", ("Lima", "Oslo")),
        ("Attendee Status", ("Attending", "Not Attending")),
        ("Tags", ("vip", "friend")),
        ("Country", ("US", "")),
    ],
)
def test_a_column_that_does_not_concern_mail_never_stops_an_import(
    tmp_path: Path, header: str, cells: tuple[str, str]
) -> None:
    found = read(tmp_path, f"Email,{header}\na@example.org,{cells[0]}\nb@example.org,{cells[1]}\n")
    assert found.plan.questions == ()
    assert found.plan.people == {"active": 2}
    assert "agree" in found.plan.agreement()


@pytest.mark.parametrize(
    ("header", "cells"),
    [
        ("Unsubscribe source", ("Link in mail", "Complaint")),
        ("opt_out_updated_at", ("2024-01-02", "")),
        ("Visitor status", ("active", "unsubscribed")),
        ("Partner opt-out", ("yes", "no")),
        ("List", ("Unsubscribed", "News")),
        ("Lists", ("news", "do not mail")),
        ("Lists", ("news", "news | Bounced")),
        ("bounce_type", ("Permanent", "")),
    ],
)
def test_what_speaks_of_leaving_is_asked_about_whatever_else_it_speaks_of(
    tmp_path: Path, header: str, cells: tuple[str, str]
) -> None:
    found = read(tmp_path, f"Email,{header}\na@example.org,{cells[0]}\nb@example.org,{cells[1]}\n")
    assert [one.column for one in found.plan.open] == [header]


@pytest.mark.parametrize("header", ["Mail", "Email", "Email 2", "Contact Email", "E-Post"])
@pytest.mark.parametrize("address", ["E-mail address", "Kontakt"])
@pytest.mark.parametrize("cells", [("ja", "nein"), ("x", ""), ("active", "unsubscribed")])
def test_a_yes_or_no_below_a_header_like_an_address_is_asked_about(
    tmp_path: Path, header: str, address: str, cells: tuple[str, str]
) -> None:
    text = f"Name,{header},{address}\nA,{cells[0]},a@example.org\nB,{cells[1]},b@example.org\n"
    found = read(tmp_path, text)
    assert ([one.column for one in found.plan.open], found.plan.people) == ([header], {})
    told = read(tmp_path, text, answers=Answers.from_options(mail_if=[(header, cells[0])]))
    assert people(told) == {"a": "active"}


def test_words_among_second_addresses_are_asked_about_if_they_tell(tmp_path: Path) -> None:
    rows = "A,a@example.org,a2@example.org\nB,b@example.org,{}\nC,c@example.org,c2@example.org\nD,,d@example.org\n"
    text = "Name,Email,Email 2\n" + rows
    assert [one.column for one in read(tmp_path, text.format("unsubscribed")).plan.open] == ["Email 2"]
    assert people(read(tmp_path, text.format("n/a"))) == dict.fromkeys("abcd", "active")


def test_a_stray_address_among_yes_and_no_changes_nothing(tmp_path: Path) -> None:
    text = "Email,Email Address\nYes,a@example.org\nNo,b@example.org\nc@example.org,\nYes,d@example.org\n"
    assert [one.column for one in read(tmp_path, text).plan.open] == ["Email"]
    told = read(tmp_path, text, answers=Answers.from_options(mail_if=[("Email", "Yes")]))
    assert people(told) == {"a": "active", "d": "active"}


def test_no_address_at_all_leaves_everybody_out_with_a_reason(tmp_path: Path) -> None:
    found = read(tmp_path, "Email,City\nnobody,Lima\n")
    assert found.plan.left_out == {Dropped.NO_AT: 1}


@pytest.mark.parametrize("header", ["Name", "First name", "Nachname", "from_name"])
@pytest.mark.parametrize(
    "name",
    [
        "Bo (unsubscribed)",
        "no newsletter please",
        "Bo - abgemeldet",
        "Bo inactive",
        "DELETED Bo",
        "Bo [left]",
        "Bo (baja)",
        "Désabonné",
        "Боб (отписан)",
        "Bo gekündigt",
        "do_not_email",
        "Bo NoNewsletter",
        "山田 配信停止済",
        "Bo Uitgeschreven",
        "Bo (opted-out)",
    ],
)
def test_a_refusal_beside_a_name_is_asked_about_and_the_name_is_kept(
    tmp_path: Path, header: str, name: str
) -> None:
    text = f"Email,{header}\na@example.org,Ana\nb@example.org,{name}\nc@example.org,\n"
    (asked,) = read(tmp_path, text).plan.open
    assert (asked.column, asked.refusals) == (header, (name,))
    options = f"--no-mail-if '{header}={name}' --mail-if '{header}=*' --mail-if '{header}='"
    assert asked.options().startswith(options)
    said = Answers.from_options(mail_if=[(header, "*"), (header, "")], no_mail_if=[(header, name)])
    found = read(tmp_path, text, answers=said)
    assert people(found) == {"a": "active", "b": "unsubscribed", "c": "active"}
    rows = [row for batch in found.batches() for row in batch]
    assert "Ana" in (rows[0].from_name, *rows[0].attributes.values())


@pytest.mark.parametrize("header", ["Name", "First name", "Nachname"])
@pytest.mark.parametrize(
    "name",
    [
        "No",
        "Yes",
        "Ja",
        "Baja",
        "Maria Baja",
        "Left",
        "Active Minds",
        "Bruno Emails",
        "Nooptoutson",
        "Stop",
        "Никита",
        "山田太郎",
        "Do Not",
        "Abonnel",
        "2024-01-02",
        "-",
        "n/a",
        "Cancello",
        "x",
    ],
)
def test_a_name_that_only_looks_like_a_refusal_stops_no_import(
    tmp_path: Path, header: str, name: str
) -> None:
    found = read(tmp_path, f"Email,{header}\na@example.org,Ana\nb@example.org,{name}\nc@example.org,\n")
    assert (found.plan.questions, found.plan.people) == ((), {"active": 3})


def test_a_refusal_among_many_values_is_shown(tmp_path: Path) -> None:
    rows = "".join(f"p{n}@example.org,Person {n}\n" for n in range(40))
    (asked,) = read(tmp_path, f"Email,Name\n{rows}b@example.org,Bo (unsubscribed)\n").plan.open
    assert asked.shown == {"Bo (unsubscribed)": 1, ANY: 40}
    assert asked.described().startswith("Bo (unsubscribed) 1, (anything else) 40 (")
    assert "unsubscribed" not in asked.described().partition("else")[2]


@pytest.mark.parametrize("many", [1, 4, 40])
def test_all_but_the_refusals_is_an_answer_that_forgets_none_of_them(tmp_path: Path, many: int) -> None:
    rows = "".join(
        f"p{n}@example.org,Person {n}\nn{n}@example.org,Nó {n} (unsubscribed)\n" for n in range(many)
    )
    (asked,) = read(tmp_path, f"Email,Name\n{rows}").plan.open
    words, verdicts = asked.choices()[-1]
    assert words.startswith("all but Nó 0 (unsubscribed)")
    found = people(read(tmp_path, f"Email,Name\n{rows}", answers=Answers({"Name": verdicts})))
    assert {name for name, status in found.items() if status == "active"} == {f"p{n}" for n in range(many)}
    assert ("--mail-if 'Name=*'" in asked.options()) is (asked.options().count("--no-mail-if") == many)
    assert ("--mail-if 'Name=*'" in asked.options()) is (many <= SHOWN_VALUES)


def test_a_list_that_is_also_a_wish_is_kept_as_a_list(tmp_path: Path) -> None:
    answers = Answers({"List": {"news": Meaning.ACTIVE, "unsubscribed": Meaning.UNSUBSCRIBED}})
    text = "Email,List\na@example.org,news\nb@example.org,Unsubscribed\n"
    found = read(tmp_path, text, answers=answers)
    rows = {row.email: (row.status, row.lists) for batch in found.batches() for row in batch}
    assert rows == {
        "a@example.org": ("active", ("news",)),
        "b@example.org": ("unsubscribed", ("Unsubscribed",)),
    }


@pytest.mark.parametrize(
    "file",
    ["unsub.csv", "cleaned_2024.csv", "Отписавшиеся.csv", "bajas.csv", "opt-outs.csv", "former members.csv"],
)
def test_a_file_named_after_people_who_left_asks(tmp_path: Path, file: str) -> None:
    found = read(tmp_path, "Email\na@example.org\n", file)
    assert [one.column for one in found.plan.open] == ["file name"]
    told = Answers.from_options(mail_if=[("file name", file)])
    assert read(tmp_path, "Email\na@example.org\n", file, told).plan.people == {"active": 1}


def test_a_folder_named_after_people_who_left_asks(tmp_path: Path) -> None:
    path = tmp_path / "Unsubscribed" / "june.csv"
    path.parent.mkdir()
    path.write_text("Email\na@example.org\n")
    assert [one.column for one in read_people(path).plan.open] == ["folder name"]


# ── Answers ──

TEXT = "Email,No newsletter\na@example.org,\nb@example.org,x\nc@example.org,maybe\n"


def test_only_those_with_a_value_that_was_answered_yes_get_mail(tmp_path: Path) -> None:
    found = read(tmp_path, TEXT, answers=Answers.from_options(mail_if=[("no newsletter", "")]))
    assert people(found) == {"a": "active"}
    said = Answers.from_options(mail_if=[("No newsletter", "")], no_mail_if=[("No newsletter", "X")])
    assert people(read(tmp_path, TEXT, answers=said)) == {"a": "active", "b": "unsubscribed"}
    anything = Answers.from_options(mail_if=[("No newsletter", "*")])
    assert people(read(tmp_path, TEXT, answers=anything)) == {"b": "active", "c": "active"}
    both = Answers.from_options(mail_if=[("No newsletter", "x")], no_mail_if=[("No newsletter", "x")])
    assert people(read(tmp_path, TEXT, answers=both)) == {"b": "unsubscribed"}


def test_a_star_in_a_cell_is_not_everything(tmp_path: Path) -> None:
    text = "Email,Feld\na@example.org,*\nb@example.org,-\n"
    found = read(tmp_path, text, answers=Answers.from_options(mail_if=[("Feld", r"\*")]))
    assert people(found) == {"a": "active"}


def test_a_column_that_says_nothing_about_mail_stays_an_attribute_and_the_general_question_is_asked(
    tmp_path: Path,
) -> None:
    found = read(tmp_path, TEXT, answers=Answers.from_options(ignored=["No newsletter"]))
    rows = [row for batch in found.batches() for row in batch]
    assert [row.attributes for row in rows] == [{}, {"No newsletter": "x"}, {"No newsletter": "maybe"}]
    assert "Did these people agree" in found.plan.agreement()
    told = read(tmp_path, TEXT, answers=Answers.from_options(mail_if=[("No newsletter", "")]))
    assert told.plan.agreement() == ""
    assert "No newsletter" not in str(next(told.batches())[0].attributes)


def test_who_is_left_out_by_one_row_does_not_become_active_by_another(tmp_path: Path) -> None:
    text = "Email,Newsletter\na@example.org,yes\nA@example.org,\nb@example.org,yes\n"
    found = read(tmp_path, text, answers=Answers.from_options(mail_if=[("Newsletter", "yes")]))
    assert people(found) == {"b": "active"}


def test_of_two_columns_the_one_against_mail_counts(tmp_path: Path) -> None:
    text = "Email,Newsletter,Left on\na@example.org,yes,2024-01-01\nb@example.org,yes,\n"
    said = Answers.from_options(
        mail_if=[("Newsletter", "yes"), ("Left on", "")], no_mail_if=[("Left on", "*")]
    )
    assert people(read(tmp_path, text, answers=said)) == {"a": "unsubscribed", "b": "active"}


def test_answers_are_kept_for_the_next_time_and_a_new_value_is_not_a_yes(tmp_path: Path) -> None:
    question = ImportQuestion("No newsletter", {"": 340, "x": 12})
    _, (_, with_x), (words, without_x) = question.choices()
    assert (words, with_x["x"], without_x["x"]) == ("those without x", Meaning.ACTIVE, Meaning.UNSUBSCRIBED)
    kept = tmp_path / "answers.json"
    kept.write_text(json.dumps(Answers().with_column("No newsletter", without_x).as_data()))
    found = read(tmp_path, TEXT, answers=Answers.load(kept))
    assert people(found) == {"a": "active", "b": "unsubscribed"}  # "maybe" was never answered
    for broken in ("{", "[]", '{"columns": 7}', '{"fields": {"a": "b"}}'):
        kept.write_text(broken)
        with pytest.raises(UsageError):
            Answers.load(kept)


def test_an_empty_cell_is_a_no_only_for_who_says_so(tmp_path: Path) -> None:
    """`--no-mail-if 'Newsletter='` says it; "those with x" says of the others only that they never said yes."""
    text = "Email,Newsletter\na@example.org,x\nb@example.org,\n"
    said = Answers.from_options(mail_if=[("Newsletter", "x")], no_mail_if=[("Newsletter", "")])
    with_x = Answers().with_column("Newsletter", only(["x"], ["x", ""]))
    kept = tmp_path / "answers.json"
    for answers, imported in ((said, {"a": "active", "b": "unsubscribed"}), (with_x, {"a": "active"})):
        assert people(read(tmp_path, text, answers=answers)) == imported
        kept.write_text(json.dumps(answers.as_data()))
        assert people(read(tmp_path, text, answers=Answers.load(kept))) == imported


def test_an_answer_about_a_column_that_is_not_there_is_a_typing_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no column Nobody\. It has: Email, No newsletter"):
        read(tmp_path, TEXT, answers=Answers.from_options(mail_if=[("Nobody", "")]))
    with pytest.raises(UsageError, match="no field `mail`"):
        Answers.from_options(fields={"Mail": "mail"})


def test_many_values_are_put_as_empty_or_not() -> None:
    question = ImportQuestion("Unsubscribed at", {"": 3} | {f"2024-01-{n:02}": 1 for n in range(1, 29)})
    assert len(question.values) > SHOWN_VALUES
    assert question.shown == {ANY: 28, "": 3}
    assert [words for words, _ in question.choices()] == [
        "everybody",
        "those with something in it",
        "those without anything in it",
    ]
    assert "--mail-if 'Unsubscribed at=VALUE'" in question.options()


def test_what_was_decided_is_told_in_words(tmp_path: Path) -> None:
    said = Answers.from_options(mail_if=[("No newsletter", "")], no_mail_if=[("No newsletter", "x")])
    plan = read(tmp_path, TEXT, answers=said).plan
    assert plan.decisions()["columns"] == {
        "No newsletter": "(empty) → gets mail (1), maybe → left out (1), x → unsubscribed (1)"
    }
    assert Answers.from_options(mail_if=[("No newsletter", "")]).as_data() == {
        "columns": {"No newsletter": {"mail_if": [""], "no_mail_if": []}}
    }


# ── The law ──

CELLS = st.one_of(
    st.sampled_from(
        ["", " ", "x", "X", "yes", "no", "Yes", "*", "\\*", "0", "1", "2024-01-02", "ß", "SS", "İ"]
    ),
    st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), max_size=6),
)


@given(
    cells=st.lists(CELLS, min_size=1, max_size=8),
    header=st.sampled_from(
        ["Newsletter", "No newsletter", "Статус", "Feld 7", "Left on", "Опт-аут", "unsub"]
    ),
    data=st.data(),
)
@settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_nobody_whose_cell_differs_from_an_answered_yes_becomes_active(
    tmp_path: Path, cells: list[str], header: str, data: st.DataObject
) -> None:
    """Whatever the table and the answer: by options, by values, kept and read again; duplicates too."""
    folder = tmp_path / "files"
    folder.mkdir(exist_ok=True)
    path = folder / "people.csv"
    emails = [data.draw(st.sampled_from([f"p{n}@example.org", "p0@example.org"])) for n in range(len(cells))]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("Email", header), *zip(emails, cells, strict=True)])
    yes = data.draw(st.lists(st.sampled_from([*cells, "never there"]), max_size=3))
    answers = Answers().with_column(header, only(yes, data.draw(st.sampled_from([cells, yes]))))
    kept = folder / "answers.json"
    kept.write_text(json.dumps(answers.as_data()), encoding="utf-8")
    asked = read_people(path)
    for said in (answers, Answers.load(kept)):
        found = read_people(path, said)
        active = {row.email for batch in found.batches() for row in batch if row.status == "active"}
        agreed = {value_key(value) for value in yes}
        said_no = {email for email, cell in zip(emails, cells, strict=True) if value_key(cell) not in agreed}
        assert not active & said_no
    if asked.plan.open:  # and nobody at all before it is answered
        assert "active" not in asked.plan.people
