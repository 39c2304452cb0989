"""The result of a run for people: the summary issue of its window, or an observe run's report."""

from ledger.records import Claim, Report
from triage import summary
from triage.contract import Evidence, RunEffect, RunRecord, Status
from triage.effects import judge
from triage.identifiers import FAMILY, EffectKind, effect_key
from triage.marker import body_digest, stamp
from triage.plan import Plan
from triage.policy import Summary
from triage.readback import Hit, adopted
from triage.snapshot import Snapshot
from triage.summary import WindowRun
from worker.ports import Outcome
from worker.stages.attempt import Attempt
from worker.stages.epoch import standing_epoch
from worker.stages.reading import read_summary
from worker.stages.sampling import look
from worker.stages.sending import send_once
from worker.stages.writing import Writing


async def sum_up(attempt: Attempt, plan: Plan, snapshot: Snapshot, status: Status) -> None:
    """Write the window's summary issue if the policy wants one, and read it back.

    ``status`` is the one that the run is about to have. Raises StopSending.
    """
    inputs = attempt.run.inputs
    if inputs.policy.summary is Summary.OFF or inputs.target_issue is not None:
        return
    body = await _body(attempt, plan, snapshot, status)
    effect = await _intended(attempt, body)
    await attempt.keep([effect])
    if effect.evidence is Evidence.ABSENT:
        effect = await _send(attempt, effect, body)
    if effect.acknowledged:
        await attempt.keep([await read_summary(attempt, effect)])


async def _body(attempt: Attempt, plan: Plan, snapshot: Snapshot, status: Status) -> str:
    """The body over all runs of the window, this one as it is about to be."""
    key, inputs = attempt.run.key, attempt.run.inputs
    runs = attempt.ports.ledger.runs
    earlier = [
        run
        for run in await runs.of_window(key.repository_id, key.job, key.window)
        if run.inputs.dedupe_key != inputs.dedupe_key and run.status.final
    ]
    entries = [await _earlier(attempt, run) for run in earlier]
    own = [item for item in attempt.effects.values() if item.kind is not EffectKind.SUMMARY]
    entries.append(
        WindowRun(attempt.run, status, own, plan.held, snapshot.left_over, snapshot.passed_over)
    )
    return summary.body(entries, window=key.window, missed=inputs.missed, now=attempt.now)


async def _earlier(attempt: Attempt, run: RunRecord) -> WindowRun:
    runs = attempt.ports.ledger.runs
    plan = await runs.plan(run.inputs.dedupe_key)
    issues = [item for item in run.effects if item.kind is not EffectKind.SUMMARY]
    return WindowRun(run, run.status, issues, plan.held if plan else ())


async def _intended(attempt: Attempt, body: str) -> RunEffect:
    """The summary as an effect of this run: known from before, found on GitHub, or new."""
    key, inputs = attempt.run.key, attempt.run.inputs
    window = None if inputs.policy.summary is Summary.ROLLING else key.window
    name = effect_key(key.repository_id, 0, FAMILY[key.job], EffectKind.SUMMARY, window)
    await attempt.know([name])
    record = attempt.records.get(name)
    before = attempt.effects.get(name)
    digest = body_digest(body)
    effect = before or RunEffect(
        effect_key=name, kind=EffectKind.SUMMARY, issue=0, issue_id=0, digest=digest
    )
    if effect.in_doubt:
        return effect
    effect = effect.model_copy(update={"digest": digest})
    if record is not None and record.github_id is not None:
        known = {"github_id": record.github_id, "issue": record.issue, "url": record.url}
        return await read_summary(attempt, effect.model_copy(update=known))
    return effect if record is not None else await _found_or_new(attempt, effect)


async def _found_or_new(attempt: Attempt, effect: RunEffect) -> RunEffect:
    """A ledger that was not made with its App may have lost a summary that stands on GitHub."""
    ports = attempt.ports
    epoch = await standing_epoch(ports)
    if epoch.first:
        return effect
    sighting = await look(effect, None, attempt.place, ports)
    if not isinstance(sighting, Hit):
        return effect
    seen = adopted(effect, sighting, attempt.now)
    return seen.model_copy(update={"issue": sighting.found.number})


async def _send(attempt: Attempt, effect: RunEffect, body: str) -> RunEffect:
    ports, inputs = attempt.ports, attempt.run.inputs
    stamped = stamp(
        body, effect_key=effect.effect_key, run=attempt.lease.dedupe_key, keys=ports.keys
    )

    async def request(claim: Claim) -> Outcome:
        if effect.github_id is not None:
            return await ports.writer.edit_issue(claim, attempt.place, effect.issue, stamped)
        title = summary.title(inputs, attempt.run.key.window)
        return await ports.writer.create_issue(claim, attempt.place, title, stamped)

    return await send_once(attempt, effect, request)


async def write_report(attempt: Attempt, plan: Plan, snapshot: Snapshot) -> None:
    """The artifact of an observe run: kept in the ledger, read back there, exported as a file."""
    ports, inputs, key = attempt.ports, attempt.run.inputs, attempt.run.key
    writing = Writing(attempt, snapshot, plan)
    await writing.refresh()
    judged: list[RunEffect] = []
    for number, effects in writing.groups():
        judged += judge(effects, writing.issues[number], attempt.records, writing.labels, inputs)
    path = summary.report_path(inputs, key.job, key.window)
    before = await ports.ledger.repositories.report(path)
    other = before if before is not None and before.dedupe_key != inputs.dedupe_key else None
    text = summary.report(
        inputs, snapshot, plan, judged, earlier=other.text if other is not None else None
    )
    report = Report(path=path, text=text, dedupe_key=inputs.dedupe_key)
    await ports.ledger.repositories.save_report(report)
    kept = await ports.ledger.repositories.report(path)
    exported = await ports.artifacts.export(report)
    effect = RunEffect(
        effect_key=effect_key(key.repository_id, 0, FAMILY[key.job], EffectKind.REPORT, key.window),
        kind=EffectKind.REPORT,
        issue=0,
        issue_id=0,
        digest=body_digest(text),
        evidence=Evidence.CONFIRMED if kept == report else Evidence.CONFLICT,
        url=exported,
        sends=1 if judged or plan.held else 0,
        when=attempt.now,
    )
    attempt.effects = {}
    await attempt.keep([effect])
