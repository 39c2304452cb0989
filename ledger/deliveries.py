"""Webhook deliveries: ``delivery:{guid}`` and ``meaning:{digest}``, 30 days each.

A delivery and its job stand in the queue together or not at all: they are set in one transaction,
so that no crash loses a command, and a redelivery (same GUID) or a second event that means the same
makes no second job. Not async, because the queue's client is not.
"""

import hashlib
import uuid
from collections.abc import Callable
from datetime import timedelta

import redis
import redis.exceptions
from redis.client import Pipeline

from ledger.codec import text
from ledger.connection import answered
from ledger.errors import LedgerUnavailableError

KEPT = timedelta(days=30)

_MOST_TRIES = 5
"""Each is lost to somebody who changed the same two keys meanwhile: the second finds them there."""


class Deliveries:
    """Deliveries that were accepted. The client is one of ``ledger.connection.connect_sync``, and
    the queue must use the same database."""

    def __init__(self, redis: redis.Redis) -> None:
        self._redis = redis

    def accept(self, guid: str, meaning: str, enqueue: Callable[[Pipeline], object]) -> bool:
        """Put a job into the queue, unless this delivery, or one that means the same, did so.

        ``enqueue`` adds commands to the pipeline that it gets (``queue.enqueue(…, pipeline=…)``,
        without ``unique`` and ``depends_on``, which would leave the transaction); it may be called
        more than once, of which one counts. ``meaning`` is any text that two events share exactly
        if the second needs no job of its own; empty where only the GUID counts.

        False for a duplicate. LedgerUnavailableError: it may have been accepted; the same call
        again, in this process or another, tells by answering False.
        """
        keys = [f"delivery:{guid}", *([_meaning_key(meaning)] if meaning else [])]
        token = uuid.uuid4().hex
        for _ in range(_MOST_TRIES):
            stands = self._try(keys, token, enqueue)
            if stands is not None:
                return stands == token
        raise LedgerUnavailableError("the delivery was changed by others again and again")

    def _try(
        self, keys: list[str], token: str, enqueue: Callable[[Pipeline], object]
    ) -> str | None:
        """The token under which it was accepted; None where somebody was faster, or where the
        connection was lost: redis-py tells both in the same way, and reading again tells which."""
        with answered(), self._redis.pipeline(transaction=True) as pipe:
            try:
                pipe.watch(*keys)  # type: ignore[no-untyped-call]
                known = [text(value) for value in pipe.mget(keys) if value is not None]
                if known:
                    return known[0]
                pipe.multi()
                for key in keys:
                    pipe.set(key, token, ex=KEPT)
                enqueue(pipe)
                pipe.execute()
            except redis.exceptions.WatchError:
                return None
        return token

    def accepted(self, guid: str) -> bool:
        """Whether a delivery is known."""
        with answered():
            return bool(self._redis.exists(f"delivery:{guid}"))


def _meaning_key(meaning: str) -> str:
    return f"meaning:{hashlib.sha256(meaning.encode()).hexdigest()}"
