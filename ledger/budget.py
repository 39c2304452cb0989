"""One write budget per installation, shared by all workers: ``budget:{installation}``.

GitHub allows about 80 content-creating requests a minute and 500 an hour, and asks for a second
between writes. Each grant is kept with its time for an hour; a further one is given when the 80th
before it is older than a minute, the 500th older than an hour, and the last one older than the
interval.

GitHub counts a request when it arrives, some time after its grant. Were that delay always the same,
nothing would be needed; so the windows here are 1.5 % longer than GitHub's, and a request may
arrive that much less late than the one a window before it: 0.9 seconds for the minute, 54 for the
hour. That costs 1.5 % of the limit. At one write a second the minute's is never reached.

A request that was answered later than those 0.9 seconds may have arrived as late: from then on its
grant counts as so much younger that GitHub's minute, too, is over for it when the one here is.
"""

import time
from collections.abc import Callable
from datetime import datetime, timedelta

import redis.asyncio

from ledger.codec import stamp
from ledger.records import Granted, Wait
from ledger.scripts import Script
from ledger.timing import LedgerTiming

A_MINUTE = 80
AN_HOUR = 500
_LONGER = 1.015

# KEYS: the grants, the block. ARGV: interval, then limit and length of both windows; microseconds.
_SPEND = """
local time = redis.call('TIME')
local now, free_at = time[1] * 1000000 + time[2], 0
local hour = tonumber(ARGV[5])

local function wait_for(nth, length)
  local grant = redis.call('ZREVRANGE', KEYS[1], nth - 1, nth - 1, 'WITHSCORES')
  if grant[2] then free_at = math.max(free_at, tonumber(grant[2]) + length) end
end

wait_for(1, tonumber(ARGV[1]))
wait_for(tonumber(ARGV[2]), tonumber(ARGV[3]))
wait_for(tonumber(ARGV[4]), hour)
free_at = math.max(free_at, (tonumber(redis.call('GET', KEYS[2])) or 0) * 1000)
if free_at > now then return string.format('%.0f', free_at - now) end

redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('(%.0f', now - hour))
redis.call('ZADD', KEYS[1], string.format('%.0f', now), string.format('%.0f', now))
redis.call('PEXPIRE', KEYS[1], math.ceil(hour / 1000) + 1000)
return string.format('%.0f', -now)
"""

# KEYS: the grants. ARGV: the grant, and how late its request may arrive; microseconds.
_LATE = """
local time = redis.call('TIME')
local arrived = time[1] * 1000000 + time[2] - tonumber(ARGV[2])
redis.call('ZADD', KEYS[1], 'XX', 'GT', string.format('%.0f', arrived), ARGV[1])
return 1
"""

_BLOCK = """
local until_ms = tonumber(ARGV[1])
if until_ms <= (tonumber(redis.call('GET', KEYS[1])) or 0) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PXAT', ARGV[1])
return 1
"""


class Budgets:
    """One write budget per installation, shared by all workers.

    ``monotonic`` is the clock by which a late answer is told, in seconds.
    """

    def __init__(
        self,
        redis: redis.asyncio.Redis,
        timing: LedgerTiming,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._redis = redis
        self._monotonic = monotonic
        interval = timing.write_interval / timedelta(microseconds=1)
        minute, hour = (
            seconds * 1_000_000 * _LONGER / timing.pacing_scale for seconds in (60, 3600)
        )
        self._bounds = [round(interval), A_MINUTE, round(minute), AN_HOUR, round(hour)]
        self._late = minute - minute / _LONGER
        self._spend = Script(redis, _SPEND)
        self._note_late = Script(redis, _LATE)
        self._block = Script(redis, _BLOCK)

    async def spend(self, installation: str) -> Granted | Wait:
        """Take room for one write, or say how long there is none.

        ``Wait.delay`` is when there may be room: others may have taken it by then.
        """
        keys, asked = [_grants(installation), _blocked(installation)], self._monotonic()
        delay = int(await self._spend(keys, self._bounds))
        return Wait(timedelta(microseconds=delay)) if delay > 0 else Granted(-delay, asked)

    async def answered(self, installation: str, granted: Granted) -> None:
        """The request of a grant is over, whatever came of it. Costs nothing where that was soon.

        Raises LedgerUnavailableError.
        """
        if (self._monotonic() - granted.asked) * 1_000_000 > self._late:
            late = [str(granted.at), str(round(self._late))]
            await self._note_late([_grants(installation)], late)

    async def block(self, installation: str, until: datetime) -> None:
        """GitHub asked to come back at ``until``: nobody writes before. The latest time counts."""
        if until.timestamp() > 0:
            await self._block([_blocked(installation)], [stamp(until)])


def _grants(installation: str) -> str:
    return f"budget:{installation}"


def _blocked(installation: str) -> str:
    return f"budget:{installation}:until"
