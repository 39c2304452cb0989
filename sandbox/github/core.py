"""The sandbox GitHub: a request goes in, an outcome comes out; no sockets, no waiting.

The way of a request: route, identify the caller, see which faults strike it, then either refuse
it, or apply it (limits, access, handler), and turn the answer as the faults say.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from sandbox.github import git
from sandbox.github.access import check_access
from sandbox.github.auth import ANONYMOUS, Caller, identify
from sandbox.github.call import Call, redirect
from sandbox.github.clock import EPOCH, real_now
from sandbox.github.endpoints import ROUTES
from sandbox.github.faults import Armed, Fault, Faults, Struck, fault_at
from sandbox.github.history import FRESH, Sight
from sandbox.github.inspection import Inspection
from sandbox.github.limits import Limits, primary_limit, secondary_limit
from sandbox.github.people import person_acts
from sandbox.github.requests import SHORT, Logged, RequestLog, shorten
from sandbox.github.routing import Router, Target
from sandbox.github.webhooks import Webhooks
from sandbox.github.wire import (
    ApiError,
    Drop,
    Hang,
    Outcome,
    Request,
    Respond,
    not_found,
)

_ROUTER = Router([*ROUTES, *git.ROUTES])


@dataclass(slots=True)
class _Passage:
    """One request with all that is known of it."""

    request: Request
    entry: Logged
    target: Target
    caller: Caller
    refusal: ApiError | None  # why the caller could not be identified
    query: dict[str, str]
    struck: list[Armed]

    def first(self, *actions: str) -> Armed | None:
        return next((each for each in self.struck if each.fault.action in actions), None)

    def told(self, answer: Respond | None) -> Struck:
        return Struck(
            self.request.method,
            self.target.canonical,
            self.caller.who,
            self.request.body,
            answer,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Late:
    """A request that is still to land: at `due`, or (None) when it is told to."""

    due: datetime | None
    hang: Hang


class GitHub(Inspection):
    """The world, its API and its faults. Thread-safe; callbacks of faults run outside the lock."""

    def __init__(
        self,
        *,
        now: Callable[[], datetime] = real_now,
        signers_now: Callable[[], datetime] | None = None,
        base_url: str = "http://127.0.0.1",
        seed: int | None = None,
    ) -> None:
        super().__init__(now=now, signers_now=signers_now, base_url=base_url, seed=seed)
        self.limits = Limits()
        self.faults = Faults()
        self.log = RequestLog()
        self.webhooks = Webhooks(self)
        self.outbox = self.webhooks.outbox
        self._late: list[_Late] = []

    # Faults and time

    def fail(self, where: str, action: str, **options: object) -> Armed:
        """Arms a fault: `where` is `METHOD regex`; the words of `action` are in `faults`."""
        return self.arm(fault_at(where, action, **options))

    def arm(self, fault: Fault) -> Armed:
        with self.lock:
            return self.faults.add(fault)

    def move_clock(self, seconds: float) -> datetime:
        """Moves the world's time forwards; late requests that fall due land."""
        with self.lock:
            now = self.clock.move(seconds)
        self.land_late(due_only=True)
        return now

    def land_late(self, *, due_only: bool = False) -> int:
        """Lets late requests happen now; says how many did."""
        ripe: list[_Late] = []
        with self.lock:
            now = self.clock.now()
            waiting = [each for each in self._late if not each.hang.landed]
            self._late = []
            for each in waiting:
                is_due = each.due is not None and each.due <= now
                (self._late if due_only and not is_due else ripe).append(each)
        for each in ripe:
            each.hang.resume()
        return len(ripe)

    def catch_up(self) -> None:
        if self._late:
            self.land_late(due_only=True)

    # A request

    def handle(self, request: Request) -> Outcome:
        """Carries out one request, as far as no waiting is needed."""
        self.catch_up()
        with self.lock:
            passage = self._receive(request)
        return self._pass(passage)

    def _receive(self, request: Request) -> _Passage:
        target = _ROUTER.resolve(self, request.method, request.path)
        query = request.parameters()
        caller, refusal = ANONYMOUS, None
        try:
            caller = identify(self, request)
        except ApiError as refused:
            refusal = refused
        struck = (
            self.faults.strike(
                request.method, target.canonical, target.view(query), caller.who, request.body
            )
            if self.faults.armed
            else []
        )
        entry = self.log.open(
            time=self.now_stamp(),
            method=request.method,
            path=request.path,
            canonical=target.canonical,
            query=request.query if isinstance(request.query, str) else urlencode(query),
            who=caller.who,
            body=request.body,
            by_id=target.by_id,
        )
        if struck:
            entry.fault = "; ".join(each.fault.action for each in struck)
        return _Passage(request, entry, target, caller, refusal, query, struck)

    def _pass(self, passage: _Passage) -> Outcome:
        if not passage.struck:
            return self._finish(passage, self._apply(passage))
        refusal = self._refuse(passage)
        if refusal is not None:
            return refusal
        hang = passage.first("hang before applying")
        if hang is not None:
            passage.entry.status = "hang"
            return self._hang(hang.fault.seconds, lambda: self._strike_and_apply(passage))
        return self._strike_and_apply(passage)

    def _refuse(self, passage: _Passage) -> Outcome | None:
        """What the first refusing fault answers; the request is not applied, or only later."""
        for armed in passage.struck:
            fault = armed.fault
            if fault.is_refusal:
                return self._finish(
                    passage, self._with_limits(passage, _refusal(self, passage, fault))
                )
            if fault.turned is None or fault.turned[0] == "first":
                continue
            applies, what = fault.turned
            if applies == "later":
                self._hang(fault.seconds, lambda: self._act_and_apply(passage))
            return self._turn(passage, what, fault.message)
        return None

    def _strike_and_apply(self, passage: _Passage) -> Outcome:
        answer = self._act_and_apply(passage)
        hang = passage.first("hang after applying")
        if hang is None:
            return self._told(passage, answer)
        passage.entry.status = "hang"
        return self._hang(hang.fault.seconds, lambda: self._told(passage, answer))

    def _told(self, passage: _Passage, answer: Respond) -> Outcome:
        """What the client gets to know of a request that was carried out."""
        for armed in passage.struck:
            turned = armed.fault.turned
            if turned is not None:
                return self._turn(passage, turned[1], armed.fault.message)
        return self._finish(passage, answer)

    def _act_and_apply(self, passage: _Passage) -> Respond:
        self._step_in(passage, "before applying", None)
        answer = self._apply(passage)
        self._step_in(passage, "after applying", answer)
        return answer

    def _step_in(self, passage: _Passage, when: str, answer: Respond | None) -> None:
        """People act and callbacks run, in the order in which they were armed, without the lock."""
        for armed in passage.struck:
            fault = armed.fault
            if fault.action == f"act {when}" and fault.act is not None:
                if callable(fault.act):
                    fault.act(passage.told(answer))
                else:
                    person_acts(self, fault.act, passage.told(answer))
            elif fault.action == f"call {when}" and fault.call is not None:
                fault.call(passage.told(answer))

    def _hang(self, seconds: float | None, then: Callable[[], Outcome]) -> Hang:
        """It lands when its time has come, even if nobody waits for it any more."""
        hang = Hang(seconds, then)
        due = None if seconds is None else self.clock.now() + timedelta(seconds=seconds)
        with self.lock:
            self._late.append(_Late(due, hang))
        return hang

    def _turn(self, passage: _Passage, what: str, message: str) -> Outcome:
        if what == "drop":
            passage.entry.status = "drop"
            return Drop()
        return self._finish(passage, ApiError(int(what), message).answer())

    # The answer

    def _apply(self, passage: _Passage) -> Respond:
        """The request without its faults. Writes count as applied when they succeed."""
        with self.lock:
            answer = self._answer(passage)
            route = passage.target.route
            reads = passage.request.method == "GET" or (route is not None and route.reads)
            if not reads and answer.status < 300:
                passage.entry.applied = True
            if answer.status == 200 and passage.request.method == "GET":
                answer = self._conditional(passage, answer)
            return self._with_limits(passage, answer)

    def _answer(self, passage: _Passage) -> Respond:
        request, target, route = passage.request, passage.target, passage.target.route
        call = Call(
            self,
            self.limits,
            request,
            passage.caller,
            target.params,
            passage.query,
            target.rest,
            target.repository,
            self._sight(passage),
            passage.first("suggest") is not None,
        )
        try:
            if passage.refusal is not None:
                raise passage.refusal
            self.limits.admit(
                passage.caller.limit_key,
                request.method,
                self.clock.now(),
                free=route is not None and route.free,
            )
            if target.renamed:
                check_renamed(call)
            if route is None or (route.in_repository and target.repository is None):
                raise not_found()
            check_access(call, route)
            return route.handler(call)
        except ApiError as refused:
            return refused.answer()

    def _sight(self, passage: _Passage) -> Sight:
        armed = passage.first("stale", "flap") if passage.request.method == "GET" else None
        return FRESH if armed is None else armed.sight(self.clock.now())

    def _conditional(self, passage: _Passage, answer: Respond) -> Respond:
        tag = f'W/"{hashlib.sha1(answer.body).hexdigest()}"'
        headers = {
            **answer.headers,
            "etag": tag,
            "cache-control": "private, max-age=60, s-maxage=60",
        }
        if tag in passage.request.header("if-none-match"):
            self.limits.refund(passage.caller.limit_key, self.clock.now())
            return Respond(304, {k: v for k, v in headers.items() if k != "content-type"})
        return Respond(200, headers, answer.body)

    def _with_limits(self, passage: _Passage, answer: Respond) -> Respond:
        now = self.clock.now()
        headers = {
            "x-github-request-id": f"{passage.entry.n:04X}:{int((now - EPOCH).total_seconds()):X}",
            "x-github-media-type": "github.v3; format=json",
            "x-github-api-version-selected": "2026-03-10",
            **self.limits.headers(passage.caller.limit_key, now),
            **answer.headers,
        }
        return Respond(answer.status, headers, answer.body)

    def _finish(self, passage: _Passage, answer: Respond) -> Respond:
        passage.entry.status = answer.status
        passage.entry.answer = shorten(answer.body[: SHORT + 1])
        return answer


def check_renamed(call: Call) -> None:
    """A former name answers 301 to the repository's id. Raises it."""
    raise redirect(call, f"/repositories/{call.repository.id}{call.rest}")


def _refusal(github: GitHub, passage: _Passage, fault: Fault) -> Respond:
    if fault.action == "401":
        return ApiError(401, "Bad credentials").answer()
    if fault.action == "403 primary":
        seconds = 60.0 if fault.seconds is None else fault.seconds
        reset = github.clock.now() + timedelta(seconds=seconds)
        return primary_limit(
            -int(-(reset - EPOCH).total_seconds() // 1), passage.caller.limit_key
        ).answer()
    return secondary_limit(fault.retry_after, 429 if fault.action == "429" else 403).answer()
