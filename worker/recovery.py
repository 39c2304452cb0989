"""What the clock asks of the worker: continue runs, sample, verify, and read a lost ledger back.

Recovery goes through the one door: it never runs a run but by ``execute``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ledger.errors import LedgerCorruptError
from ledger.records import LEDGER, Due, DueKind, EffectRecord, RepositoryRecord
from triage.contract import Evidence, RunEffect, RunRecord, Status
from triage.identifiers import EffectKind, JobKey
from triage.marker import Signature
from triage.readback import SAMPLES, Found, Hit, find, found, next_sample
from worker.pipeline import execute
from worker.ports import Gone, Place, Ports, ReadFailed
from worker.stages.converge import STAGE, converge, remove_again
from worker.stages.epoch import standing_epoch
from worker.stages.lookup import found_in
from worker.stages.sampling import Absent, Pending, look, views
from worker.stages.settling import RunReport

AGAIN = timedelta(minutes=1)
"""When something that could not be read is tried again."""

RECENT = timedelta(days=30)
"""How far back a repository's comments are read after the ledger was lost."""


@dataclass(frozen=True, slots=True)
class Held:
    """An effect with the run that holds or wrote it."""

    run: RunRecord
    effect: RunEffect
    record: EffectRecord

    @property
    def place(self) -> Place:
        """Where it is."""
        inputs = self.run.inputs
        return Place(inputs.repository_id, inputs.repository, inputs.installation)

    @property
    def begun(self) -> datetime:
        """When the run's last attempt began, or the effect's last request was claimed: from then on
        a late writer may have been left behind."""
        last = self.run.attempts[-1].began if self.run.attempts else self.run.created_at
        return max(last, self.record.claimed_at or last)

    @property
    def lagging(self) -> bool:
        """The run goes on, and does not see the effect yet."""
        over = self.run.status.final or self.run.status is Status.NEEDS_REVIEW
        return not over and self.effect.evidence is Evidence.UNSETTLED


async def continue_run(dedupe_key: str, ports: Ports) -> RunReport | None:
    """Go on with a run from its frozen inputs; None where the ledger has none so named.

    Whatever still has to come stays due; what is over is taken off.
    """
    due = Due(DueKind.CONTINUE, dedupe_key)
    was = await ports.ledger.due.when(due)
    view = await ports.ledger.leases.view(dedupe_key)
    run = view.run
    if view.lease.live and view.lease.until is not None:
        # Also where there is nothing to go on with: its holder may be about to save that.
        await ports.ledger.due.add(due, view.lease.until + ports.timing.lock_delay)
        return None
    if run is None or run.status.final or run.status is Status.NEEDS_REVIEW:
        await ports.ledger.due.remove(due, was)
        return None
    if run.stage == STAGE:
        await remove_again(run, ports)
        return None
    report = await execute(run.inputs, ports)
    if report.outcome == "refused":
        await ports.ledger.due.add(due, report.until or ports.clock.now() + AGAIN)
    elif report.outcome != "ran":
        await ports.ledger.due.remove(due, was)
    return report


async def sample(effect_key: str, ports: Ports) -> None:
    """One read of an effect in doubt, without lease, attempt or change of status.

    A hit, and a completed proof of absence, make the run due.
    """
    due, now = Due(DueKind.SAMPLE, effect_key), ports.clock.now()
    was = await ports.ledger.due.when(due)
    held = await _held(effect_key, ports)
    if held is None or not held.effect.in_doubt:
        await ports.ledger.due.remove(due, was)
        return
    try:
        sighting = await look(held.effect, held.record, held.place, ports)
    except ReadFailed as failure:
        ports.log("READ-FAILED", effect=effect_key[:12], detail=failure.detail)
        await ports.ledger.due.add(due, failure.retry_at or now + AGAIN)
        return
    if isinstance(sighting, Pending):
        at = next_sample(sighting.samples, now, ports.timing.absence_window)
        await ports.ledger.due.add(due, at or now)
        return
    await ports.ledger.due.remove(due, was)
    if isinstance(sighting, (Hit, Absent)):
        await ports.ledger.due.add(Due(DueKind.CONTINUE, held.run.inputs.dedupe_key), now)


async def verify(effect_key: str, ports: Ports) -> None:
    """Look for a late writer of an effect, and converge where there was one.

    Looked for again where the run does not see its own yet, or somebody else is at a duplicate;
    and where it is too early: this job may be one that waited while the effect was sent once more.
    """
    due = Due(DueKind.VERIFY, effect_key)
    was = await ports.ledger.due.when(due)
    held = await _held(effect_key, ports)
    if held is None or not held.effect.kind.creates:
        await ports.ledger.due.remove(due, was)
        return
    now, window = ports.clock.now(), ports.timing.absence_window
    again = max(now + window / (SAMPLES - 1), held.begun + window)
    try:
        done = await _converged(held, ports)
    except ReadFailed as failure:
        await ports.ledger.due.add(due, failure.retry_at or again)
        return
    if done and not held.lagging and now >= held.begun + window:
        await ports.ledger.due.remove(due, was)
    else:
        await ports.ledger.due.add(due, again)


