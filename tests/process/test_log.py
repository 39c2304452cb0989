"""Log lines: a word, then pairs, and no value that does more than stand there."""

import ast
import io
import json
import logging
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from process.log import LineLog, forward_libraries

ROOT = Path(__file__).parents[2]


def logged(
    word: str,
    form: Literal["line", "json"] = "line",
    secrets: tuple[str, ...] = (),
    **pairs: object,
) -> str:
    """What one call writes."""
    stream = io.StringIO()
    LineLog(stream, form=form, secrets=secrets)(word, **pairs)
    return stream.getvalue()


class FullDisk(io.StringIO):
    """Takes nothing."""

    def write(self, _text: str, /) -> int:
        raise OSError(28, "No space left on device")


def test_a_line_that_cannot_be_written_stops_nothing() -> None:
    """A run is not given up for its log."""
    LineLog(FullDisk())("RUN-COMPLETED", run="a-run")


@pytest.mark.parametrize("form", ["line", "json"])
def test_lines_that_wait_are_written_together(form: Literal["line", "json"]) -> None:
    """In their order, by ``flush`` or before the next line that does not wait."""
    writes: list[str] = []

    class Told(io.StringIO):
        def write(self, text: str, /) -> int:
            writes.append(text)
            return len(text)

    log = LineLog(Told(), form=form)
    log.soon("ONE")
    log.soon("TWO")
    assert writes == []
    log("THREE")
    log.soon("FOUR")
    log.flush()
    log.flush()
    told = [re.findall("[A-Z]{3,}", text) for text in writes]
    assert told == [["ONE", "TWO", "THREE"], ["FOUR"]]


def test_a_line_starts_with_its_word() -> None:
    """Then the pairs, in the order in which they were given."""
    at = datetime(2026, 9, 16, 1, 0, tzinfo=UTC)
    line = logged(
        "RUN-FAILED",
        stage="before-write",
        run="daily-issue-triage:R1:2026-09-16:p3f2a91c0",
        until=at,
        effects=3,
        usd=0.31,
        ok=False,
        nothing=None,
        reason="GitHub said: no",
    )
    assert line == (
        "RUN-FAILED stage=before-write run=daily-issue-triage:R1:2026-09-16:p3f2a91c0 "
        "until=2026-09-16T01:00:00+00:00 effects=3 usd=0.31 ok=false "
        'reason="GitHub said: no"\n'
    )


def test_json_holds_the_same() -> None:
    """One object a line, with the time."""
    said = json.loads(logged("REVIEW-VERDICT ok", "json", run="x", effects=3))
    assert datetime.fromisoformat(said.pop("at")).tzinfo is not None
    assert said == {"word": "REVIEW-VERDICT ok", "run": "x", "effects": 3}


@pytest.mark.parametrize("form", ["line", "json"])
@pytest.mark.parametrize(
    "value",
    [
        "x\nRUN-COMPLETED run=forged",
        "x\r\nRUN-COMPLETED",
        "\x1b[31mred",
        "abc\u202egpj.exe",
        "a\u2066b\u2069c\u200e\u061c",
        "line\u2028separator\u2029",
        "zero\u200bwidth\ufeff",
        "\x00\x07\x7f\x9b",
        "\ud800 alone",
    ],
)
def test_nothing_that_does_not_show_gets_through(value: str, form: Literal["line", "json"]) -> None:
    """A value starts no line, colours nothing and turns no writing direction."""
    text = logged("RUN-REFUSED", form, reason=value)
    assert text.count("\n") == 1
    assert text.isascii() or form == "line"
    assert not re.search(
        r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]", text
    )
    text.encode()


def test_text_of_all_languages_stays_readable() -> None:
    """Only what does not show is escaped."""
    assert logged("RUN-REFUSED", reason="標題 é") == 'RUN-REFUSED reason="標題 é"\n'


@given(st.text(max_size=80), st.text(max_size=80))
def test_a_value_forges_no_pair(first: str, second: str) -> None:
    """Whatever is given, two pairs come out, and the second is what it was."""
    line = logged("RUN-REFUSED", one=first, two=second)
    found = re.fullmatch(r'RUN-REFUSED one=("(?:[^"\\]|\\.)*"|[^" ]+) two=(.*)\n', line)
    assert found is not None
    value = found[2]
    assert (json.loads(value) if value.startswith('"') else value) == second


@given(st.text(max_size=40))
def test_a_word_and_a_name_are_plain(text: str) -> None:
    """Even where a caller is careless."""
    stream = io.StringIO()
    LineLog(stream)(text, **{f"n{text}": 1})
    line = stream.getvalue()
    assert line.count("\n") == 1
    assert re.fullmatch(r"[A-Za-z0-9 |_-]* n\w*=1\n", line, re.ASCII)


