"""The ledger's own identity: ``epoch``. It tells a ledger that lost writes from one that did not.

A server's replication identity changes whenever it starts, is promoted or is replaced. That is a
mere restart, which loses nothing, only where every write was on disk before it was acknowledged
(AOF, ``appendfsync always``), the server remembers no earlier identity (``master_replid2`` is all
zeros: it was not promoted), and no replica was ever there to be promoted. Anything else may have
lost acknowledged writes: a new epoch begins, and nothing is written until GitHub has been read.

A server also changes its identity when its first replica arrives, and an hour after the last one
left (its backlog begins anew): with replicas that come and go, each time is a quiet period.

What it cannot tell: a data folder put back from an old copy. Whoever puts one back deletes the key
``epoch``.
"""

import uuid

import redis.asyncio
import redis.exceptions

from ledger.codec import moment, moment_or_none, paired, text
from ledger.connection import answered
from ledger.due import KEY as DUE
from ledger.records import LEDGER, Due, DueKind, Epoch
from ledger.scripts import Script
from ledger.timing import LedgerTiming, milliseconds

KEY = "epoch"

# ARGV: a new id, whether the ledger is a first one, whether writes are durable, how long is quiet.
_ENSURE = (
    f"local DUE, RECOVER = '{DUE}', '{Due(DueKind.RECOVER, LEDGER)}'\n"
    + """
local id, first, durable, quiet = ARGV[1], ARGV[2] == '1', ARGV[3] == '1', ARGV[4]
local info, now, stands = redis.call('INFO', 'replication'), now_ms(), hash(KEYS[1])
if not string.find(info, 'role:master', 1, true) then
  return redis.error_reply('READONLY this server is a replica')
end
local replid = string.match(info, 'master_replid:(%x+)')
local earlier = string.match(info, 'master_replid2:(%x+)') or '0'
local replicas = tonumber(string.match(info, 'connected_slaves:(%d+)')) or 0
if replicas > (tonumber(stands.replicas_seen) or 0) then
  redis.call('HSET', KEYS[1], 'replicas_seen', replicas)
  stands.replicas_seen = tostring(replicas)
end

local function begin(quiet_until, is_first)
  redis.call('HSET', KEYS[1], 'id', id, 'replid', replid, 'began', string.format('%.0f', now),
    'quiet_until', quiet_until, 'first', is_first)
  -- Whatever becomes of the reply, GitHub is read back.
  if is_first == '0' then redis.call('ZADD', DUE, now, RECOVER) end
  return {stands.id and 2 or 1, redis.call('HGETALL', KEYS[1])}
end

if not stands.id then
  if first then return begin('0', '1') end
  return begin(string.format('%.0f', now + quiet), '0')
end
if stands.replid == replid then return {0, redis.call('HGETALL', KEYS[1])} end
local restarted = durable and string.match(earlier, '^0+$')
  and (tonumber(stands.replicas_seen) or 0) == 0
if not restarted then return begin(string.format('%.0f', now + quiet), '0') end
redis.call('HSET', KEYS[1], 'replid', replid)
return {0, redis.call('HGETALL', KEYS[1])}
"""
)


class Epochs:
    """The ledger's own identity."""

    def __init__(self, redis: redis.asyncio.Redis, timing: LedgerTiming) -> None:
        self._redis = redis
        self._quiet = milliseconds(timing.absence_window + timing.lock_delay)
        self._ensure = Script(redis, _ENSURE)

    async def ensure(self, *, first: bool) -> Epoch:
        """The epoch that stands. Missing, or the server's replication identity changed without
        being a mere restart: set a new one (``changed``), quiet unless ``first``.

        Of two callers at once, one sets it and both get it. ``first`` is heard only where there is
        none. A server that hides its settings counts as not durable.
        """
        durable = await self._durable()
        arguments: list[str | bytes | float] = [
            uuid.uuid4().hex,
            int(first),
            int(durable),
            self._quiet,
        ]
        changed, flat = await self._ensure([KEY], arguments)
        fields = paired(flat)
        return Epoch(
            id=fields["id"],
            began=moment(fields["began"]),
            quiet_until=moment_or_none(fields["quiet_until"]),
            first=fields["first"] == "1",
            changed=changed > 0,
            replaces=changed == 2,
        )

    async def _durable(self) -> bool:
        """Whether every write is on disk before it is acknowledged. Scripts may not ask this."""
        try:
            with answered():
                found = await self._redis.config_get("appendonly", "appendfsync")
        except redis.exceptions.ResponseError:
            return False
        settings = {text(name): text(value) for name, value in found.items()}
        return settings == {"appendonly": "yes", "appendfsync": "always"}
