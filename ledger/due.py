"""What falls due next: ``window:due``, a sorted set, so that a tick costs what is due."""

from datetime import datetime, timedelta
from typing import Any

import redis.asyncio

from ledger.codec import moment, stamp, text
from ledger.connection import answered
from ledger.records import Due, DueKind
from ledger.scripts import Script
from ledger.timing import milliseconds

KEY = "window:due"

_TAKE = """
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
for _, member in ipairs(due) do redis.call('ZADD', KEYS[1], ARGV[3], member) end
return due
"""


class DueSet:
    """What falls due next."""

    def __init__(self, redis: redis.asyncio.Redis) -> None:
        self._redis = redis
        self._take = Script(redis, _TAKE)

    async def add(self, due: Due, at: datetime) -> None:
        """Put it there, or move it."""
        with answered():
            await self._redis.zadd(KEY, {str(due): stamp(at)})

    async def remove(self, due: Due) -> None:
        """It is done with."""
        with answered():
            await self._redis.zrem(KEY, str(due))

    async def take(self, now: datetime, limit: int, again_in: timedelta) -> list[Due]:
        """What is due, oldest first; each stays, moved by ``again_in``, until it is removed: a
        crash after this loses nothing. What a later version put there and this one cannot read
        stays too."""
        again = stamp(now) + milliseconds(again_in)
        taken = await self._take([KEY], [stamp(now), limit, again])
        kinds = tuple(f"{kind} " for kind in DueKind)
        return [Due.parse(text(item)) for item in taken if text(item).startswith(kinds)]

    async def upcoming(self, limit: int = 50) -> list[tuple[Due, datetime]]:
        """What falls due next and when, soonest first."""
        with answered():
            found: Any = await self._redis.zrange(KEY, 0, limit - 1, withscores=True)
        return [(Due.parse(text(item)), moment(score)) for item, score in found]
