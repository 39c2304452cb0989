"""Writes to GitHub: each request once, tested against its claim, within a hard total time.

Invariant: what is not plainly done or plainly refused is Unknown. Whether a request may go out
again is decided by reading back, never here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from urllib.parse import quote

from pydantic import ValidationError

from ledger.records import Claim
from triage.contract import RunInputs
from triage.identifiers import EffectKind
from worker.github import scope
from worker.github.auth import Authority, NoToken
from worker.github.connection import Answer, Connection, RequestKind
from worker.github.failures import LIMIT_WAIT_SECONDS, REFUSALS, NoAnswer, Reading, Verdict
from worker.github.shapes import CommentShape, IssueShape, LabelShape
from worker.ports import Clock, Landed, Late, Outcome, Place, Refusal, Refused, Unknown

REACTIONS: Final = frozenset({"+1", "confused", "eyes"})


class RestWriter:
    """``worker.ports.GitHubWriter`` over GitHub's REST API.

    ``may_write`` is False where the credential allows no more than to observe. ``within`` gives a
    writer that also keeps to the write scope of one run.
    """

    def __init__(
        self,
        connection: Connection,
        authority: Authority,
        clock: Clock,
        *,
        may_write: bool = True,
        inputs: RunInputs | None = None,
    ) -> None:
        self._connection = connection
        self._authority = authority
        self._clock = clock
        self._may_write = may_write
        self._inputs = inputs

    def within(self, inputs: RunInputs) -> "RestWriter":
        """A writer for one run: it refuses what is outside of the run's mode and policy."""
        return RestWriter(
            self._connection,
            self._authority,
            self._clock,
            may_write=self._may_write,
            inputs=inputs,
        )

    async def create_comment(self, claim: Claim, place: Place, number: int, body: str) -> Outcome:
        """201 with an id."""
        scope.check_issue(claim, EffectKind.COMMENT, number)
        scope.check_body(claim, body)
        deed = _Deed("POST", f"issues/{number}/comments", _comment_made(201), {"body": body})
        return await self._write(claim, place, deed)

    async def edit_comment(self, claim: Claim, place: Place, comment: int, body: str) -> Outcome:
        """200 with the intended body; another body is Unknown, to be read back."""
        scope.check_kind(claim, EffectKind.COMMENT)
        scope.check_own(claim, comment)
        scope.check_body(claim, body)
        accept = _comment_made(200, body)
        deed = _Deed("PATCH", f"issues/comments/{comment}", accept, {"body": body})
        return await self._write(claim, place, deed)

    async def delete_comment(self, claim: Claim, place: Place, comment: int) -> Outcome:
        """204. Only an own duplicate, which the claim names."""
        scope.check_kind(claim, EffectKind.REMOVAL)
        scope.check_own(claim, comment)
        deed = _Deed("DELETE", f"issues/comments/{comment}", _deleted)
        return await self._write(claim, place, deed)

    async def add_labels(
        self, claim: Claim, place: Place, number: int, labels: Sequence[str]
    ) -> Outcome:
        """200 with the labels in place; a list without one of them (GitHub may only have noted it
        as a suggestion) is Unknown, to be read back. Never replaces the set."""
        scope.check_issue(claim, EffectKind.LABELS, number)
        scope.check_labels(claim, labels)
        accept, content = _labels_now(present=labels), {"labels": list(labels)}
        deed = _Deed("POST", f"issues/{number}/labels", accept, content, labels=labels)
        return await self._write(claim, place, deed)

    async def remove_label(self, claim: Claim, place: Place, number: int, label: str) -> Outcome:
        """200 with the label gone. 404 says that label or issue are not there: GONE."""
        scope.check_issue(claim, EffectKind.UNLABEL, number)
        scope.check_labels(claim, [label])
        path = f"issues/{number}/labels/{quote(label, safe='')}"
        deed = _Deed("DELETE", path, _labels_now(absent=label), labels=[label])
        return await self._write(claim, place, deed)

    async def create_issue(self, claim: Claim, place: Place, title: str, body: str) -> Outcome:
        """201 with an id: the summary."""
        scope.check_issue(claim, EffectKind.SUMMARY, 0)
        scope.check_body(claim, body)
        deed = _Deed("POST", "issues", _issue_made(201), {"title": title, "body": body})
        return await self._write(claim, place, deed)

    async def edit_issue(
        self, claim: Claim, place: Place, number: int, body: str, *, close: bool = False
    ) -> Outcome:
        """200 with the intended body; ``close`` for an own duplicate, which loses its marker."""
        content = {"body": body}
        if close:
            scope.check_issue(claim, EffectKind.REMOVAL, number)
            scope.check_unmarked(body)
            content |= {"state": "closed", "state_reason": "not_planned"}
        else:
            scope.check_issue(claim, EffectKind.SUMMARY, number)
            scope.check_body(claim, body)
        accept = _issue_made(200, body, state="closed" if close else None)
        deed = _Deed("PATCH", f"issues/{number}", accept, content)
        return await self._write(claim, place, deed)

    async def react(self, place: Place, comment_id: int, content: str) -> bool:
        """Add a reaction to a comment: idempotent at GitHub, no lease. False where refused.

        Also False where no answer came: a reaction is a courtesy, and nothing hangs on it.
        """
        if not self._may_write:
            raise scope.OutOfScopeError("observe writes nothing, not even a reaction")
        if self._inputs is not None:
            scope.check_reaction(self._inputs)
        if content not in REACTIONS:
            raise scope.OutOfScopeError(f"{content!r} is no reaction of the bot's")
        path = _at(place, f"issues/comments/{comment_id}/reactions")
        try:
            authorization = await self._authority.header(place.installation)
            answer = await self._send_once(path, "POST", authorization, {"content": content})
        except (NoToken, NoAnswer):
            return False
        if answer.reading.verdict is Verdict.UNAUTHORISED:
            self._authority.evict(place.installation, authorization)
        return answer.reading.verdict is Verdict.DONE

    async def _write(self, claim: Claim, place: Place, deed: "_Deed") -> Outcome:
        self._check(claim, place, deed)
        path = _at(place, deed.path)
        try:
            authorization = await self._authority.header(place.installation)
        except (NoToken, NoAnswer) as error:
            return self._without_token(error)
        try:
            if self._clock.monotonic() >= claim.deadline:
                return Late()
            answer = await self._send_once(path, deed.method, authorization, deed.content)
        except NoAnswer as error:
            return Unknown(str(error))
        if answer.reading.verdict is Verdict.UNAUTHORISED:
            self._authority.evict(place.installation, authorization)
        return _outcome(answer, deed.accept)

    def _check(self, claim: Claim, place: Place, deed: "_Deed") -> None:
        if not self._may_write:
            raise scope.OutOfScopeError("this credential may only observe")
        scope.check_place(claim, place)
        if self._inputs is not None:
            scope.check_run(self._inputs, claim, deed.labels)

    async def _send_once(
        self, path: str, method: str, authorization: str, content: Mapping[str, Any] | None
    ) -> Answer:
        return await self._connection.send_once(
            RequestKind.WRITE, method, path, authorization=authorization, content=content
        )

    def _without_token(self, error: NoToken | NoAnswer) -> Outcome:
        """Nothing was sent, for want of a token."""
        later = self._clock.now() + timedelta(seconds=LIMIT_WAIT_SECONDS)
        reading = error.reading if isinstance(error, NoToken) else None
        if reading is None or reading.verdict is Verdict.BROKEN:
            return Refused(Refusal.UNAUTHORISED, str(error), retry_at=later)
        return _refused(reading)


