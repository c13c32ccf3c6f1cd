"""Files that are replaced whole, and one person taken out of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mailout.base.errors import HomeUnwritable
from mailout.insight.reporting.files import replace_address, replacing


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("ann@example.org,sent\r\n", "X,sent\r\n"),
        ("'ann@example.org,failed,no such user: ann@example.org.\n", "'X,failed,no such user: X.\n"),
        ("<td>ann@example.org</td>", "<td>X</td>"),
        (
            "joann@example.org,ann@example.org.uk,j+ann@example.org",
            "joann@example.org,ann@example.org.uk,j+ann@example.org",
        ),
        (
            "j.ann@example.org;ann@example.organic;annX@example-org",
            "j.ann@example.org;ann@example.organic;annX@example-org",
        ),
    ],
)
def test_one_person_is_taken_out_and_his_namesakes_stay(tmp_path: Path, line: str, wanted: str) -> None:
    path = tmp_path / "report.csv"
    path.write_bytes(f"email,status\n{line}".encode())
    replace_address(path, "ann@example.org", "X")
    assert path.read_bytes() == f"email,status\n{wanted}".encode()


def test_a_person_is_found_as_html_writes_him(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("<td>o&#39;brien@example.org</td>")
    assert replace_address(path, "o'brien@example.org", "X")
    assert path.read_text() == "<td>X</td>"
    assert not replace_address(path, "o'brien@example.org", "X")


def test_an_empty_file_has_nobody(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").touch()
    assert not replace_address(tmp_path / "empty.csv", "ann@example.org", "X")


def test_a_file_where_its_folder_should_be_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("not a folder")
    with pytest.raises(HomeUnwritable, match="reports"), replacing(tmp_path / "reports" / "1.csv"):
        pass
