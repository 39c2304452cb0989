"""The control address `/_sandbox/...`: faults, log, state, clock, people, redelivery."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any

from sandbox.github.core import GitHub
from sandbox.github.faults import Armed, Fault, Struck, fault_at
from sandbox.github.people import person_acts
from sandbox.github.wire import ApiError, Json, Request, Respond, respond_json

PREFIX = "/_sandbox/"
Post = Callable[[str, bytes], None]
_FIELDS = {each.name for each in dataclasses.fields(Fault)}


def control(github: GitHub, request: Request, post: Post) -> Respond:
    """`post` carries out the `call` of a fault armed from here: it waits for the answer."""
    try:
        return _dispatch(github, request, post)
    except ApiError as refused:
        return refused.answer()
    except (ValueError, TypeError, LookupError) as problem:
        return ApiError(422, str(problem)).answer()


def _dispatch(github: GitHub, request: Request, post: Post) -> Respond:
    name = request.path.removeprefix(PREFIX).strip("/").split("/")[0]
    match request.method:
        case "GET":
            return _look(github, request, name)
        case "DELETE":
            return _clear(github, request, name)
        case _:
            return _change(github, request, name, post)


def _look(github: GitHub, request: Request, name: str) -> Respond:
    match name:
        case "faults":
            return respond_json(200, [_armed(each) for each in github.faults.armed])
        case "requests":
            return _list_requests(github, request)
        case "state":
            return respond_json(200, github.state())
        case "webhooks":
            with github.lock:
                return respond_json(200, [each.json() for each in github.webhooks.deliveries])
        case "avatars":
            return _avatar(request)
        case _:
            raise not_here(request)


def _clear(github: GitHub, request: Request, name: str) -> Respond:
    with github.lock:
        match name:
            case "faults":
                github.faults.clear(_id_in(request))
            case "requests":
                github.log.clear()
            case _:
                raise not_here(request)
    return Respond(204)


def _change(github: GitHub, request: Request, name: str, post: Post) -> Respond:
    match name:
        case "faults":
            return _add_faults(github, request, post)
        case "clock":
            github.move_clock(float(_content(request)["seconds"]))
            return respond_json(200, {"now": github.now_stamp()})
        case "act":
            return respond_json(200, {"result": person_acts(github, _content(request))})
        case "land":
            return respond_json(200, {"landed": github.land_late()})
        case "limits":
            return _set_limits(github, request)
        case "webhooks":
            return _webhooks(github, request)
        case _:
            raise not_here(request)


def not_here(request: Request) -> ApiError:
    return ApiError(404, f"no {request.method} {request.path}")


def _content(request: Request) -> dict[str, Any]:
    content = json.loads(request.body or b"{}")
    if not isinstance(content, dict):
        raise TypeError("a JSON object is wanted")
    return content


def _add_faults(github: GitHub, request: Request, post: Post) -> Respond:
    """One fault or a list of them: the fields of `Fault`; `where` may stand for method and path;
    `call` is an address that gets a POST of what was struck.
    """
    content = json.loads(request.body)
    faults = [_fault(each, post) for each in (content if isinstance(content, list) else [content])]
    return respond_json(201, [_armed(github.arm(fault)) for fault in faults])


def _fault(content: Mapping[str, Any], post: Post) -> Fault:
    wishes = dict(content)
    unknown = set(wishes) - _FIELDS - {"where"}
    if unknown:
        raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
    address = wishes.get("call")
    if address is not None:
        wishes["call"] = _caller(str(address), post)
    default = f"{wishes.pop('method', '*')} {wishes.pop('path', '')}"
    return fault_at(str(wishes.pop("where", default)), str(wishes.pop("action", "")), **wishes)


def _caller(address: str, post: Post) -> Callable[[Struck], None]:
    def call(struck: Struck) -> None:
        answer = struck.answer
        told = {
            "method": struck.method,
            "path": struck.path,
            "who": struck.who,
            "status": None if answer is None else answer.status,
        }
        post(address, json.dumps(told).encode())

    return call


def _armed(armed: Armed) -> Json:
    shown: Json = {"id": armed.id, "matched": armed.matched, "struck": armed.struck}
    for name in sorted(_FIELDS):
        value = getattr(armed.fault, name)
        shown[name] = "function" if callable(value) else value
    return shown


def _list_requests(github: GitHub, request: Request) -> Respond:
    query = request.parameters()
    after = int(query.get("after", "0"))
    found = github.requests(query.get("method"), query.get("path"))
    return respond_json(200, [each.json() for each in found if each.n > after])


def _set_limits(github: GitHub, request: Request) -> Respond:
    content = _content(request)
    if content.pop("on", True):
        github.limits.switch_on(**content)
    else:
        github.limits.switch_off()
    return Respond(204)


def _webhooks(github: GitHub, request: Request) -> Respond:
    """`redeliver` {guid}, `ping` {app}, `hold` {on}."""
    content = _content(request)
    match request.path.rsplit("/", 1)[-1]:
        case "redeliver":
            return respond_json(202, github.webhooks.redeliver(str(content["guid"])).json())
        case "ping":
            return respond_json(202, {"guid": github.webhooks.ping(str(content["app"]))})
        case "hold":
            github.outbox.held = bool(content.get("on", True))
            return Respond(204)
        case _:
            raise not_here(request)


def _avatar(request: Request) -> Respond:
    hue = (_id_in(request) or 0) * 47 % 360
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8">'
        f'<rect width="8" height="8" fill="hsl({hue} 45% 45%)"/></svg>'
    )
    return Respond(200, {"content-type": "image/svg+xml"}, svg.encode())


def _id_in(request: Request) -> int | None:
    """The number at the end of `faults/3`, if there is one."""
    last = request.path.rstrip("/").rsplit("/", 1)[-1]
    return int(last) if last.isdigit() else None
