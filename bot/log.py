"""Log lines: ``WORD key=value …`` on one line, or the same as one JSON object.

The words of this package:

- ``DELIVERY accepted|ignored|duplicate|refused`` guid, event, action, sender, repository, asks,
  status, reason: one line for each webhook
- ``CRON accepted|refused`` job, window, known, enqueued, status, reason: one for each request
- ``TICK`` enqueued: a tick that found something to do; ``TICK-FAILED`` reason: Redis is
  gone, or what stands in it cannot be read
- ``LISTENING`` address, ``STOPPED``; ``CLOCK-STARTED`` seconds, ``CLOCK-STOPPED``: the processes
- ``LOG`` severity, logger, message, error, at_code: what a library said

Invariant: no value can start a line, forge a pair or turn the writing direction. What is not plain
is written as a JSON string in ASCII, cut at VALUE_LIMIT characters.
"""

import json
import logging
import re
import traceback
from datetime import UTC, datetime
from typing import Final, Literal, Protocol, TextIO

import structlog
from structlog.typing import EventDict, WrappedLogger

VALUE_LIMIT: Final = 300

_PLAIN = re.compile(r"[A-Za-z0-9_./:+@%,#*()\[\]-]+")


class Log(Protocol):
    """The lines that alerts hang on."""

    def __call__(self, word: str, /, **pairs: object) -> None:
        """``WORD key=value …``"""


class LineLog:
    """A Log. Every line is written, whatever the level: alerts hang on the words."""

    def __init__(self, stream: TextIO, *, form: Literal["line", "json"] = "line") -> None:
        self._log = structlog.wrap_logger(
            structlog.WriteLogger(stream),
            processors=[_as_json if form == "json" else _as_line],
            wrapper_class=structlog.make_filtering_bound_logger(logging.NOTSET),
        )

    def __call__(self, word: str, /, **pairs: object) -> None:
        """``WORD key=value …``"""
        self._log.info(word, pairs=pairs)


def forward_libraries(log: Log, level: str) -> None:
    """What libraries log becomes lines of ours, from ``level`` (debug, info, warning, error) on.

    Below a warning they tell every request, so only ``debug`` shows that.
    """
    least = logging.DEBUG if level == "debug" else logging.WARNING
    least = max(least, logging.getLevelNamesMapping()[level.upper()])
    logging.basicConfig(handlers=[_Forward(log)], level=least, force=True)


def _as_line(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    pairs = (f"{name}={_logfmt(value)}" for name, value in event["pairs"].items())
    return " ".join([event["event"], *pairs])


def _as_json(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    pairs = {name: _cut(value) for name, value in event["pairs"].items()}
    return json.dumps({**pairs, "word": event["event"], "at": at})


def _cut(value: object) -> object:
    return value if value is None or isinstance(value, (int, float)) else str(value)[:VALUE_LIMIT]


def _logfmt(value: object) -> str:
    text = str(value)[:VALUE_LIMIT]
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


class _Forward(logging.Handler):
    def __init__(self, log: Log) -> None:
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
