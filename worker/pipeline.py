"""The way of a run: admission, snapshot, plan, effects, write, read back, classify, status.

This module alone knows the order, and holds every branch on it; the stages do not.

Invariant: no adapter is imported here; everything outside comes through the ports.
"""

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime

from ledger.records import Due, DueKind, Lease, Look
from triage.admission import (
    MOST_ATTEMPTS,
    Admission,
    Admit,
    Circumstances,
    LeaseState,
    Refuse,
    Reuse,
    RunState,
    Step,
    Stop,
    admit,
    state_of,
)
from triage.classification import MOST_CONTINUATIONS
from triage.contract import Attempt as AttemptRecord
from triage.contract import Resolution, RunInputs, RunRecord, Status
from triage.identifiers import Mode
from triage.readback import Hit
from worker.ports import (
    AgentFailed,
    CheckoutFailed,
    Gone,
    Place,
    Ports,
    ReadFailed,
)
from worker.stages.attempt import Attempt, Ending, ask_twice, heartbeat
from worker.stages.converge import STAGE
from worker.stages.crafts import craft_of
from worker.stages.drift import drift
from worker.stages.epoch import quiet_until
from worker.stages.intake import frozen_plan, frozen_snapshot, intend
from worker.stages.reading import read_back, settle_doubts
from worker.stages.resolving import carry_out
from worker.stages.sampling import Absent, look
from worker.stages.sending import StopSending, look_for_late_requests
from worker.stages.settling import RunReport, settle
from worker.stages.summing import sum_up, write_report
from worker.stages.writing import Writing, groups


@dataclass(frozen=True, slots=True)
class _Asked:
    """A person asks; a person has decided what is under review."""

    by_hand: bool
    resolved: bool


@dataclass(frozen=True, slots=True)
class Door:
    """What admission said, and on what."""

    look: Look
    admission: Admission


async def execute(
    inputs: RunInputs,
    ports: Ports,
    *,
    by_hand: bool = False,
    resolution: Resolution | None = None,
) -> RunReport:
    """Carry one run from its trigger to a status that GitHub confirms.

    Asking twice is harmless: at most one attempt is admitted at a time, and what is done is
    reused. ``resolution`` is a person's decision about a run in needs-review. Raises LeaseLost and
    LedgerUnavailableError, after which a later attempt takes over.
    """
    key = inputs.dedupe_key
    quiet = await quiet_until(ports)
    if quiet is not None and inputs.mode is not Mode.OBSERVE:
        reason = "the ledger is new or was lost, and GitHub is read first"
        return _refused(key, reason, quiet, ports)
    asked = _Asked(by_hand=by_hand, resolved=resolution is not None)
    door = await _door(key, ports, asked)
    if door.look.run is not None and door.look.run.stage == STAGE:
        door = Door(door.look, Stop("it removes a duplicate, and nothing else can be run of it"))
    if not isinstance(door.admission, Admit):
        return await _turned_away(door, key, ports, asked)
    token, leases = ports.clock.token(), ports.ledger.leases
    lease = await ask_twice(lambda: leases.acquire(key, ports.owner, token), ports.clock)
    if lease is None:
        view = (await ports.ledger.leases.view(key)).lease
        return _refused(key, "another worker holds the lease", view.until, ports)
    deadline = ports.clock.monotonic() + ports.timing.run.total_seconds()
    async with heartbeat(lease, ports, deadline) as given_up:
        inside = await _inside(door, lease, ports, asked)
        if not isinstance(inside.admission, Admit):
            given_up.set()
            await ports.ledger.leases.release(lease)
            return await _turned_away(inside, key, ports, asked)
        run, worn_out = _opened(inputs, inside, lease, ports)
        attempt = await _begin(run, lease, given_up, deadline, ports)
        attempt.worn_out = worn_out
        return await _attempt(attempt, resolution, taken_over=inside.admission.lock_delay)


async def _door(key: str, ports: Ports, asked: _Asked) -> Door:
    """Ask admission from outside. A run with a proof pending is looked at once."""
    view = await ports.ledger.leases.view(key)
    seen = False
    run = view.run
    if run is not None and not view.lease.live:
        pending = state_of(run, view.lease.now) is RunState.PROOF_PENDING
        seen = pending and await _seen(run, ports)
    return Door(view, _admit(view, ports, asked, seen=seen))


