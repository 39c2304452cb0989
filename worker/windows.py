"""Windows: read the policy, and start the newest due window of a repository unless it has a run."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from ledger.records import LAST_WINDOW, Due, RepositoryRecord
from triage.contract import RunInputs, RunRecord
from triage.identifiers import SCHEDULED, DedupeKey, JobKey, Mode, input_version
from triage.policy import AnyJobPolicy, PolicyError, merged, read_policy
from triage.window import Window, due_window, missed_windows, next_window, window_named
from worker.pipeline import execute
from worker.ports import Gone, Place, Ports, ReadFailed
from worker.stages.epoch import quiet_until
from worker.stages.settling import RunReport

AGAIN = timedelta(minutes=5)
"""When a repository that could not be read is looked at again."""

WITHOUT_POLICY = timedelta(hours=6)
"""How often a repository without a policy, or that cannot be seen, is looked at again."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Who asks for a run, and how. ``forced`` is the id of the comment or request that forces,
    ``comment`` the comment that is to be answered."""

    by: str
    mode: Mode | None = None
    forced: str | None = None
    force: bool = False
    comment: int | None = None

    @property
    def by_hand(self) -> bool:
        """A person asks: new inputs in the same window are a new run."""
        return self.by in ("hand", "command")


async def ensure_window(
    job: JobKey, repository_id: int, ports: Ports, *, window: str | None = None, by: str = "clock"
) -> RunReport | None:
    """Start the newest due window, or the one named, unless it has a run in the policy's mode or a
    stronger one. None where there is nothing to start.

    New inputs in the same window, a raised mode apart, are a new run by hand only.
    """
    due = Due.window(job, repository_id)
    was = await ports.ledger.due.when(due)
    record = await ports.ledger.repositories.get(repository_id)
    if record is None or not record.active:
        await ports.ledger.due.remove(due, was)
        return None
    quiet = await quiet_until(ports)
    if quiet is not None:
        await ports.ledger.due.add(due, quiet)
        return None
    try:
        record = await refreshed(record, ports)
    except ReadFailed as failure:
        ports.log("READ-FAILED", repository=record.full_name, detail=failure.detail)
        pause = WITHOUT_POLICY if failure.permanent else AGAIN
        await ports.ledger.due.add(due, failure.retry_at or ports.clock.now() + pause)
        return None
    await _schedule_others(record, job, ports)
    policy = record.policy_of(job)
    if policy is None or not record.active:
        await _look_again(due, was, ports)
        return None
    slot = _slot_due(record, policy, window, ports)
    if slot is None:
        return None
    report = None
    if not await _has_run(record, job, slot, ports):
        inputs = await inputs_of(record, job, slot, Ask(by), ports)
        report = await execute(inputs, ports)
    if report is not None and report.outcome == "refused":
        await ports.ledger.due.add(due, report.until or ports.clock.now() + AGAIN)
        return report
    await _move_on(record.id, job, slot, ports)
    following = next_window(policy.schedule.schedule(), ports.clock.now())
    await ports.ledger.due.add(due, following.due_at)
    return report


async def _schedule_others(record: RepositoryRecord, job: JobKey, ports: Ports) -> None:
    """Whichever job is looked at first finds the others that the policy has."""
    for other in SCHEDULED:
        due = Due.window(other, record.id)
        wanted = other is not job and record.policy_of(other) is not None
        if wanted and await ports.ledger.due.when(due) is None:
            await ports.ledger.due.add(due, ports.clock.now())


async def _look_again(due: Due, was: datetime | None, ports: Ports) -> None:
    """A policy may come later: the triage's windows, due or not, are where it is looked for."""
    if due.name.startswith(JobKey.DAILY):
        await ports.ledger.due.add(due, ports.clock.now() + WITHOUT_POLICY)
    else:
        await ports.ledger.due.remove(due, was)


def _slot_due(
    record: RepositoryRecord, policy: AnyJobPolicy, window: str | None, ports: Ports
) -> Window | None:
    """The slot that is asked for; None, and a line, where the schedule has none so named, or has
    it later. Who asked could not know: the policy was not read yet, or has changed since."""
    now = ports.clock.now()
    try:
        slot = slot_of(policy, window, now)
        problem = "" if slot.due_at <= now else f"it is not due before {slot.due_at.isoformat()}"
    except ValueError as error:
        problem = str(error)
    if not problem:
        return slot
    ports.log("JOB-FAILED", repository=record.full_name, window=window, reason=problem)
    return None


