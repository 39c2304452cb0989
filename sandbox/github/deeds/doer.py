"""What every deed has in common: who does it, the state before, and the traces it leaves."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import datetime

from sandbox.github.clock import stamp
from sandbox.github.happenings import Happening
from sandbox.github.state import Account, App, Comment, Event, Issue, IssueState, Label
from sandbox.github.world import World


@dataclass(frozen=True, slots=True)
class Doer:
    """Who does it: an account, and the App it acts through, if any."""

    account: Account
    app: App | None = None


def current(issue: Issue) -> IssueState:
    """The state of an issue that is there. Raises LookupError if it is gone."""
    state = issue.history.latest
    if state is None:
        raise LookupError(f"{issue.repository.full_name}#{issue.number} is gone")
    return state


def change(issue: Issue, at: datetime, **changes: object) -> None:
    """A new state from `at` on; `updated_at` moves with it."""
    state = dataclasses.replace(current(issue), updated_at=stamp(at), **changes)  # type: ignore[arg-type]
    issue.history.put(at, state)


def record(
    world: World, doer: Doer, at: datetime, issue: Issue, kind: str, **detail: object
) -> None:
    event = Event(
        id=world.next_id("event"),
        at=at,
        event=kind,
        issue=issue,
        actor=doer.account,
        app=doer.app,
        created_at=stamp(at),
        detail=detail,
    )
    issue.repository.events.append(event)
    issue.repository.events_of[issue.number].append(event)


def tell(
    world: World,
    doer: Doer,
    action: str,
    issue: Issue,
    *,
    label: Label | None = None,
    changes: dict[str, object] | None = None,
    moved_to: Issue | None = None,
) -> None:
    """Of something that happened to an issue."""
    world.tell(
        Happening(
            "issues",
            action,
            doer.account,
            issue.repository,
            issue=issue,
            label=label,
            changes=changes,
            moved_to=moved_to,
        )
    )


def tell_of_comment(
    world: World,
    doer: Doer,
    action: str,
    comment: Comment,
    changes: dict[str, object] | None = None,
) -> None:
    issue = comment.issue
    world.tell(
        Happening(
            "issue_comment",
            action,
            doer.account,
            issue.repository,
            issue=issue,
            comment=comment,
            changes=changes,
        )
    )


def named(label: Label) -> dict[str, object]:
    """As an event names it."""
    return {"name": label.name, "color": label.color}