def _admit(view: Look, ports: Ports, asked: _Asked, *, seen: bool) -> Admission:
    circumstances = Circumstances(
        now=view.lease.now,
        lease_until=view.lease.until,
        lock_delay=ports.timing.lock_delay,
        by_hand=asked.by_hand,
        seen=seen,
        resolved=asked.resolved,
    )
    state = LeaseState.LIVE if view.lease.live else LeaseState.FREE
    return admit(view.run, state, circumstances)


async def _inside(door: Door, lease: Lease, ports: Ports, asked: _Asked) -> Door:
    """Ask again under the own lease: the run may have moved on since."""
    view = await ports.ledger.leases.view(lease.dedupe_key)
    before = door.look.run
    if view.run == before:
        return door
    circumstances = Circumstances(
        now=view.lease.now,
        lease_until=None,
        lock_delay=ports.timing.lock_delay,
        by_hand=asked.by_hand,
        resolved=asked.resolved,
    )
    return Door(view, admit(view.run, LeaseState.FREE, circumstances))


async def _seen(run: RunRecord, ports: Ports) -> bool:
    """Whether a read shows what is in doubt, or completes the proof of its absence."""
    place = Place(run.inputs.repository_id, run.inputs.repository, run.inputs.installation)
    records = await ports.ledger.effects.get([effect.effect_key for effect in run.effects])
    for effect in run.effects:
        if not effect.in_doubt:
            continue
        record = records.get(effect.effect_key)
        if record is not None and record.github_id is not None:
            return True
        try:
            sighting = await look(effect, record, place, ports)
        except ReadFailed:
            continue
        if isinstance(sighting, (Hit, Absent)):
            return True
    return False


async def _turned_away(door: Door, key: str, ports: Ports, asked: _Asked) -> RunReport:
    run = door.look.run
    match door.admission:
        case Refuse(reason, until):
            return _refused(key, reason, until, ports)
        case Reuse() if run is not None:
            found = await drift(run, ports) if asked.by_hand else ()
            ports.log("RUN-REUSED", run=key, status=run.status, drift=len(found))
            return RunReport(
                key, run.status, "reused", artifact=run.result_artifact, drift=tuple(found)
            )
        case Stop(reason):
            status = run.status if run is not None else None
            ports.log("RUN-REFUSED", run=key, reason=reason)
            return RunReport(key, status, "stopped", reason=reason)
        case other:
            raise AssertionError(f"admission {other!r} does not turn away")


def _refused(key: str, reason: str, until: datetime | None, ports: Ports) -> RunReport:
    ports.log("RUN-REFUSED", run=key, reason=reason, until=until)
    return RunReport(key, None, "refused", reason=reason, until=until)


def _opened(inputs: RunInputs, door: Door, lease: Lease, ports: Ports) -> tuple[RunRecord, str]:
    """The run with a new attempt under this lease, and why it is worn out, if it is.

    An attempt that died is charged like one that failed: before a claim as an attempt, after one
    as a continuation. So a run whose worker dies each time ends too.
    """
    now, run = ports.clock.now(), door.look.run
    if run is None:
        run = RunRecord(inputs=inputs, created_at=now, updated_at=now)
    reading = isinstance(door.admission, Admit) and door.admission.step is Step.READ_BACK
    died = bool(run.attempts) and not run.attempts[-1].ended
    charged = run.attempts_charged + int(died and not run.claimed)
    continuations = run.continuations + int(reading)
    if died:
        lapsed = min(door.look.lease.until or now, now)
        cut = run.attempts[-1].model_copy(update={"until": lapsed, "ended": "lease lapsed"})
        run = run.model_copy(update={"attempts": (*run.attempts[:-1], cut)})
    opened = AttemptRecord(owner=lease.owner, fence=lease.fence, began=now)
    run = run.model_copy(
        update={
            "status": Status.RUNNING,
            "stage": run.stage if run.attempts else "lease",
            "updated_at": now,
            "attempts": (*run.attempts, opened),
            "attempts_charged": charged,
            "continuations": continuations,
            "retry_at": None,
            "come_back_at": None,
            "reason": "",
        }
    )
    often = died and (charged >= MOST_ATTEMPTS or continuations > MOST_CONTINUATIONS)
    return run, "its worker died each time" if often else ""


