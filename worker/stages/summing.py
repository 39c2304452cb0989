"""The result of a run for people: an issue that tells of it, or an artifact."""

from functools import partial

from ledger.records import Claim, Report
from triage import summary
from triage.contract import Evidence, RunEffect
from triage.identifiers import FAMILY, EffectKind, effect_key
from triage.marker import body_digest, stamp
from triage.plan import Plan
from triage.readback import Forged, Hit, adopted
from triage.snapshot import Snapshot
from worker.ports import Outcome
from worker.stages.attempt import Attempt, ask_twice
from worker.stages.craft import Craft, Page
from worker.stages.epoch import standing_epoch
from worker.stages.reading import read_back, read_summary
from worker.stages.sampling import look
from worker.stages.sending import conflict, send_once


async def sum_up(attempt: Attempt, page: Page) -> None:
    """Write the issue that tells of the run, and read it back. Raises StopSending."""
    effect = await _intended(attempt, page)
    if effect.evidence is Evidence.ABSENT:
        await _send(attempt, effect, page)
    await read_back(attempt, summary=True)


async def _intended(attempt: Attempt, page: Page) -> RunEffect:
    """The summary as an effect of this run, saved: known from before, found on GitHub, or new.

    It is saved before GitHub is asked: a run that fails here is not over without its summary.
    """
    key = attempt.run.key
    name = effect_key(key.repository_id, 0, FAMILY[key.job], EffectKind.SUMMARY, page.window)
    await attempt.know([name])
    effect = attempt.effects.get(name) or RunEffect(
        effect_key=name, kind=EffectKind.SUMMARY, issue=0, issue_id=0
    )
    if effect.in_doubt:
        return effect
    wanted = {"digest": body_digest(page.body), "evidence": Evidence.ABSENT, "reason": ""}
    effect = effect.model_copy(update=wanted)
    await attempt.keep([effect])
    effect = await _as_found(attempt, effect)
    await attempt.keep([effect])
    return effect


async def _as_found(attempt: Attempt, effect: RunEffect) -> RunEffect:
    if attempt.known_id(effect) is not None:
        return await read_summary(attempt, effect)
    known = effect.effect_key in attempt.records
    return effect if known else await _found_or_new(attempt, effect)


async def _found_or_new(attempt: Attempt, effect: RunEffect) -> RunEffect:
    """A ledger that was not made with its App may have lost a summary that stands on GitHub."""
    ports = attempt.ports
    epoch = await standing_epoch(ports)
    if epoch.first:
        return effect
    sighting = await look(effect, None, attempt.place, ports)
    match sighting:
        case Hit():
            seen = adopted(effect, sighting, attempt.now)
            return seen.model_copy(update={"issue": sighting.found.number})
        case Forged():
            return conflict(effect, "the bot's summary bears a bad signature", attempt.now)
        case _:
            return effect


async def _send(attempt: Attempt, effect: RunEffect, page: Page) -> RunEffect:
    ports = attempt.ports
    stamped = stamp(
        page.body, effect_key=effect.effect_key, run=attempt.lease.dedupe_key, keys=ports.keys
    )

    async def request(claim: Claim) -> Outcome:
        if effect.github_id is not None:
            return await ports.writer.edit_issue(claim, attempt.place, effect.issue, stamped)
        return await ports.writer.create_issue(claim, attempt.place, page.title, stamped)

    return await send_once(attempt, effect, request)


async def write_report(attempt: Attempt, plan: Plan, snapshot: Snapshot, craft: Craft) -> None:
    """The artifact of a run that writes nothing else: kept in the ledger, read back there, exported
    as a file. What another run adds to it meanwhile is not lost."""
    ports, inputs, key = attempt.ports, attempt.run.inputs, attempt.run.key
    path = summary.report_path(inputs, key.job, key.window)
    repositories, saved = ports.ledger.repositories, False
    while not saved:
        before = await repositories.report(path)
        made = await craft.report(attempt, plan, snapshot, before)
        report = Report(path=path, text=made.text, dedupe_key=inputs.dedupe_key)
        save = partial(repositories.save_report, report, before)
        saved = await ask_twice(save, ports.clock)
    kept = await repositories.report(path)
    built_upon = kept is not None and kept.dedupe_key != inputs.dedupe_key
    effect = RunEffect(
        effect_key=effect_key(key.repository_id, 0, FAMILY[key.job], EffectKind.REPORT, key.window),
        kind=EffectKind.REPORT,
        issue=0,
        issue_id=0,
        digest=body_digest(made.text),
        evidence=Evidence.CONFIRMED if built_upon or kept == report else Evidence.CONFLICT,
        url=await _exported(attempt, path),
        sends=int(made.is_news),
        when=attempt.now,
    )
    attempt.effects = {}
    await attempt.keep([effect])


async def _exported(attempt: Attempt, path: str) -> str:
    """The report as a file, which is never older than what the ledger has of it."""
    ports, url = attempt.ports, ""
    exported = None
    while (kept := await ports.ledger.repositories.report(path)) not in (None, exported):
        url, exported = await ports.artifacts.export(kept), kept
    return url