async def _converged(held: Held, ports: Ports) -> bool:
    seen = await views(held.effect, held.place, ports)
    if isinstance(seen, Gone):
        return True
    hit = find(held.effect.effect_key, seen, await ports.ledger.repositories.bot_ids())
    if not isinstance(hit, Hit):
        return True
    return await converge(held.effect, hit, held.run.inputs, held.place, ports)


async def _held(effect_key: str, ports: Ports) -> Held | None:
    record = (await ports.ledger.effects.get([effect_key])).get(effect_key)
    name = (record.holder or record.writer) if record is not None else ""
    if record is None or not name:
        return None
    run = (await ports.ledger.leases.view(name)).run
    if run is None:
        return None
    own = [effect for effect in run.effects if effect.effect_key == effect_key]
    return Held(run, own[0], record) if own else None


# --- After the ledger was lost ------------------------------------------------------------------


async def recover(name: str, ports: Ports) -> None:
    """``ledger``: list the installations again. ``R<id>:<n>``: the n-th read of a repository."""
    due = Due(DueKind.RECOVER, name)
    was = await ports.ledger.due.when(due)
    try:
        if name == LEDGER:
            await _installations(ports)
        else:
            await _reread(name, ports)
    except ReadFailed as failure:
        ports.log("READ-FAILED", recover=name, detail=failure.detail)
        await ports.ledger.due.add(due, failure.retry_at or ports.clock.now() + AGAIN)
        return
    await ports.ledger.due.remove(due, was)


async def _installations(ports: Ports) -> None:
    """Refill what the ledger knew of repositories, and have each read five times.

    A ledger that was wiped has no epoch yet: it gets one, so that it is quiet, and asked once.
    """
    await standing_epoch(ports)
    now = ports.clock.now()
    await ports.ledger.repositories.add_bot_id(await ports.reader.bot_user_id())
    for installation in await ports.reader.installations():
        for place in await ports.reader.installation_repositories(installation):
            await remember_place(place, ports)
            await ports.ledger.due.add(Due(DueKind.RECOVER, f"R{place.id}:1"), now)


async def _reread(name: str, ports: Ports) -> None:
    """Read a repository's recent comments and the bot's issues; adopt what bears a marker.

    The reads are spread over the absence window; after the fifth the due windows are ensured.
    """
    repository_id, count = (int(part) for part in name.removeprefix("R").split(":"))
    record = await ports.ledger.repositories.get(repository_id)
    if record is None:
        return
    place, now = Place(record.id, record.full_name, record.installation), ports.clock.now()
    bots = await ports.ledger.repositories.bot_ids()
    comments = await ports.reader.comments(place, now - RECENT)
    await _adopt(found_in(comments, ports), EffectKind.COMMENT, place, bots, ports)
    login = await ports.reader.bot_login()
    own = await ports.reader.issues(place, state="all", creator=login)
    seen = [
        found(issue.id, issue.number, issue.author_id, issue.body, issue.url, ports.keys)
        for issue in own
    ]
    await _adopt(seen, EffectKind.SUMMARY, place, bots, ports)
    if count < SAMPLES:
        again = now + ports.timing.absence_window / (SAMPLES - 1)
        await ports.ledger.due.add(Due(DueKind.RECOVER, f"R{repository_id}:{count + 1}"), again)
    else:
        await ports.ledger.due.add(Due.window(JobKey.DAILY, repository_id), now)


async def _adopt(
    seen: Sequence[Found],
    kind: EffectKind,
    place: Place,
    bots: frozenset[int],
    ports: Ports,
) -> None:
    for item in seen:
        marker = item.reading.marker
        valid = item.reading.signature is Signature.VALID and item.author_id in bots
        if marker is None or not valid:
            continue
        await ports.ledger.effects.adopt(
            EffectRecord(
                effect_key=marker.effect_key,
                repository_id=place.id,
                issue=item.number,
                kind=kind,
                github_id=item.github_id,
                url=item.url,
                digest=marker.digest,
            )
        )


async def remember_place(place: Place, ports: Ports) -> RepositoryRecord:
    """The repository's record, made or brought up to date; made anew where a worker that did not
    know of the loss of the ledger has left a part of it."""
    try:
        was = await ports.ledger.repositories.get(place.id)
    except LedgerCorruptError:
        was = None
    record = was or RepositoryRecord(
        id=place.id, full_name=place.full_name, installation=place.installation
    )
    record = record.model_copy(
        update={
            "full_name": place.full_name,
            "installation": place.installation or record.installation,
            "active": True,
        }
    )
    await ports.ledger.repositories.save(record, was)
    return record
