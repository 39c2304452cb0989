"""Who may execute a run now: ``lease:{dedupe_key}``, and ``fence``, one counter for the ledger.

Invariant: a lease that lapsed stays on record until it is taken over, because the lock delay counts
from its end. A clean release leaves owner and fence for people to read, and no delay.
"""

import redis.asyncio

from ledger.codec import moment, moment_or_none, paired, text
from ledger.records import Lease, LeaseView, Look
from ledger.runs import put_together, run_key
from ledger.scripts import Script
from ledger.timing import LedgerTiming, milliseconds

_KEPT_DAYS = 30
"""How long a lease without a run that ever ended stays on record."""

_ACQUIRE = """
local now, lease = now_ms(), hash(KEYS[1])
local owner, token, length, lock_delay, kept = unpack(ARGV)
local ends = tonumber(lease['until']) or 0
if now < ends then
  if lease.token ~= token then return nil end
  return {lease.fence, lease.epoch, lease['until']}
end
local claimed = tonumber(redis.call('HGET', KEYS[2], 'claimed')) or 0
if claimed > 0 and now < ends + lock_delay then return nil end
local fence = redis.call('INCR', 'fence')
local epoch = redis.call('HGET', 'epoch', 'id') or ''
ends = string.format('%.0f', now + length)
redis.call('HSET', KEYS[1],
  'owner', owner, 'token', token, 'until', ends, 'fence', fence, 'epoch', epoch)
redis.call('PEXPIRE', KEYS[1], kept)
return {tostring(fence), epoch, ends}
"""

_RENEW = """
local now, lease = now_ms(), hash(KEYS[1])
if lease.token ~= ARGV[1] or now >= (tonumber(lease['until']) or 0) then return 0 end
redis.call('HSET', KEYS[1], 'until', string.format('%.0f', now + ARGV[2]))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
"""

_RELEASE = """
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return 0 end
let_go(KEYS[1], KEYS[2])
return 1
"""

_VIEW = """
return {
  string.format('%.0f', now_ms()), redis.call('HGETALL', KEYS[1]), redis.call('HGETALL', KEYS[2])}
"""


def lease_key(dedupe_key: str) -> str:
    """Where a run's lease is."""
    return f"lease:{dedupe_key}"


class Leases:
    """One lease per run. Times are the server's."""

    def __init__(self, redis: redis.asyncio.Redis, timing: LedgerTiming) -> None:
        self._length = milliseconds(timing.lease)
        self._lock_delay = milliseconds(timing.lock_delay)
        self._kept = _KEPT_DAYS * 86_400_000 + self._length + self._lock_delay
        self._acquire = Script(redis, _ACQUIRE)
        self._renew = Script(redis, _RENEW)
        self._release = Script(redis, _RELEASE)
        self._view = Script(redis, _VIEW)

    async def acquire(self, dedupe_key: str, owner: str, token: str) -> Lease | None:
        """Take the lease, or None while it is live, or within the lock delay of a claimed run.

        Idempotent by ``token``: after a lost reply, the same token finds its own lease again,
        as long as it lives.
        """
        taken = await self._acquire(
            _keys(dedupe_key), [owner, token, self._length, self._lock_delay, self._kept]
        )
        if taken is None:
            return None
        fence, epoch, until = taken
        return Lease(dedupe_key, owner, token, int(fence), text(epoch), moment(until))

    async def renew(self, lease: Lease) -> bool:
        """Make it last a whole lease from now. False where it lapsed or is another's."""
        keys = [lease_key(lease.dedupe_key)]
        return bool(await self._renew(keys, [lease.token, self._length, self._kept]))

    async def release(self, lease: Lease) -> None:
        """Give it up cleanly. Nothing happens where it is another's.

        While a claim of the run is open, it only lapses: the lock delay runs from now.
        """
        await self._release(_keys(lease.dedupe_key), [lease.token])

    async def view(self, dedupe_key: str) -> Look:
        """The run and its lease, in one read."""
        now, lease, run = await self._view(_keys(dedupe_key), [])
        held = paired(lease)
        view = LeaseView(
            now=moment(now),
            owner=held.get("owner", ""),
            until=moment_or_none(held.get("until", "")),
            fence=int(held.get("fence", 0)),
        )
        return Look(put_together(paired(run)), view)


def _keys(dedupe_key: str) -> list[str]:
    return [lease_key(dedupe_key), run_key(dedupe_key)]
