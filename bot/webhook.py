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
and the signature's form is checked before a body is read that is larger than usual.
"""

import asyncio
import hmac
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from typing import Any, Final

from pydantic_core import CoreSchema, SchemaValidator
from pydantic_core.core_schema import (
    any_schema,
    typed_dict_field,
    typed_dict_schema,
    union_schema,
)
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from bot.enqueue import Link, Taken
from ledger.errors import LedgerUnavailableError
from process.log import LineLog
from triage.delivery import Ignored, interpret, meaning, text_at
from triage.marker import MarkerKeys

BODY_LIMIT_BYTES: Final = 25 * 1024 * 1024
"""GitHub sends no larger delivery."""
BODY_TIMEOUT_SECONDS: Final = 10
"""GitHub gives up after as long."""

_SIGNATURE = re.compile(r"sha256=[0-9a-f]{64}")
_GUID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_EVENT = re.compile(r"[a-z_]{1,64}")


_ANY: Final[Mapping[str, Any]] = {}
_PERSON: Final = {"id": _ANY, "login": _ANY, "type": _ANY}
_TEXT: Final = {"id": _ANY, "user": _PERSON, "body": _ANY, "html_url": _ANY, "updated_at": _ANY}
READ: Final[Mapping[str, Any]] = {
    "action": _ANY,
    "sender": _PERSON,
    "installation": {"id": _ANY},
    "repository": {"id": _ANY, "full_name": _ANY},
    "issue": {**_TEXT, "number": _ANY, "pull_request": _ANY},
    "comment": _TEXT,
    "label": {"name": _ANY},
    "repositories": _ANY,
    "repositories_added": _ANY,
    "repositories_removed": _ANY,
}
"""All that ``triage.delivery`` and the log line read of a payload: a small part of it."""

HEADERS: Final = ("x-github-delivery", "x-github-event", "x-hub-signature-256")
"""All that is read of a delivery's headers, but what is said of its body."""
_TOLD = (("guid", "delivery"), ("event", "event"))


@dataclass(frozen=True, slots=True)
class Answer:
    """What is answered; ``body`` is one line of JSON."""

    status: int
    body: bytes


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
        log: LineLog,
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
        self._is_flushing = False

    async def receive(self, request: Request) -> Response:
        """One delivery as Starlette has it: its body is read here, once its signature looks like
        one."""
        try:
            _signature(request.headers)
            body = await _body(request)
        except _RefusedError as refused:
            answer = self._refuse(refused, _told(request.headers))
        else:
            answer = await self.take(request.headers, body)
        return Response(answer.body, answer.status, media_type="application/json")

    def take(self, headers: Mapping[str, str], body: bytes) -> "asyncio.Future[Answer]":
        """One delivery, one answer, one log line. ``headers`` by their names in lower case.

        No coroutine and no task for each: under load they cost as much as the verification.
        """
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        told = _told(headers)
        try:
            taking = self._take(headers, body, told)
        except _RefusedError as refused:
            answer.set_result(self._refuse(refused, told))
        except Exception as error:  # noqa: BLE001 - a fault of ours: who waits answers 500
            answer.set_exception(error)
        else:
            taking.add_done_callback(partial(self._taken, answer, told))
        return answer

    def too_slow(self, headers: Mapping[str, str]) -> Answer:
        """The answer where a body did not come in time."""
        return self._refuse(_late(), _told(headers))

    def cut_off(self, headers: Mapping[str, str]) -> None:
        """The line and the count where the connection was closed within the body."""
        self._refuse(_closed(), _told(headers))

    def _take(
        self, headers: Mapping[str, str], body: bytes, told: dict[str, object]
    ) -> "asyncio.Future[Taken]":
        signed = hmac.digest(self._secret, body, "sha256").hex()
        if not hmac.compare_digest(signed, _signature(headers)):
            raise _RefusedError(401, "the signature does not fit the body and WEBHOOK_SECRET")
        event, guid = _named(headers)
        payload = _payload(body)
        told |= _described(payload)
        return self._link.take(
            guid,
            meaning(event, payload) or "",
            lambda bot_ids: interpret(event, payload, bot_ids=bot_ids, keys=self._keys),
            again_at=self._again_at(),
        )

    def _taken(
        self,
        answer: "asyncio.Future[Answer]",
        told: dict[str, object],
        taking: "asyncio.Future[Taken]",
    ) -> None:
        if answer.done():  # nobody waits any more
            return
        try:
            answer.set_result(self._settled(taking, told))
        except asyncio.CancelledError:
            answer.cancel()
        except Exception as error:  # noqa: BLE001 - a fault of ours: who waits answers 500
            answer.set_exception(error)

    def _settled(self, taking: "asyncio.Future[Taken]", told: dict[str, object]) -> Answer:
        try:
            taken = taking.result()
        except LedgerUnavailableError:
            gone = _RefusedError(503, "Redis is out of reach: deliver it again")
            return self._refuse(gone, told)
        if isinstance(taken.asked, Ignored):
            return self._answer("ignored", 200, taken.asked.reason, told)
        told["asks"] = ",".join(ask.kind for ask in taken.asked)
        if not taken.is_new:
            return self._answer("duplicate", 200, "it was accepted before", told)
        return self._answer("accepted", 202, "", told)

    def _refuse(self, refused: _RefusedError, told: dict[str, object]) -> Answer:
        told["status"] = refused.status
        return self._answer("refused", refused.status, refused.reason, told)

    def _answer(self, outcome: str, status: int, reason: str, told: Mapping[str, object]) -> Answer:
        self._count(outcome)
        because = {"reason": reason} if reason else {}
        if not self._is_flushing:
            self._is_flushing = True
            asyncio.get_running_loop().call_soon(self._flush)
        self._log.soon(f"DELIVERY {outcome}", **told, **because)
        return Answer(status, _body_of(outcome, reason))

    def _flush(self) -> None:
        """The lines of one turn of the loop, in one write."""
        self._is_flushing = False
        self._log.flush()


