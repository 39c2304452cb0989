"""What is remembered of reviews and watches: ``review:{repository}``, ``watch:{repository}``, and
``review:{repository}:recall``, the figures of the last runs that were to know the one before.

A review is a hash: ``record`` is its state, packed; ``fence``, ``session`` and ``length`` stand
beside it for the scripts, ``cleared`` where the session was given up since.

Invariant: the state of a review, its session and the plan of its run are written by one script, or
none of them. Where a plan stands already, it is that plan's state that stands.

Invariant: a run whose snapshot is older than that of the state changes neither state nor session.
"""

import json
from datetime import timedelta
from typing import Any, Final

import redis.asyncio

from ledger.codec import packed, parsed, texts, unpacked
from ledger.connection import answered
from ledger.memory import (
    RECALLS_WITH_A_REVIEW,
    Cleared,
    Promotion,
    Recall,
    ReviewState,
    StagedSession,
)
from ledger.records import Lease
from ledger.scripts import Script, passed, proof
from ledger.sessions import SESSION_KEPT, copy_key, session_key
from ledger.timing import LedgerTiming, milliseconds
from triage.identifiers import Family

RECALLS_KEPT: Final = 100

REPLACED_KEPT: Final = timedelta(days=1)
"""How long a session is kept that another one replaced: an attempt may be at it still."""

# KEYS: 3 the review, 4 its recalls, 5 the session, 6 its copy. ``memory`` is ``promotion_of``.
PROMOTE = """
local function why_not(memory)
  if memory.session == '' then return nil end
  if redis.call('LLEN', KEYS[5]) < memory.base then return 'session-lost' end
  if redis.call('LLEN', KEYS[6]) ~= memory.length - memory.base then return 'copy-lost' end
end

local function cut_and_append(memory)
  if memory.base == 0 then
    redis.call('DEL', KEYS[5])
  else
    redis.call('LTRIM', KEYS[5], 0, memory.base - 1)
  end
  for from = 0, memory.length - memory.base - 1, 100 do
    local items = redis.call('LRANGE', KEYS[6], from, from + 99)
    redis.call('RPUSH', KEYS[5], unpack(items))
  end
  redis.call('PEXPIRE', KEYS[5], memory.session_kept)
  redis.call('DEL', KEYS[6])
end

local function promote(memory, record, recall)
  local old = hash(KEYS[3])
  if (tonumber(old.fence) or 0) > memory.fence then return end
  if memory.session ~= '' then cut_and_append(memory) end
  if old.session and old.session ~= memory.session then
    redis.call('PEXPIRE', memory.sessions .. old.session, memory.replaced_kept)
  end
  redis.call('DEL', KEYS[3])
  redis.call('HSET', KEYS[3], 'record', record, 'fence', memory.fence)
  if memory.session ~= '' then
    redis.call('HSET', KEYS[3], 'session', memory.session, 'length', memory.length)
  end
  redis.call('PEXPIRE', KEYS[3], memory.review_kept)
  if recall ~= '' then
    redis.call('LPUSH', KEYS[4], recall)
    redis.call('LTRIM', KEYS[4], 0, memory.recalls_kept - 1)
    redis.call('PEXPIRE', KEYS[4], memory.review_kept)
  end
end
"""

# KEYS: the lease, the review, the session. ARGV: 4 the session, 5 its length, 6 what is noted.
CLEAR = """
if not remaining(KEYS[1], ARGV[1], ARGV[2], ARGV[3]) then return {'lease-lost'} end
if redis.call('HGET', KEYS[2], 'cleared') == ARGV[6] then return {'ok', 1} end
local review = hash(KEYS[2])
if review.session ~= ARGV[4] or review.length ~= ARGV[5] then return {'ok', 0} end
redis.call('HSET', KEYS[2], 'cleared', ARGV[6])
redis.call('HDEL', KEYS[2], 'session', 'length')
redis.call('DEL', KEYS[3])
return {'ok', 1}
"""


