"""Made-up nights of a review: lines of its session, its state, and the promotion of both."""

from typing import Any

from ledger.memory import Promotion, Recall, ReviewState, StagedSession, TranscriptLine
from ledger.records import Lease
from tests.ledger.places import AnyLedger
from tests.ledger.samples import NOON, REPOSITORY, run
from triage.plan import Cost, Plan

SESSION = "6f1c2b5e-0000-4000-8000-000000000001"
OTHER_SESSION = "6f1c2b5e-0000-4000-8000-000000000002"
COLD = StagedSession(REPOSITORY, "cold")


def lines(*words: str, session: str = SESSION) -> list[TranscriptLine]:
    """One line for each word."""
    return [TranscriptLine("-work", session, "", f'{{"word":"{word}"}}') for word in words]


def words(found: list[TranscriptLine] | None) -> str | None:
    """The words of lines, in one."""
    return None if found is None else "".join(line.json[9:-2] for line in found)


def night(window: int) -> str:
    """A run of its own window."""
    return f"daily-issue-triage:R{REPOSITORY}:2026-10-{window:02}:p0000000a"


def resumed(length: int, name: str = "warm", session: str = SESSION) -> StagedSession:
    """A copy of so many lines of the session."""
    return StagedSession(REPOSITORY, name, session, length)


def state(lease: Lease, **fields: Any) -> ReviewState:
    """What a run leaves, without a session."""
    left = ReviewState(
        repository_id=REPOSITORY,
        review_id=f"review-{lease.fence}",
        run=lease.dedupe_key,
        window="2026-10-01",
        fence=lease.fence,
        at=NOON,
        commit="c" * 40,
        files=3,
        files_digest="d" * 64,
        version=1,
        review='{"findings": []}',
    )
    return left.model_copy(update=fields)


def recall(lease: Lease, recalled: int = 1) -> Recall:
    """What a run recalled of two findings."""
    return Recall(
        run=lease.dedupe_key,
        at=NOON,
        same_session=True,
        prior_review_id_echoed=True,
        recalled=recalled,
        prior=2,
        current=2,
    )


def promotion(
    lease: Lease, copy: StagedSession | None, length: int = 0, **fields: Any
) -> Promotion:
    """The promotion of a copy that makes the session so long."""
    told = fields.pop("recall", None)
    session = None if copy is None else copy.session_id or SESSION
    given = {"session_id": session, "session_length": length, **fields}
    return Promotion(state(lease, **given), copy, told)


def plan(turns: int = 1) -> Plan:
    """A plan that can be told from others."""
    return Plan(decisions=(), held=(), cost=Cost(turns=turns))


async def begin(ledger: AnyLedger, window: int) -> Lease:
    """The lease of a run of another window, saved."""
    key = night(window)
    lease = await ledger.leases.acquire(key, "worker-1", f"token {window}")
    assert lease is not None
    await ledger.runs.save(lease, run(key))
    return lease


async def first_night(ledger: AnyLedger, *said: str) -> Lease:
    """A cold run that is promoted, with these lines."""
    lease = await begin(ledger, 1)
    await ledger.sessions.append(COLD, lines(*said), after=0)
    await ledger.runs.save_plan(lease, plan(), staged=promotion(lease, COLD, len(said)))
    return lease


async def kept_words(ledger: AnyLedger, session: str = SESSION) -> str:
    """All that is kept of a session."""
    size = await ledger.sessions.kept(REPOSITORY, session)
    if size.lines == 0:
        return ""
    return words(await ledger.sessions.read(resumed(size.lines, "look", session))) or ""