async def _begin(
    run: RunRecord, lease: Lease, given_up: asyncio.Event, deadline: float, ports: Ports
) -> Attempt:
    """Open the attempt: due again if it dies, then saved, with a writer that keeps to its scope.

    It knows the evidence of earlier attempts from the start: whatever fails first is classified by
    it.
    """
    silent = ports.timing.lease + ports.timing.lock_delay
    due = Due(DueKind.CONTINUE, run.inputs.dedupe_key)
    await ports.ledger.due.add(due, ports.clock.now() + silent)
    await ask_twice(lambda: ports.ledger.runs.save(lease, run), ports.clock)
    place = Place(run.inputs.repository_id, run.inputs.repository, run.inputs.installation)
    own = replace(ports, writer=ports.writer.within(run.inputs))
    attempt = Attempt(own, lease, run, place, deadline, given_up, fence=lease.fence)
    attempt.effects = {effect.effect_key: effect for effect in run.effects}
    return attempt


async def _attempt(
    attempt: Attempt, resolution: Resolution | None, *, taken_over: bool
) -> RunReport:
    if taken_over:
        await look_for_late_requests(attempt)
    try:
        if attempt.worn_out:
            ending = await _as_it_stands(attempt)
        else:
            ending = await _carry(attempt, resolution)
    except AgentFailed as failure:
        reason = f"the model gave no plan: {failure.reason}"
        ending = Ending(reason, retryable=failure.retryable)
    except ReadFailed as failure:
        reason = f"GitHub could not be read: {failure.detail}"
        ending = Ending(reason, failure.retry_at, retryable=not failure.permanent)
    except CheckoutFailed as failure:
        reason = f"no checkout: {failure.reason}: {failure.detail}"
        ending = Ending(reason, retryable=failure.retryable)
    except StopSending as stop:
        ending = Ending(stop.reason, stop.retry_at, budget_spent=stop.budget_spent)
    return await settle(attempt, ending)


async def _as_it_stands(attempt: Attempt) -> Ending:
    """Nothing more is tried: the run is classified by the evidence that it has."""
    attempt.planned = await attempt.ports.ledger.runs.plan(attempt.lease.dedupe_key) is not None
    return Ending(attempt.worn_out, retryable=False)


async def _carry(attempt: Attempt, resolution: Resolution | None) -> Ending:
    """The straight line. What is saved is not done again."""
    reader, repositories = attempt.ports.reader, attempt.ports.ledger.repositories
    if not await repositories.bot_ids():
        await repositories.add_bot_id(await reader.bot_user_id())
    repository = await reader.repository_by_id(attempt.place)
    if isinstance(repository, Gone):
        return Ending(f"the repository is gone: {repository}", retryable=False)
    if repository.archived:
        return Ending("the repository is archived", retryable=False)
    attempt.place = repository.place  # git is asked by name, and that may be another one by now
    craft = craft_of(attempt.run.key.job)
    snapshot = await frozen_snapshot(attempt, repository, craft)
    plan = await frozen_plan(attempt, snapshot, craft)
    await intend(attempt, plan, snapshot)
    if attempt.run.inputs.mode is Mode.OBSERVE:
        await write_report(attempt, plan, snapshot, craft)
        return Ending()
    if resolution is not None:
        await carry_out(attempt, resolution)
    await settle_doubts(attempt)
    ending = await _write(attempt, Writing(attempt, snapshot, plan))
    await read_back(attempt)
    if not ending.reason:
        page = await craft.page(attempt, plan, snapshot, attempt.status_so_far())
        if page is not None:
            await sum_up(attempt, page)
    return ending


async def _write(attempt: Attempt, writing: Writing) -> Ending:
    try:
        for number in groups(attempt.effects.values()):
            await writing.write_issue(number)
    except StopSending as stop:
        return Ending(stop.reason, stop.retry_at, budget_spent=stop.budget_spent)
    return Ending()
