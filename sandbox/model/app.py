"""The model over HTTP: ``/v1/messages``, its ``/count_tokens``, and ``/_sandbox/model``."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from sandbox.model.answer import CHARACTERS_PER_TOKEN, answer_to
from sandbox.model.behaviour import ERRORS, Misbehaviour, Order
from sandbox.model.record import RequestRecord
from sandbox.model.state import BadOrderError, ModelState
from sandbox.model.stream import Answer, event, events, message
from sandbox.model.task import read_task

PING_SECONDS = 0.2


class StreamCutError(Exception):
    """Ends a response in the middle, so that the server drops the connection."""


def model_app(state: ModelState) -> Starlette:
    """The application over a state that Python and the control address share."""
    app = Starlette(
        routes=[
            Route("/v1/messages", _messages, methods=["POST"]),
            Route("/v1/messages/count_tokens", _count_tokens, methods=["POST"]),
            Route("/_sandbox/model", _control, methods=["GET", "POST", "DELETE"]),
            Route("/{path:path}", _anything, methods=["GET", "HEAD", "POST"]),
        ]
    )
    app.state.model = state
    return app


async def _messages(request: Request) -> Response:
    state: ModelState = request.app.state.model
    raw = await request.body()
    try:
        body = json.loads(raw)
    except ValueError:
        return _error(400, "invalid_request_error")
    task = read_task(body)
    record = _record(request, raw, body)
    record.issues = len(task.issues) if task else 0
    order = state.admit(record)
    if order and order.kind in ERRORS:
        return _refusal(order, record)
    if order and order.kind is Misbehaviour.HANG:
        await _until_disconnect(request)
        return Response(status_code=503)
    answer = answer_to(body, task, order)
    record.status = 200
    if not body.get("stream"):
        content = message(answer)
        record.bytes_out = len(json.dumps(content))
        return JSONResponse(content)
    return StreamingResponse(
        _counted(_streamed(answer, order, state), record),
        media_type="text/event-stream",
        headers={"request-id": answer.id.replace("msg_", "req_")},
    )


async def _streamed(answer: Answer, order: Order | None, state: ModelState) -> AsyncIterator[bytes]:
    parts = list(events(answer))
    if order is None or order.kind not in (
        Misbehaviour.CUT_STREAM,
        Misbehaviour.STALL,
        Misbehaviour.HANG_WITH_PINGS,
    ):
        for part in parts:
            yield part
        return
    for part in parts[: len(parts) // 2]:
        yield part
    if order.kind is Misbehaviour.CUT_STREAM:
        raise StreamCutError
    while not state.closing:
        if order.kind is Misbehaviour.HANG_WITH_PINGS:
            yield event("ping")
        await asyncio.sleep(PING_SECONDS)


async def _counted(parts: AsyncIterator[bytes], record: RequestRecord) -> AsyncIterator[bytes]:
    async for part in parts:
        record.bytes_out += len(part)
        yield part


async def _until_disconnect(request: Request) -> None:
    """The server disconnects everybody when it stops."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _count_tokens(request: Request) -> Response:
    raw = await request.body()
    return JSONResponse({"input_tokens": len(raw) // CHARACTERS_PER_TOKEN})


async def _control(request: Request) -> Response:
    """GET shows orders, sums and log; POST adds an order; DELETE forgets everything."""
    state: ModelState = request.app.state.model
    if request.method == "POST":
        try:
            state.order(json.loads(await request.body()))
        except (BadOrderError, ValueError) as error:
            return JSONResponse({"error": str(error)}, status_code=400)
    if request.method == "DELETE":
        state.reset()
    return JSONResponse(state.public())


async def _anything(request: Request) -> Response:
    """Clients look whether the API is there before they use it."""
    state: ModelState = request.app.state.model
    state.note(_record(request, await request.body(), {}))
    return JSONResponse({}, status_code=200)


def _record(request: Request, raw: bytes, body: dict[str, Any]) -> RequestRecord:
    session = request.headers.get("x-claude-code-session-id", "")
    return RequestRecord(session, request.method, request.url.path, len(raw), body=body)


def _refusal(order: Order, record: RequestRecord) -> Response:
    status, kind = ERRORS[order.kind]
    record.status = status
    headers = {} if order.retry_after is None else {"retry-after": str(order.retry_after)}
    return _error(status, kind, headers)


def _error(status: int, kind: str, headers: dict[str, str] | None = None) -> Response:
    error = {"type": kind, "message": f"The sandbox was told to answer {status}."}
    return JSONResponse({"type": "error", "error": error}, status_code=status, headers=headers)
