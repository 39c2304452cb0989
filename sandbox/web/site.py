"""What the web holds, and what it was asked."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from sandbox.web.answers import Answer, Page

_NOT_FOUND = Page("<p>Not here</p>", status=404)


@dataclass(frozen=True)
class Asked:
    """One request. ``target`` is path and query; the names of ``headers`` are lower case."""

    n: int
    method: str
    target: str
    headers: Mapping[str, str]


class Site:
    """Answers by their target: the path, with the query where it has one. The rest is a 404."""

    def __init__(self) -> None:
        self._answers: dict[str, Answer] = {}
        self._asked: list[Asked] = []
        self._lock = threading.Lock()

    def put(self, target: str, answer: Answer) -> None:
        """From now on this is there."""
        with self._lock:
            self._answers[target] = answer

    def remove(self, target: str) -> None:
        """From now on nothing is there."""
        with self._lock:
            self._answers.pop(target, None)

    def ask(self, method: str, target: str, headers: Mapping[str, str]) -> Answer:
        """What is there now; the request is kept."""
        with self._lock:
            self._asked.append(Asked(len(self._asked) + 1, method, target, headers))
            return self._answers.get(target, _NOT_FOUND)

    def asked(self, target: str | None = None) -> list[Asked]:
        """What came in, oldest first; the control addresses are left out."""
        with self._lock:
            return [each for each in self._asked if target in (None, each.target)]

    def forget(self) -> None:
        """Empty the log."""
        with self._lock:
            self._asked.clear()
