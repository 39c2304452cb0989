"""What is shown to people: clean text, statuses, moments, and the two streams.

A status is a word, a shape and a colour, so that none of them alone carries it.
"""

import os
import sys
import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from rich.console import Console
from rich.text import Text

from triage.contract import Status

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_JOINERS = "\u200c\u200d"  # they make emoji and Persian words, and hide nothing
_PIPED_COLUMNS = 200
_DEFAULT_COLUMNS = 80
"""Of rich, where it knows no better."""


class Look(NamedTuple):
    """How a status is shown."""

    shape: str
    colour: str


LOOKS: Mapping[Status, Look] = {
    Status.COMPLETED: Look("✓", "green"),
    Status.NO_CHANGE: Look("=", "green"),
    Status.RUNNING: Look("▸", "cyan"),
    Status.QUEUED: Look("·", "cyan"),
    Status.WAITING: Look("◷", "yellow"),
    Status.FAILED_BEFORE_WRITE: Look("✗", "yellow"),
    Status.FAILED_AFTER_WRITE: Look("‼", "red"),
    Status.NEEDS_REVIEW: Look("?", "magenta"),
}

SENTENCES: Mapping[Status, str] = {
    Status.COMPLETED: "Written and read back; all match.",
    Status.NO_CHANGE: "Already as planned; nothing written.",
    Status.RUNNING: "A worker is at it.",
    Status.QUEUED: "Not started yet.",
    Status.WAITING: "The write budget is spent; it goes on by itself when there is room.",
    Status.FAILED_BEFORE_WRITE: "Nothing written. Safe to run again.",
    Status.FAILED_AFTER_WRITE: "Something was sent that GitHub does not confirm yet.",
    Status.NEEDS_REVIEW: "GitHub changed and differs from the plan, or cannot be told: a person "
    "decides.",
}


class _Console(Console):
    """``courtesy``: what cannot be written is left out; else that is an OSError."""

    courtesy = False

    def print(self, *objects: Any, **options: Any) -> None:
        try:
            super().print(*objects, **options)
        except OSError:
            if not self.courtesy:
                raise

    def on_broken_pipe(self) -> None:
        """Whoever read has left (``| head``): the exit code stays the command's."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


def stdout() -> Console:
    """Where answers go."""
    return _console(sys.stdout)


def stderr() -> Console:
    """Where progress and failures go."""
    console = _console(sys.stderr)
    console.courtesy = True
    return console


def _console(stream: Any) -> _Console:
    """Plain where it is piped; a width that was asked for (COLUMNS) holds there too."""
    console = _Console(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=True)
    if console.width < 1 or (not console.is_terminal and console.width == _DEFAULT_COLUMNS):
        console.width = _PIPED_COLUMNS
    return console


def clean(text: str) -> str:
    """One line without anything that does not show or turns the writing direction."""
    spaced = " ".join(text.split())
    return "".join(
        char for char in spaced if char in _JOINERS or unicodedata.category(char) not in _HIDDEN
    )


def clean_lines(text: str) -> str:
    """The same, line by line; the indentation stays."""
    return "\n".join(
        line[: len(line) - len(line.lstrip(" "))] + clean(line) for line in text.split("\n")
    )


def cleaned(value: Any) -> Any:
    """The same for whatever a map or list holds."""
    match value:
        case str():
            return clean_lines(value)
        case dict():
            return {key: cleaned(item) for key, item in value.items()}
        case list() | tuple():
            return [cleaned(item) for item in value]
        case _:
            return value


def shown(status: Status | None) -> Text:
    """Shape and word, in colour."""
    if status is None:
        return Text("refused", "yellow")
    look = LOOKS[status]
    return Text(f"{look.shape} {status}", look.colour)


def at(moment: datetime, timezone: str | None = None) -> str:
    """``2026-09-16 09:20 Asia/Taipei (01:20 UTC)``; the zone of this machine where none is known.

    UTC alone where that is the zone. Seconds only where a minute would say too little.
    """
    form = "%Y-%m-%d %H:%M:%S" if moment.second else "%Y-%m-%d %H:%M"
    utc = moment.astimezone(UTC)
    local = moment.astimezone(ZoneInfo(timezone) if timezone else None)
    name = timezone or local.strftime("%Z")
    if local.utcoffset() == utc.utcoffset():
        return f"{utc:{form}} UTC"
    same_day = local.date() == utc.date()
    return f"{local:{form}} {name} ({utc:{form[9:] if same_day else form}} UTC)"


def hour(moment: datetime, timezone: str) -> str:
    """``09:00 Asia/Taipei``, where the day is not in question."""
    return f"{moment.astimezone(ZoneInfo(timezone)):%H:%M} {timezone}"


def seconds(span: float) -> str:
    """``0.4 s``, ``34.2 s``, ``3 min 5 s``."""
    if span < 100:
        return f"{span:.1f} s"
    return f"{int(span) // 60} min {int(span) % 60} s"
