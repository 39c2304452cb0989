"""``POST /cron/{job_key}``: a scheduler of one's own may ring, instead of the clock or beside it.

It enqueues the same jobs as the clock, with the same ids, for all repositories that are installed
(one whose policy has no such job costs a look at its policy), or for one
(``?repository=owner/name``); for the newest window that is due, or for one that is named
(``?window=2026-09-16``). Asking twice is harmless.

=====  ===========================================================================================
 202   ``{"enqueued": n, "known": m}``: n jobs were new, m repositories are asked for
 400   a window that has not the form of one, that no schedule has, or that is not due yet
 401   no or a wrong ``Authorization: Bearer CRON_SECRET``, or none is set
 404   no such job, or no such repository in the ledger
 503   Redis is out of reach: nothing, or not all, was enqueued; ask again
=====  ===========================================================================================
"""

import hmac
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse

from bot.enqueue import Link, window_job
from ledger.errors import LedgerUnavailableError
from ledger.records import RepositoryRecord
from process.log import Log
from triage.identifiers import SCHEDULED, JobKey
from triage.window import window_named

JOBS: Final = SCHEDULED
"""The jobs that have windows; the others are started by what happens on GitHub."""

_WINDOW = re.compile(r"\d{4}-(\d{2}-\d{2}(T\d{2})?|W\d{2})", re.ASCII)
_WINDOW_FORMS = "2026-09-16, 2026-09-16T14 or 2026-W38"


class Cron:
    """The route. ``now`` dates the jobs; ``slot_seconds`` is how long two requests are one."""

    def __init__(
        self,
        link: Link,
        secret: str | None,
        log: Log,
        now: Callable[[], datetime],
        *,
        slot_seconds: int,
    ) -> None:
        self._link = link
        self._secret = secret
        self._log = log
        self._now = now
        self._slot_seconds = slot_seconds

    async def ring(self, request: Request) -> JSONResponse:
        """Ensure the windows of one job."""
        told = {"job": request.path_params["job_key"], **_query(request)}
        try:
            self._authorise(request.headers.get("authorization", ""))
            job = _job(request.path_params["job_key"])
            known, enqueued = await self._ensure(job, **_query(request))
        except _RefusedError as refused:
            self._log("CRON refused", **told, status=refused.status, reason=refused.reason)
            said = {"outcome": "refused", "reason": refused.reason}
            headers = {"www-authenticate": "Bearer"} if refused.status == 401 else None
            return JSONResponse(said, refused.status, headers=headers)
        self._log("CRON accepted", **told, known=known, enqueued=enqueued)
        counted = {"known": known, "enqueued": enqueued}
        return JSONResponse({"outcome": "accepted", **counted}, 202)

    def _authorise(self, authorization: str) -> None:
        if self._secret is None:
            raise _RefusedError(401, "CRON_SECRET is not set: this way is closed")
        scheme, _, given = authorization.partition(" ")
        sent = given.strip().encode("latin-1", "replace")
        if not hmac.compare_digest(sent, self._secret.encode()) or scheme.lower() != "bearer":
            raise _RefusedError(401, "Authorization: Bearer CRON_SECRET is missing or wrong")

    async def _ensure(
        self, job: JobKey, *, repository: str | None = None, window: str | None = None
    ) -> tuple[int, int]:
        now = self._now()
        try:
            records = await self._records(repository)
            if window is not None:
                records = _with_window(job, records, window, now)
            jobs = [
                window_job(job, record.id, window, now=now, slot_seconds=self._slot_seconds)
                for record in records
            ]
            return len(jobs), await to_thread.run_sync(self._link.queue.put, jobs)
        except LedgerUnavailableError:
            raise _RefusedError(503, "Redis is out of reach: ask again") from None

    async def _records(self, repository: str | None) -> list[RepositoryRecord]:
        repositories = self._link.ledger.repositories
        if repository is None:
            return [record for record in await repositories.all() if record.active]
        record = await repositories.named(repository)
        if record is None or not record.active:
            raise _RefusedError(404, "the ledger has no such repository, or it was removed")
        return [record]


class _RefusedError(Exception):
    """The request is not obeyed; ``status`` and ``reason`` are the answer."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


def _query(request: Request) -> dict[str, str]:
    given = request.query_params
    return {name: given[name] for name in ("window", "repository") if name in given}


def _job(name: str) -> JobKey:
    for job in JOBS:
        if job == name:
            return job
    raise _RefusedError(404, f"no such job with windows; there is {', '.join(JOBS)}")


def _with_window(
    job: JobKey, records: Sequence[RepositoryRecord], window: str, now: datetime
) -> list[RepositoryRecord]:
    """Those where the job's schedule has the window, and has it now; where the job is not known
    yet, the worker reads the policy. Refuses where there are repositories and none has it."""
    if not _WINDOW.fullmatch(window):
        raise _RefusedError(400, f"a window looks like {_WINDOW_FORMS}")
    problems = [(record, _problem(job, record, window, now)) for record in records]
    fitting = [record for record, problem in problems if not problem]
    if problems and not fitting:
        raise _RefusedError(400, problems[0][1])
    return fitting


def _problem(job: JobKey, record: RepositoryRecord, window: str, now: datetime) -> str:
    policy = record.policy_of(job)
    if policy is None:
        return ""
    try:
        due_at = window_named(policy.schedule.schedule(), window).due_at
    except ValueError as error:
        return str(error)
    return "" if due_at <= now else f"window {window} is not due before {due_at.isoformat()}"
