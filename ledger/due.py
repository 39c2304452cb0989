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

_REMOVE = """
if tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1])) == tonumber(ARGV[2]) then
  redis.call('ZREM', KEYS[1], ARGV[1])
end
return 1
"""


class DueSet:
    """What falls due next."""

    def __init__(self, redis: redis.asyncio.Redis) -> None:
        self._redis = redis
        self._take = Script(redis, _TAKE)
        self._remove = Script(redis, _REMOVE)

    async def add(self, due: Due, at: datetime) -> None:
        """Put it there, or move it."""
        with answered():
            await self._redis.zadd(KEY, {str(due): stamp(at)})

    async def when(self, due: Due) -> datetime | None:
        """When it falls due; None where it does not."""
        with answered():
            score = await self._redis.zscore(KEY, str(due))
        return None if score is None else moment(score)

    async def remove(self, due: Due, was: datetime | None = None) -> None:
        """It is done with. With ``was``, only where nobody moved it since: what somebody else has
        put there meanwhile is theirs."""
        if was is None:
            with answered():
                await self._redis.zrem(KEY, str(due))
        else:
            await self._remove([KEY], [str(due), stamp(was)])

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
