"""The result of a run for people: the summary issue of its window, or an observe run's report."""

from collections.abc import Iterable

from ledger.records import Claim, Report
from triage import summary
from triage.contract import Evidence, RunEffect, RunRecord, Skip, Status
from triage.effects import judge
from triage.identifiers import FAMILY, EffectKind, effect_key
from triage.marker import body_digest, stamp
from triage.plan import Plan
from triage.policy import Summary
from triage.readback import Forged, Hit, adopted
from triage.snapshot import Issue, Snapshot
from triage.summary import WindowRun
from worker.ports import Gone, Outcome
from worker.stages.attempt import Attempt
from worker.stages.epoch import standing_epoch
from worker.stages.gone import GONE
from worker.stages.intake import as_seen
from worker.stages.reading import read_back, read_summary
from worker.stages.sampling import SKEW, look
from worker.stages.sending import conflict, send_once
from worker.stages.writing import groups


async def sum_up(attempt: Attempt, plan: Plan, snapshot: Snapshot, status: Status) -> None:
    """Write the window's summary issue if the policy wants one, and read it back.

    ``status`` is the one that the run is about to have. Raises StopSending.
    """
    inputs = attempt.run.inputs
    if inputs.policy.summary is Summary.OFF or inputs.target_issue is not None:
        return
    body = await _body(attempt, plan, snapshot, status)
    effect = await _intended(attempt, body)
    if effect.evidence is Evidence.ABSENT:
        await _send(attempt, effect, body)
    await read_back(attempt, summary=True)


async def _body(attempt: Attempt, plan: Plan, snapshot: Snapshot, status: Status) -> str:
    """The body over all runs of the window, this one as it is about to be."""
    key, inputs = attempt.run.key, attempt.run.inputs
    runs = await attempt.ports.ledger.runs.of_window(key.repository_id, key.job, key.window)
    own = WindowRun(
        attempt.run,
        status,
        _on_issues(attempt.effects.values()),
        plan.held,
        snapshot.left_over,
        snapshot.passed_over,
    )
    others = [run for run in runs if run.inputs.dedupe_key != inputs.dedupe_key]
    entries = [own, *[await _other(attempt, run) for run in others]]
    entries.sort(key=lambda entry: entry.run.created_at)
    return summary.body(entries, window=key.window, missed=inputs.missed, now=attempt.now)


async def _other(attempt: Attempt, run: RunRecord) -> WindowRun:
    plan = await attempt.ports.ledger.runs.plan(run.inputs.dedupe_key)
    taken = run.snapshot_summary
    return WindowRun(
        run,
        run.status,
        _on_issues(run.effects),
        plan.held if plan else (),
        taken.left_over if taken else 0,
        taken.passed_over if taken else {},
    )


def _on_issues(effects: Iterable[RunEffect]) -> list[RunEffect]:
    return [item for item in effects if item.kind is not EffectKind.SUMMARY]


async def _intended(attempt: Attempt, body: str) -> RunEffect:
    """The summary as an effect of this run, saved: known from before, found on GitHub, or new.

    It is saved before GitHub is asked: a run that fails here is not over without its summary.
    """
    key, inputs = attempt.run.key, attempt.run.inputs
    window = None if inputs.policy.summary is Summary.ROLLING else key.window
    name = effect_key(key.repository_id, 0, FAMILY[key.job], EffectKind.SUMMARY, window)
    await attempt.know([name])
    effect = attempt.effects.get(name) or RunEffect(
        effect_key=name, kind=EffectKind.SUMMARY, issue=0, issue_id=0
    )
    if effect.in_doubt:
        return effect
    wanted = {"digest": body_digest(body), "evidence": Evidence.ABSENT, "reason": ""}
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
    judged = await _judged(attempt, snapshot)
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


async def _judged(attempt: Attempt, snapshot: Snapshot) -> list[RunEffect]:
    """What each effect would come to now, by one listing of what changed since the snapshot."""
    reader, place = attempt.ports.reader, attempt.place
    labels = await reader.labels(place)
    issues: dict[int, Issue | Skip] = {
        issue.number: as_seen(issue, snapshot) for issue in snapshot.issues
    }
    listed = await reader.issues(place, state="all", since=snapshot.observed_at - SKEW)
    issues |= {issue.number: issue for issue in listed if issue.number in issues}
    judged: list[RunEffect] = []
    for number, effects in groups(attempt.effects.values()).items():
        if number not in issues:  # the plan outlived its snapshot, as in ``present``
            issue = await reader.issue(place, number)
            issues[number] = GONE[issue] if isinstance(issue, Gone) else issue
        known = attempt.records_of(effects)
        judged += judge(effects, issues[number], known, labels, attempt.run.inputs)
    return judged
