"""What a story of reviews needs: the policy, and what must hold of the page and of what is
remembered."""

import json
from datetime import timedelta

from ledger.records import LEDGER
from sandbox.github.seen import SeenIssue
from tests.simulation.memory.sessions import session
from tests.simulation.virtual import START
from tests.simulation.world import BOT, REPOSITORY, REPOSITORY_ID, World
from triage.contract import Status
from triage.identifiers import JobKey
from worker import recovery


def review_file(**settings: object) -> str:
    """A policy with the review alone, whose window fell due some hours ago."""
    return json.dumps({"jobs": {"nightly-repo-review": review_settings(**settings)}})


def review_settings(**settings: object) -> dict[str, object]:
    """The review's part of a policy."""
    due = START - timedelta(hours=6)
    schedule = {"every": "daily", "at": f"{due:%H}:00", "timezone": "UTC"}
    return {"schedule": schedule, "mode": "comment", **settings}


def commit(w: World, name: str, text: str = "it divides by zero") -> None:
    """Somebody pushes a fault."""
    w.github.put_file(REPOSITORY, name, f"FAULT: {text}\n")


def pages(w: World) -> list[SeenIssue]:
    """The bot's issues."""
    return [issue for issue in w.github.issues(REPOSITORY) if issue.author == BOT]


def page(w: World) -> SeenIssue:
    """The one."""
    [issue] = pages(w)
    return issue


async def ends(w: World) -> list[Status]:
    """How the reviews ended, oldest first."""
    return [run.status for run in await w.runs() if run.key.job is JobKey.REVIEW]


async def reasons(w: World) -> list[str]:
    """Why the newest run's page was not written; empty where it was."""
    return [effect.reason for effect in (await w.runs())[-1].effects]


async def found_lost(w: World) -> None:
    """The ledger is gone, and the clock notices."""
    await w.lose_ledger()
    await recovery.recover(LEDGER, w.ports())


async def check_reviews(w: World, *, incidents: int = 0, forgotten: bool = False) -> None:
    """One issue at most, one edit of it for each run, and nothing remembered of a plan that does
    not stand. ``incidents``: so many duplicates were made, and closed; ``forgotten``: the ledger
    was lost, and with it the runs."""
    runs = [run for run in await w.runs() if run.key.job is JobKey.REVIEW]
    if not forgotten:
        edits = [item for item in _page_writes(w) if item == "PATCH"]
        assert len(edits) <= len(runs) + incidents, f"{len(edits)} edits by {len(runs)} runs"
        assert _page_writes(w).count("POST") <= 1 + incidents, "the issue was made twice"
    state = await w.ledger.reviews.last(REPOSITORY_ID)
    if state is None:
        return
    plan = await w.ledger.runs.plan(state.run)
    assert plan is not None, "a review is remembered whose plan does not stand"
    assert plan.review is not None
    assert plan.review.review_id == state.review_id, "it is another plan's"
    if state.session_id is None:
        return
    lines = session(w.server, REPOSITORY_ID, state.session_id)[: state.session_length]
    plans = [await w.ledger.runs.plan(run.inputs.dedupe_key) for run in runs]
    stand = {plan.review.review_id for plan in plans if plan is not None and plan.review}
    said = [json.loads(line.line.json)["review_id"] for line in lines]
    assert forgotten or set(said) <= stand, "the session holds an answer whose plan was not saved"
    assert len(said) == len(set(said)), "the session holds an answer twice"


def _page_writes(w: World) -> list[str]:
    """How the bot's writes to issues themselves were made, in order; those that applied."""
    return [
        item.method
        for item in w.github.requests(applied=True)
        if item.who == BOT and item.method in ("POST", "PATCH") and _is_of_issue(item.canonical)
    ]


def _is_of_issue(path: str) -> bool:
    parts = path.strip("/").split("/")
    return "issues" in parts and len(parts) - parts.index("issues") in (1, 2)
