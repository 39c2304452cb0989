"""What falls due next: the translation of ``ledger.due``; and sorted sets."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TypeVar

from ledger.codec import moment, stamp
from ledger.records import Due
from ledger.timing import milliseconds
from tests.simulation.memory.server import MemoryServer

Item = TypeVar("Item")


def in_order(scores: Mapping[str, int]) -> list[str]:
    """The members of a sorted set: by score, then by name."""
    return sorted(scores, key=lambda member: (scores[member], member))


def first_of(items: list[Item], limit: int) -> list[Item]:
    """The first ones as a range from 0 to ``limit - 1`` has them: none is all."""
    return items[: limit or None]


class MemoryDueSet:
    """What falls due next."""

    def __init__(self, server: MemoryServer) -> None:
        self._server = server

    async def add(self, due: Due, at: datetime) -> None:
        """Put it there, or move it."""
        self._server.state.due[str(due)] = stamp(at)

    async def when(self, due: Due) -> datetime | None:
        """When it falls due; None where it does not."""
        score = self._server.state.due.get(str(due))
        return None if score is None else moment(score)

    async def remove(self, due: Due, was: datetime | None = None) -> None:
        """It is done with. With ``was``, only where nobody moved it since."""
        if was is None or self._server.state.due.get(str(due)) == stamp(was):
            self._server.state.due.pop(str(due), None)

    async def take(self, now: datetime, limit: int, again_in: timedelta) -> list[Due]:
        """What is due, oldest first; each stays, moved by ``again_in``, until it is removed."""
        due, until = self._server.state.due, stamp(now)
        taken = in_order({item: at for item, at in due.items() if at <= until})[:limit]
        due.update(dict.fromkeys(taken, until + milliseconds(again_in)))
        return [Due.parse(item) for item in taken]

    async def upcoming(self, limit: int = 50) -> list[tuple[Due, datetime]]:
        """What falls due next and when, soonest first."""
        due = self._server.state.due
        return [(Due.parse(item), moment(due[item])) for item in first_of(in_order(due), limit)]