Accept = Callable[[Answer], Landed | None]
"""What an answer that is done acknowledges; None where it is not what was asked for."""


@dataclass(frozen=True, slots=True)
class _Deed:
    """One request: where it goes under the repository, what it says, what acknowledges it."""

    method: str
    path: str
    accept: Accept
    content: Mapping[str, Any] | None = None
    labels: Sequence[str] = ()


def _outcome(answer: Answer, accept: Accept) -> Outcome:
    if answer.reading.verdict is Verdict.BROKEN:
        return Unknown(answer.reading.detail)
    if answer.reading.verdict is not Verdict.DONE:
        return _refused(answer.reading)
    try:
        landed = accept(answer)
    except ValidationError:
        landed = None
    return landed or Unknown(f"{answer.status} without what was sent")


def _refused(reading: Reading) -> Refused:
    refusal, gone = REFUSALS[reading.verdict]
    return Refused(refusal, reading.detail, gone=gone, retry_at=reading.retry_at)


def _comment_made(status: int, body: str | None = None) -> Accept:
    def accept(answer: Answer) -> Landed | None:
        made = CommentShape.model_validate(answer.content)
        if answer.status != status or not (body is None or _same(made.body, body)):
            return None
        return Landed(github_id=made.id, issue=made.value().issue, url=made.html_url)

    return accept


def _issue_made(status: int, body: str | None = None, state: str | None = None) -> Accept:
    def accept(answer: Answer) -> Landed | None:
        made = IssueShape.model_validate(answer.content)
        if answer.status != status or not (body is None or _same(made.body, body)):
            return None
        if state is not None and made.state != state:
            return None
        return Landed(github_id=made.id, issue=made.number, url=made.html_url, labels=made.labels)

    return accept


def _labels_now(present: Sequence[str] = (), absent: str | None = None) -> Accept:
    """GitHub's label names differ by more than their case."""

    def accept(answer: Answer) -> Landed | None:
        if answer.status != 200 or not isinstance(answer.content, list):
            return None
        names = tuple(LabelShape.model_validate(item).name for item in answer.content)
        now = {name.casefold() for name in names}
        if not now.issuperset(name.casefold() for name in present):
            return None
        if absent is not None and absent.casefold() in now:
            return None
        return Landed(labels=names)

    return accept


def _deleted(answer: Answer) -> Landed | None:
    return Landed() if answer.status == 204 else None


def _same(there: str, intended: str) -> bool:
    """GitHub changes line ends and trailing white space."""
    return _lines(there) == _lines(intended)


def _lines(body: str) -> list[str]:
    return [line.rstrip() for line in body.replace("\r\n", "\n").strip().split("\n")]


def _at(place: Place, path: str) -> str:
    return f"repositories/{place.id}/{path}"