def test_a_long_value_is_cut() -> None:
    """A line stays a line."""
    assert len(logged("RUN-REFUSED", reason="x" * 100_000)) < 1000


@pytest.mark.parametrize("form", ["line", "json"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("reason", "the key is hunter2hunter2"),
        ("reason", "x" * 495 + "hunter2hunter2"),
        ("reason", "with ghp_" + "a1" * 18),
        ("reason", "with ghs_" + "a1" * 18),
        ("reason", "with github_pat_" + "a1" * 30),
        ("reason", "sk-ant-api03-" + "a1" * 20),
        ("reason", "Bearer eyJhbGciOiJS.eyJpYXQiOjE3.c2lnbmF0dXJl"),
        ("reason", "-----BEGIN RSA PRIVATE KEY-----\na1a1a1\n-----END RSA PRIVATE KEY-----"),
        ("reason", "redis://user:a1a1a1@host:6379/0"),
        ("token", "a1a1a1"),
        ("client_secret", "a1a1a1"),
        ("authorization", "token a1a1a1"),
        ("value", SecretStr("a1a1a1")),
    ],
)
def test_no_secret_is_shown(name: str, value: object, form: Literal["line", "json"]) -> None:
    """By its value, by its shape, and by its name; before it is cut."""
    text = logged("RUN-REFUSED", form, ("hunter2hunter2",), **{name: value})
    assert "***" in text
    assert not re.search(r"hunter2|a1a1|eyJpYX", text)


def test_what_libraries_log_becomes_a_line(caplog: pytest.LogCaptureFixture) -> None:
    """With the error's type and place, and no traceback over many lines."""
    stream = io.StringIO()
    before = logging.getLogger().handlers[:]
    try:
        forward_libraries(LineLog(stream), "info")
        logging.getLogger("httpx").info("every request")
        logging.getLogger("rq").warning("trouble\nahead")
        try:
            raise ValueError("hidden?")
        except ValueError:
            logging.getLogger("rq").exception("failed")
    finally:
        logging.getLogger().handlers[:] = before
    lines = stream.getvalue().splitlines()
    assert lines[0] == 'LOG severity=warning logger=rq message="trouble\\nahead"'
    assert lines[1].startswith(
        "LOG severity=error logger=rq message=failed error=ValueError at_code="
    )
    assert len(lines) == 2


# --- Every word is documented ----------------------------------------------------------------

_WORD = re.compile(r"([A-Z]+(?:-[A-Z]+)*)(?: [a-z|-]+)?")
_ALERT = re.compile(r"(?:RUN|REVIEW|RESUME|SESSION|STATE|TICK|CLOCK|AGENT|COMMAND)-[A-Z-]+")


def words_in(source: Path) -> Iterator[str]:
    """The words that a module logs: the first argument of a log, or a constant that looks like
    one of the alert words."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and node.args and _is_log(node.func):
            first = node.args[0]
            found = _WORD.fullmatch(first.value) if _is_text(first) else None  # type: ignore[attr-defined]
            if found:
                yield found[1]
        elif _is_text(node) and _ALERT.fullmatch(node.value):  # type: ignore[attr-defined]
            yield node.value  # type: ignore[attr-defined]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_log(function: ast.expr) -> bool:
    while isinstance(function, ast.Attribute):
        if function.attr.strip("_") in ("log", "line"):
            return True
        function = function.value
    return isinstance(function, ast.Name) and function.id.strip("_") in ("log", "line")


def used() -> set[str]:
    """All words that the program may write."""
    packages = ("bot", "cli", "ledger", "process", "worker")
    sources = [source for name in packages for source in (ROOT / name).rglob("*.py")]
    return {word for source in sources for word in words_in(source)}


def documented() -> list[str]:
    """The words that docs/logs.md explains, one a line."""
    lines = (ROOT / "docs" / "logs.md").read_text(encoding="utf-8").splitlines()
    return re.findall(r"^\| `([A-Z-]+)` \|", "\n".join(lines), re.MULTILINE)


def test_every_word_is_documented() -> None:
    """What it means, and what to do."""
    assert used() >= {"RUN-COMPLETED", "RUN-FAILED", "INCIDENT", "STATE-NOT-SAVED", "LOG"}
    assert used() <= set(documented())


def test_each_word_is_explained_once() -> None:
    """In one line of three parts."""
    words = documented()
    assert len(words) == len(set(words))
