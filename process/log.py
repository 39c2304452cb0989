"""Log lines: ``WORD key=value …``, or the same as one JSON object a line.

Invariant: no value can start a line, forge a pair, turn the writing direction, or show a secret.
The words are documented in docs/logs.md, one by one.
"""

import json
import logging
import re
import traceback
import unicodedata
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from threading import Lock
from typing import Final, Literal, Protocol, TextIO

import structlog
from pydantic import SecretStr

VALUE_LIMIT: Final = 500
"""Characters of one value."""

_PLAIN = re.compile(r"[A-Za-z0-9_./:+@%,#*()\[\]-]+")
_UNFIT_IN_NAME = re.compile(r"[^A-Za-z0-9_]")
_UNFIT_IN_WORD = re.compile(r"[^A-Za-z0-9 |_-]")
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_SECRET_NAME = re.compile(
    r"secret|password|passwd|authorization|private_key|api_key|token$", re.IGNORECASE
)
_SECRET_SHAPE = re.compile(
    r"gh[pousr]_[A-Za-z0-9]{16,}"
    r"|github_pat_\w{16,}"
    r"|sk-ant-[\w-]{8,}"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*"
    r"|(?<=://)[^/@\s]*:[^/@\s]+(?=@)",
    re.DOTALL,
)
_REDACTED: Final = "***"
_SHORTEST_SECRET: Final = 8
_OFTEN: Final = 64
"""Characters of values that come again and again: names of events, repositories and people."""


class Log(Protocol):
    """The lines that alerts hang on."""

    def __call__(self, word: str, /, **pairs: object) -> None:
        """``WORD key=value …``"""


class LineLog:
    """A Log. A line is written whatever the level: alerts hang on these words.

    ``secrets`` are never shown, wherever they turn up. Where a line cannot be written (the disk is
    full, who read has left), the work goes on without it.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        form: Literal["line", "json"] = "line",
        secrets: Iterable[str] = (),
    ) -> None:
        known = sorted((s for s in secrets if len(s) >= _SHORTEST_SECRET), key=len, reverse=True)
        any_known = "|".join(re.escape(secret) for secret in known)
        self._secret = re.compile(any_known) if known else None
        self._form = self._as_json if form == "json" else self._as_line
        self._short = lru_cache(maxsize=1024)(self._text)
        self._often = lru_cache(maxsize=1024)(self._pair)
        self._writer = structlog.WriteLogger(stream)  # without a chain, which costs as much again
        self._waiting: deque[str] = deque()
        self._writing = Lock()

    def __call__(self, word: str, /, **pairs: object) -> None:
        """``WORD key=value …``; a pair without a value (None) is left out."""
        self.soon(word, **pairs)
        self.flush()

    def soon(self, word: str, /, **pairs: object) -> None:
        """The same, written with the next line or by ``flush``: one write for many lines."""
        self._waiting.append(self._form(_fit_word(word), pairs))

    def flush(self) -> None:
        """Write what waits."""
        with self._writing, suppress(OSError):
            waiting = len(self._waiting)
            if waiting:
                self._writer.msg("\n".join(self._waiting.popleft() for _ in range(waiting)))

    def _as_line(self, word: str, pairs: Mapping[str, object]) -> str:
        parts = [word]
        for name, value in pairs.items():
            if type(value) is str and len(value) <= _OFTEN:
                parts.append(self._often(name, value))
            elif value is not None:
                parts.append(self._pair(name, value))
        return " ".join(parts)

    def _as_json(self, word: str, pairs: Mapping[str, object]) -> str:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        shown = {
            _named(name): self._shown(name, value)
            for name, value in pairs.items()
            if value is not None
        }
        return json.dumps({**shown, "word": word, "at": at})

    def _pair(self, name: str, value: object) -> str:
        return f"{_named(name)}={_logfmt(self._shown(name, value))}"

    def _shown(self, name: str, value: object) -> object:
        if isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, SecretStr) or _is_secret(name):
            return _REDACTED
        if isinstance(value, str) and len(value) <= _OFTEN:
            return self._short(value)
        return self._text(
            value.isoformat(timespec="seconds") if isinstance(value, datetime) else str(value)
        )

    def _text(self, text: str) -> str:
        # Before the cut: the first half of a secret is one too.
        if self._secret is not None:
            text = self._secret.sub(_REDACTED, text)
        text = _SECRET_SHAPE.sub(_REDACTED, text)
        return text if len(text) <= VALUE_LIMIT else text[:VALUE_LIMIT] + "…"


def forward_libraries(log: LineLog, level: str) -> None:
    """What libraries log becomes lines of ours, from ``level`` (debug, info, warning, error) on.

    Below a warning they tell every request, so only ``debug`` shows that.
    """
    least = logging.DEBUG if level == "debug" else logging.WARNING
    least = max(least, logging.getLevelNamesMapping()[level.upper()])
    logging.basicConfig(handlers=[_Forward(log)], level=least, force=True)


@lru_cache
def _fit_word(word: str) -> str:
    return _UNFIT_IN_WORD.sub("_", word)


@lru_cache
def _named(name: str) -> str:
    return _UNFIT_IN_NAME.sub("_", name)


@lru_cache
def _is_secret(name: str) -> bool:
    return _SECRET_NAME.search(name) is not None


def _logfmt(value: object) -> str:
    if isinstance(value, bool):
        return json.dumps(value)
    text = str(value)
    if _PLAIN.fullmatch(text):
        return text
    return _visible(json.dumps(text, ensure_ascii=False))


def _visible(quoted: str) -> str:
    """JSON in which whatever does not show, or turns the writing direction, is escaped."""
    return "".join(
        json.dumps(char)[1:-1] if unicodedata.category(char) in _HIDDEN_CATEGORIES else char
        for char in quoted
    )


class _Forward(logging.Handler):
    def __init__(self, log: LineLog) -> None:
        super().__init__()
        self._line = log

    def emit(self, record: logging.LogRecord) -> None:
        pairs: dict[str, object] = {
            "severity": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info and record.exc_info[1] is not None:
            frames = traceback.extract_tb(record.exc_info[2])[-4:]
            pairs["error"] = type(record.exc_info[1]).__name__
            pairs["at_code"] = " < ".join(f"{f.name}:{f.lineno}" for f in reversed(frames))
        self._line("LOG", **pairs)