async def _move_on(repository_id: int, job: JobKey, slot: Window, ports: Ports) -> None:
    """The window has its run: those before it that have none were missed."""
    record = await ports.ledger.repositories.get(repository_id)
    if record is not None and _is_newer(slot, job, record):
        moved = record.model_copy(update={LAST_WINDOW[job]: slot.key})
        await ports.ledger.repositories.save(moved, record)


def _is_newer(slot: Window, job: JobKey, record: RepositoryRecord) -> bool:
    """Whether the slot comes after the last window; one of another kind of schedule does not
    count."""
    policy = record.policy_of(job)
    if policy is None:
        return True
    try:
        last = window_named(policy.schedule.schedule(), record.last_window_of(job))
        return last.due_at < slot.due_at
    except ValueError:
        return True


async def _has_run(record: RepositoryRecord, job: JobKey, slot: Window, ports: Ports) -> bool:
    runs = await ports.ledger.runs.of_window(record.id, job, slot.key)
    policy = record.policy_of(job)
    wanted = policy.mode.strength if policy is not None else 0
    return any(run.inputs.mode.strength >= wanted for run in runs if run.key.forced is None)


def slot_of(policy: AnyJobPolicy, window: str | None, now: datetime) -> Window:
    """The window named, else the newest that is due. Raises ValueError for a name that is none."""
    schedule = policy.schedule.schedule()
    return due_window(schedule, now) if window is None else window_named(schedule, window)


async def refreshed(record: RepositoryRecord, ports: Ports) -> RepositoryRecord:
    """The record with the policy as it is now, saved. A broken file stops nothing that the last
    good one allowed, and is named in ``policy_notice``. Raises ReadFailed."""
    was, place = record, Place(record.id, record.full_name, record.installation)
    now = await ports.reader.repository_by_id(place)
    if isinstance(now, Gone):
        raise ReadFailed(f"{record.full_name} is {now}", permanent=True)
    record = record.model_copy(update={"full_name": now.place.full_name})
    record = await _with_policy(record, now.place, ports)
    await ports.ledger.repositories.save(record, was)
    return record


async def _with_policy(record: RepositoryRecord, place: Place, ports: Ports) -> RepositoryRecord:
    try:
        organisation, own = await ports.reader.policy(place)
        document = own if own is None or organisation is None else merged(organisation, own)
        document = document or organisation
        jobs = read_policy(document).jobs if document is not None else None
    except PolicyError as error:
        notice = f"The policy file is broken, the last good one is used: {error}"
        return record.model_copy(update={"policy_notice": notice[:2000]})
    policies = {
        "policy": jobs and jobs.triage,
        "review": jobs and jobs.review,
        "watch": jobs and jobs.watch,
    }
    return record.model_copy(update={**policies, "policy_notice": ""})


async def inputs_of(
    record: RepositoryRecord, job: JobKey, slot: Window, ask: Ask, ports: Ports
) -> RunInputs:
    """The frozen inputs of a window's run; the windows missed since the last are named in them."""
    policy, last = record.policy_of(job), record.last_window_of(job)
    if policy is None:
        raise ValueError(f"{record.full_name} has no policy for {job}")
    missed: list[str] = []
    if last and not ask.by_hand:
        missed = missed_windows(policy.schedule.schedule(), last, slot.due_at)
    return RunInputs(
        dedupe_key=str(key_of(record.id, policy, job, slot.key, ask, ports)),
        repository_id=record.id,
        repository=record.full_name,
        installation=record.installation,
        policy=policy,
        mode=ask.mode or policy.mode,
        by=ask.by,
        due_at=slot.due_at,
        command_comment=ask.comment,
        force=ask.force,
        policy_notice=record.policy_notice,
        missed=tuple(missed),
    )


def key_of(
    repository_id: int, policy: AnyJobPolicy, job: JobKey, window: str, ask: Ask, ports: Ports
) -> DedupeKey:
    """The identity of a run."""
    mode = ask.mode or policy.mode
    prompt = ports.agent.prompt_version(policy)
    version = input_version(policy.model_dump(mode="json"), mode, prompt)
    return DedupeKey(job, repository_id, window, version, ask.forced)


async def run_again(
    record: RepositoryRecord, earlier: RunRecord, ask: Ask, ports: Ports
) -> RunReport:
    """A window once more, forced by a person."""
    key = earlier.key
    slot = Window(key.window, earlier.inputs.due_at)
    inputs = await inputs_of(record, key.job, slot, ask, ports)
    return await execute(inputs, ports, by_hand=True)
