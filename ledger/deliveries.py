"""Webhook deliveries: ``delivery:{guid}`` and ``meaning:{digest}``, 30 days each, and
``ask:{guid}:{n}``, what they ask for.

A delivery and its job stand in the queue together or not at all: they are set in one transaction,
so that no crash loses a command, and a redelivery (same GUID) or a second event that means the same
makes no second job. The queue alone would not do: a job that a worker took and did not end is lost
in it. So what is asked stands as due besides, until it is done. Not async, because the queue's
client is not.
"""

import hashlib
import uuid
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

import redis
import redis.exceptions
from redis.client import Pipeline

from ledger.codec import stamp, text
from ledger.connection import answered
from ledger.due import KEY as DUE
from ledger.errors import LedgerUnavailableError
from ledger.records import Due, DueKind

KEPT = timedelta(days=30)

ASK_KEPT = timedelta(days=1)
"""How long what a delivery asks for is tried again."""

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
        keys = delivery_keys(guid, meaning)
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
                # redis-py's own method has no types.
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

    def keep(self, pipeline: Pipeline, due: Due, ask: str, again_at: datetime) -> None:
        """Have what is asked for come again at that time, unless it was done by then."""
        pipeline.set(ask_key(due), ask, ex=ASK_KEPT)
        pipeline.zadd(DUE, {str(due): stamp(again_at)})

    def asks(self, dues: Iterable[Due]) -> dict[Due, str]:
        """What these ask for; without those that were tried long enough."""
        wanted = [due for due in dues if due.kind is DueKind.ASK]
        if not wanted:
            return {}
        with answered():
            found = self._redis.mget([ask_key(due) for due in wanted])
        return {due: text(ask) for due, ask in zip(wanted, found, strict=True) if ask is not None}

    def accepted(self, guid: str) -> bool:
        """Whether a delivery is known."""
        with answered():
            return bool(self._redis.exists(f"delivery:{guid}"))


def delivery_keys(guid: str, meaning: str) -> list[str]:
    """What stands once a delivery was accepted; the meaning counts where there is one."""
    return [f"delivery:{guid}", *([_meaning_key(meaning)] if meaning else [])]


def ask_key(due: Due) -> str:
    """Where what is asked for is kept."""
    return f"ask:{due.name}"


def _meaning_key(meaning: str) -> str:
    return f"meaning:{hashlib.sha256(meaning.encode()).hexdigest()}"