@lru_cache(maxsize=64)
def _body_of(outcome: str, reason: str) -> bytes:
    because = {"reason": reason} if reason else {}
    return json.dumps({"outcome": outcome, **because}).encode()


def _told(headers: Mapping[str, str]) -> dict[str, object]:
    return {name: headers.get(f"x-github-{header}", "") for name, header in _TOLD}


def _signature(headers: Mapping[str, str]) -> str:
    """The hexadecimal digits."""
    signature = headers.get("x-hub-signature-256", "")
    if not _SIGNATURE.fullmatch(signature):
        raise _RefusedError(401, "X-Hub-Signature-256 is missing or malformed")
    return signature.removeprefix("sha256=")


def _named(headers: Mapping[str, str]) -> tuple[str, str]:
    """Event and id."""
    event, guid = headers.get("x-github-event", ""), headers.get("x-github-delivery", "")
    if not _EVENT.fullmatch(event):
        raise _RefusedError(400, "X-GitHub-Event is missing or malformed")
    if not _GUID.fullmatch(guid):
        raise _RefusedError(400, "X-GitHub-Delivery is missing or malformed")
    return event, guid


def _described(payload: Mapping[str, Any]) -> dict[str, object]:
    named = {
        "action": text_at(payload, "action"),
        "sender": text_at(payload, "sender", "login"),
        "repository": text_at(payload, "repository", "full_name"),
    }
    return {name: value for name, value in named.items() if value}


def _payload(body: bytes) -> Mapping[str, Any]:
    try:
        payload = _parsed(body)
    except (ValueError, RecursionError):
        hint = " (set the webhook's content type to application/json)"
        form = hint if body.startswith(b"payload=") else ""
        raise _RefusedError(400, f"the body is not JSON{form}") from None
    if not isinstance(payload, dict):
        raise _RefusedError(400, "the body is JSON, but no object")
    return payload


def _parsed(body: bytes) -> Any:
    """The quick parser makes only what is read. It refuses half of a surrogate pair and a byte
    order mark: the other one reads them."""
    try:
        return _PARSER.validate_json(body)
    except ValueError:
        return json.loads(body)


def _shape(read: Mapping[str, Any]) -> CoreSchema:
    """An object with what is read of it, or any other value; an empty mapping is any value."""
    if not read:
        return any_schema()
    fields = {name: typed_dict_field(_shape(of), required=False) for name, of in read.items()}
    known = typed_dict_schema(fields, extra_behavior="ignore")
    return union_schema([known, any_schema()], mode="left_to_right")


_PARSER: Final = SchemaValidator(_shape(READ))


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
        raise _late() from None
    except ClientDisconnect:
        raise _closed() from None
    except HTTPException:
        raise _too_large() from None
    if too_large:
        raise _too_large()
    return bytes(kept)


def _late() -> _RefusedError:
    return _RefusedError(408, "the body did not arrive in time")


def _closed() -> _RefusedError:
    return _RefusedError(400, "the connection was closed within the body")


def _too_large() -> _RefusedError:
    return _RefusedError(413, "the body is larger than 25 MiB")
