"""Lua scripts: each decision that two processes could take at once is one of them.

A script checks everything before it changes anything, so it either happens or does not. The server
runs one script at a time and writes its changes to the AOF as one block. Time is the server's: its
clock may be slewed, as time daemons do, but not stepped by more than a margin while runs are open.

Keys are also made inside scripts, so the ledger lives on one server (with replicas, or without),
not on a Redis Cluster.
"""

from collections.abc import Sequence
from typing import Any

import redis.asyncio

from ledger.connection import answered
from ledger.errors import FrozenRunError, LeaseLost, UnknownRunError
from ledger.records import Lease

PRELUDE = """
-- Milliseconds since 1970.
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- The fields of a hash as a table; missing ones are nil.
local function hash(key)
  local flat, fields = redis.call('HGETALL', key), {}
  for at = 1, #flat, 2 do fields[flat[at]] = flat[at + 1] end
  return fields
end

-- Milliseconds that the lease still lasts; nil and why where it is another's, lapsed, or of
-- another epoch.
local function remaining(lease_key, token, fence, epoch)
  local lease = hash(lease_key)
  local left = (tonumber(lease['until']) or 0) - now_ms()
  if lease.token ~= token or lease.fence ~= fence or left <= 0 then return nil, 'lease-lost' end
  if epoch ~= (redis.call('HGET', 'epoch', 'id') or '') then return nil, 'epoch' end
  return left
end

local function is_final(status)
  return status == 'completed' or status == 'no-change'
end

-- How many effects of a run hold one of these pieces of text.
local function count_effects(run_key, ...)
  local count = 0
  for name, value in pairs(hash(run_key)) do
    for _, piece in ipairs({...}) do
      if string.sub(name, 1, 2) == 'e:' and string.find(value, piece, 1, true) then
        count = count + 1
        break
      end
    end
  end
  return count
end

-- Give a lease up. Where a claim of this holder was neither acknowledged nor withdrawn, its request
-- may still be under way: that keeps the lock delay, from now on.
local function let_go(lease_key, run_key)
  local fence, ends = redis.call('HGET', lease_key, 'fence'), '0'
  for name, value in pairs(hash(run_key)) do
    if string.sub(name, 1, 2) == 'c:' and value == fence then
      ends = string.format('%.0f', now_ms())
    end
  end
  redis.call('HSET', lease_key, 'token', '', 'until', ends)
end
"""


class Script:
    """One script of one client."""

    def __init__(self, redis: redis.asyncio.Redis, body: str) -> None:
        self._script = redis.register_script(PRELUDE + body)

    async def __call__(self, keys: Sequence[str], args: Sequence[str | bytes | float]) -> Any:
        """Run it once. Raises LedgerUnavailableError: it may or may not have happened."""
        with answered():
            return await self._script(keys=keys, args=args)


def proof(lease: Lease) -> list[str]:
    """A lease as the arguments of ``remaining``; an epoch that is not known fits no other."""
    return [lease.token, str(lease.fence), lease.epoch]


def passed(word: bytes, dedupe_key: str) -> None:
    """Raise what a guarded script refused with."""
    match word:
        case b"ok":
            return
        case b"lease-lost":
            raise LeaseLost(dedupe_key)
        case b"frozen":
            raise FrozenRunError(dedupe_key)
        case b"unknown-run":
            raise UnknownRunError(dedupe_key)
        case _:
            raise AssertionError(word)
