"""Reports as files: whole or not there, for their owner alone, and never outside the folder."""

import asyncio
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.records import Report
from worker.artifacts import FileArtifacts, safe_parts

NAME = "reports/acme/api/daily-issue-triage/2026-09-16.md"


class Lines:
    """A log that keeps its lines."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def __call__(self, word: str, /, **pairs: object) -> None:
        self.words.append(word)


def export(
    folder: Path, path: str = NAME, text: str = "# Report\n", log: Lines | None = None
) -> str:
    """Export one report; gives its path."""
    report = Report(path=path, text=text, dedupe_key="key")
    return asyncio.run(FileArtifacts(folder, log or Lines()).export(report))


def test_a_file_is_read_again(tmp_path: Path) -> None:
    """As it was written; none where there is none, or no text."""
    files = FileArtifacts(tmp_path, Lines())
    assert asyncio.run(files.standing(NAME)) is None
    written = Path(export(tmp_path, text="# Bericht für alle\n"))
    assert asyncio.run(files.standing(NAME)) == "# Bericht für alle\n"
    written.write_bytes(b"\xff")
    assert asyncio.run(files.standing(NAME)) is None


def test_a_report_is_for_its_owner_alone(tmp_path: Path) -> None:
    """Files 0600, every folder on the way 0700, whatever the umask."""
    before = os.umask(0)
    try:
        written = Path(export(tmp_path / "data"))
    finally:
        os.umask(before)
    assert written == tmp_path / "data" / NAME
    assert written.read_text() == "# Report\n"
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    for folder in [path for path in written.parents if path.is_relative_to(tmp_path / "data")]:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_same_window_is_the_same_file(tmp_path: Path) -> None:
    """Replaced in one step; nothing is left beside it."""
    first = export(tmp_path, text="one")
    second = export(tmp_path, text="two 中文 \ud800")
    assert first == second
    assert Path(second).read_text(encoding="utf-8") == "two 中文 ?"
    assert [path.name for path in Path(second).parent.iterdir()] == ["2026-09-16.md"]


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("reports/../../etc/passwd", ["reports", "_", "_", "etc", "passwd"]),
        ("/etc/passwd", ["etc", "passwd"]),
        (
            "reports/acme/.github/job/2026-09-16.md",
            ["reports", "acme", "github", "job", "2026-09-16.md"],
        ),
        ("a\\b/c\0d/e f", ["a_b", "c_d", "e_f"]),
        ("a//b/./c", ["a", "b", "c"]),
        ("", ["report"]),
        ("x" * 300, ["x" * 100]),
    ],
)
def test_no_part_of_a_name_leads_out(path: str, parts: list[str]) -> None:
    """A separator, a parent, a hidden name: plain names remain."""
    assert safe_parts(path) == parts


@given(st.text(max_size=60))
def test_whatever_the_name_the_file_is_within(path: str) -> None:
    """For any text."""
    folder = Path("/data")
    whole = folder.joinpath(*safe_parts(path))
    assert Path(os.path.normpath(whole)) == whole
    assert whole.is_relative_to(folder)
    assert whole != folder


def test_a_link_that_stands_there_is_replaced_not_followed(tmp_path: Path) -> None:
    """What it points to stays as it is."""
    target = tmp_path / "precious"
    target.write_text("mine")
    written = Path(export(tmp_path / "data"))
    written.unlink()
    written.symlink_to(target)
    export(tmp_path / "data")
    assert target.read_text() == "mine"
    assert not written.is_symlink()


def test_a_disk_that_refuses_stops_nothing(tmp_path: Path) -> None:
    """The ledger has the report; the log says that the file is missing."""
    (tmp_path / "reports").write_text("a file where a folder should be")
    log = Lines()
    assert export(tmp_path, log=log) == ""
    assert log.words == ["STATE-NOT-SAVED"]
