"""Log lines, and that no value leaves its place."""

import io
import json
import logging

import pytest

from bot.log import VALUE_LIMIT, LineLog, forward_libraries


@pytest.fixture
def written() -> io.StringIO:
    """Where a log writes."""
    return io.StringIO()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("acme/api", "acme/api"),
        (7, "7"),
        ("", '""'),
        ("two words", '"two words"'),
        ("a=b", '"a=b"'),
        ("x\nRUN-COMPLETED", r'"x\nRUN-COMPLETED"'),
        ("\u202egnp.exe", r'"\u202egnp.exe"'),
        ("\x1b[2J", r'"\u001b[2J"'),
        ('"', r'"\""'),
        ("x" * 1000, "x" * VALUE_LIMIT),
    ],
)
def test_values_are_escaped(written: io.StringIO, value: object, shown: str) -> None:
    """A plain one as it stands, any other as a JSON string in ASCII."""
    LineLog(written)("WORD", key=value, after=1)
    assert written.getvalue() == f"WORD key={shown} after=1\n"


def test_json_lines(written: io.StringIO) -> None:
    """The same pairs; none can hide the word."""
    LineLog(written, form="json")("WORD", key="\u202ex\n", number=7)
    line = written.getvalue()
    assert line.isascii()
    assert line.count("\n") == 1
    said = json.loads(line)
    assert (said["word"], said["key"], said["number"]) == ("WORD", "\u202ex\n", 7)


def test_what_libraries_say(written: io.StringIO) -> None:
    """Warnings and worse, each on one line, without a traceback over many."""
    before = logging.getLogger().handlers[:], logging.getLogger().level
    try:
        forward_libraries(LineLog(written), "info")
        logging.getLogger("library").info("GET /secret")
        logging.getLogger("library").warning("two\nlines")
        try:
            raise ValueError("a reason")
        except ValueError:
            logging.getLogger("library").exception("it failed")
    finally:
        logging.getLogger().handlers[:] = before[0]
        logging.getLogger().setLevel(before[1])
    warning, failure = written.getvalue().splitlines()
    assert warning == r'LOG severity=warning logger=library message="two\nlines"'
    assert failure.startswith('LOG severity=error logger=library message="it failed"')
    assert "error=ValueError at_code=test_what_libraries_say:" in failure