def review_key(repository_id: int, family: Family = Family.REVIEW) -> str:
    """Where the last review of a repository is, or its last watch."""
    return f"{family}:{repository_id}"


def recall_key(repository_id: int, family: Family = Family.REVIEW) -> str:
    """Where the figures of recall are, newest first."""
    return f"{review_key(repository_id, family)}:recall"


class Reviews:
    """The last review of each repository, and how well each recalled the one before."""

    def __init__(self, redis: redis.asyncio.Redis) -> None:
        self._redis = redis
        self._clear = Script(redis, CLEAR)

    async def last(self, repository_id: int, family: Family = Family.REVIEW) -> ReviewState | None:
        """The last review, as the next one needs it. Without session where that was cleared."""
        with answered():
            async with self._redis.pipeline(transaction=True) as reads:
                reads.hgetall(review_key(repository_id, family))
                reads.lrange(recall_key(repository_id, family), 0, RECALLS_WITH_A_REVIEW - 1)
                stored, recalls = await reads.execute()
        fields = texts(stored)
        if "record" not in fields:
            return None
        state = unpacked(ReviewState, stored[b"record"])
        update: dict[str, Any] = {"recalls": tuple(parsed(Recall, item) for item in recalls)}
        if "cleared" in fields:
            update |= {"session_id": None, "session_length": 0, "session_since": None}
            update["cleared"] = parsed(Cleared, fields["cleared"])
        return state.model_copy(update=update)

    async def recalls(self, repository_id: int, limit: int = RECALLS_KEPT) -> tuple[Recall, ...]:
        """The figures of the last runs that were to know the one before, newest first."""
        with answered():
            found: Any = await self._redis.lrange(recall_key(repository_id), 0, limit - 1)
        return tuple(parsed(Recall, item) for item in found)

    async def clear_session(self, lease: Lease, staged: StagedSession, reason: str) -> bool:
        """Give the session up that an attempt resumed, so that the next window starts cold.

        False where it is not the last review's any more, or was continued by another run: then
        nothing happens. Asked again it is True, and nothing more. Raises LeaseLost.
        """
        if staged.session_id is None:
            return False
        cleared = Cleared(session_id=staged.session_id, run=lease.dedupe_key, reason=reason)
        keys = [
            f"lease:{lease.dedupe_key}",
            review_key(staged.repository_id),
            session_key(staged.repository_id, staged.session_id),
        ]
        what = [staged.session_id, str(staged.length), cleared.model_dump_json()]
        word, *done = await self._clear(keys, [*proof(lease), *what])
        passed(word, lease.dedupe_key)
        return bool(done[0])


def promotion_keys(promotion: Promotion | None) -> list[str]:
    """KEYS of ``PROMOTE``."""
    if promotion is None:
        return []
    state, copy = promotion.state, promotion.copy
    return [
        review_key(state.repository_id, state.family),
        recall_key(state.repository_id, state.family),
        session_key(state.repository_id, state.session_id),
        "" if copy is None else copy_key(copy),
    ]


def promotion_of(promotion: Promotion | None, timing: LedgerTiming) -> list[str | bytes]:
    """``memory`` as JSON, the record and the figures of recall; empty where there is nothing."""
    if promotion is None:
        return ["", "", ""]
    state, copy, recall = promotion.state, promotion.copy, promotion.recall
    memory = {
        "session": state.session_id or "",
        "length": state.session_length,
        "base": 0 if copy is None else copy.length,
        "fence": state.fence,
        "sessions": session_key(state.repository_id, None),
        "session_kept": milliseconds(SESSION_KEPT),
        "replaced_kept": milliseconds(REPLACED_KEPT),
        "review_kept": milliseconds(timing.retention),
        "recalls_kept": RECALLS_KEPT,
    }
    bare = state.model_copy(update={"recalls": (), "cleared": None})
    return [json.dumps(memory), packed(bare), "" if recall is None else recall.model_dump_json()]
