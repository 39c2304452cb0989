"""``POST /api/github/webhooks``: verified, understood, recorded and enqueued, then answered.

=====  ===========================================================================================
 202   accepted: what was asked is in the queue for good
 200   ignored, with the reason; or duplicate: by the delivery's id, or by what it means
 400   not JSON, no object, or without ``X-GitHub-Event`` or ``X-GitHub-Delivery``
 401   no SHA-256 signature, or a wrong one; SHA-1 alone is none
 408   the body did not arrive in time
 413   a body of more than 25 MiB, however its length is declared
 503   Redis is out of reach: GitHub shows the delivery as failed, and a redelivery works
=====  ===========================================================================================

Every answer is one JSON line. Nothing of a body is read as JSON before its signature is verified,
and the signature's form is checked before the body is read at all.
"""

import asyncio
import hashlib
import hmac
import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final

from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse

from bot.enqueue import Link
from ledger.errors import LedgerUnavailableError
from process.log import Log
from triage.delivery import Ignored, interpret, meaning, text_at
from triage.marker import MarkerKeys

BODY_LIMIT_BYTES: Final = 25 * 1024 * 1024
"""GitHub sends no larger delivery."""
BODY_TIMEOUT_SECONDS: Final = 10
"""GitHub gives up after as long."""

_SIGNATURE = re.compile(r"sha256=[0-9a-f]{64}")
_GUID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_EVENT = re.compile(r"[a-z_]{1,64}")


class _RefusedError(Exception):
    """The delivery is not taken; ``status`` and ``reason`` are the answer."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Webhooks:
    """The receiver. ``count`` is told each outcome; ``again_at`` says when what is asked for now,
    and not done by then, is enqueued again."""

    def __init__(
        self,
        link: Link,
        secret: str,
        keys: MarkerKeys,
        log: Log,
        count: Callable[[str], None],
        *,
        again_at: Callable[[], datetime],
    ) -> None:
        self._link = link
        self._again_at = again_at
        self._secret = secret.encode()
        self._keys = keys
        self._log = log
        self._count = count

    async def receive(self, request: Request) -> JSONResponse:
        """One delivery, one answer, one log line."""
        guid = request.headers.get("x-github-delivery", "")
        event = request.headers.get("x-github-event", "")
        told: dict[str, object] = {"guid": guid, "event": event}
        try:
            body = await self._verified(request)
            payload = _payload(body, event, guid)
            told |= _described(payload)
            return await self._take(payload, event, guid, told)
        except _RefusedError as refused:
            told |= {"status": refused.status}
            return self._answer("refused", refused.status, refused.reason, told)

    async def _verified(self, request: Request) -> bytes:
        signature = request.headers.get("x-hub-signature-256", "")
        if not _SIGNATURE.fullmatch(signature):
            raise _RefusedError(401, "X-Hub-Signature-256 is missing or malformed")
        body = await _body(request)
        signed = hmac.new(self._secret, body, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(signed, signature.removeprefix("sha256=")):
            raise _RefusedError(401, "the signature does not fit the body and WEBHOOK_SECRET")
        return body

    async def _take(
        self, payload: Mapping[str, Any], event: str, guid: str, told: dict[str, object]
    ) -> JSONResponse:
        try:
            bot_ids = await self._link.ledger.repositories.bot_ids()
            asked = interpret(event, payload, bot_ids=bot_ids, keys=self._keys)
            if isinstance(asked, Ignored):
                return self._answer("ignored", 200, asked.reason, told)
            told |= {"asks": ",".join(ask.kind for ask in asked)}
            meant = meaning(event, payload) or ""
            accept = partial(self._link.accept, again_at=self._again_at())
            new = await to_thread.run_sync(accept, guid, meant, asked)
        except LedgerUnavailableError:
            raise _RefusedError(503, "Redis is out of reach: deliver it again") from None
        if not new:
            return self._answer("duplicate", 200, "it was accepted before", told)
        return self._answer("accepted", 202, "", told)

    def _answer(
        self, outcome: str, status: int, reason: str, told: Mapping[str, object]
    ) -> JSONResponse:
        self._count(outcome)
        because = {"reason": reason} if reason else {}
        self._log(f"DELIVERY {outcome}", **told, **because)
        return JSONResponse({"outcome": outcome, **because}, status)


def _described(payload: Mapping[str, Any]) -> dict[str, object]:
    named = {
        "action": text_at(payload, "action"),
        "sender": text_at(payload, "sender", "login"),
        "repository": text_at(payload, "repository", "full_name"),
    }
    return {name: value for name, value in named.items() if value}


def _payload(body: bytes, event: str, guid: str) -> Mapping[str, Any]:
    if not _EVENT.fullmatch(event):
        raise _RefusedError(400, "X-GitHub-Event is missing or malformed")
    if not _GUID.fullmatch(guid):
        raise _RefusedError(400, "X-GitHub-Delivery is missing or malformed")
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError):
        hint = " (set the webhook's content type to application/json)"
        form = hint if body.startswith(b"payload=") else ""
        raise _RefusedError(400, f"the body is not JSON{form}") from None
    if not isinstance(payload, dict):
        raise _RefusedError(400, "the body is JSON, but no object")
    return payload


async def _body(request: Request) -> bytes:
    """The body, at most BODY_LIMIT_BYTES of it, within BODY_TIMEOUT_SECONDS.

    The little that the server lets through beyond the limit is read and thrown away: a client that
    is cut off while it sends may never see the answer.
    """
    declared = request.headers.get("content-length", "")
    too_large = declared.isdecimal() and int(declared[:20]) > BODY_LIMIT_BYTES
    kept = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_SECONDS):
            if too_large and "expect" in request.headers:
                raise _too_large()
            async for chunk in request.stream():
                too_large = too_large or len(kept) + len(chunk) > BODY_LIMIT_BYTES
                if too_large:
                    kept.clear()
                else:
                    kept += chunk
    except TimeoutError:
        raise _RefusedError(408, "the body did not arrive in time") from None
    except ClientDisconnect:
        raise _RefusedError(400, "the connection was closed within the body") from None
    except HTTPException:
        raise _too_large() from None
    if too_large:
        raise _too_large()
    return bytes(kept)


def _too_large() -> _RefusedError:
    return _RefusedError(413, "the body is larger than 25 MiB")
