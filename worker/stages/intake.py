"""The frozen input of a run: its snapshot, and the plan that the model makes of it."""

from triage.contract import Evidence, RunEffect, Skip, summarised
from triage.effects import derive, skipped
from triage.identifiers import FAMILY, EffectKind, Mode, effect_key
from triage.plan import Plan
from triage.snapshot import Snapshot
from worker.ports import RepositoryNow, StateNotSavedError
from worker.stages.attempt import Attempt, ask_twice
from worker.stages.craft import Asked, Craft


async def frozen_snapshot(attempt: Attempt, repository: RepositoryNow, craft: Craft) -> Snapshot:
    """The run's snapshot, taken now if none stands."""
    runs = attempt.ports.ledger.runs
    snapshot = await runs.snapshot(attempt.lease.dedupe_key)
    if snapshot is None:
        taken = await craft.take(attempt, repository)
        snapshot = await ask_twice(
            lambda: runs.save_snapshot(attempt.lease, taken), attempt.ports.clock
        )
    attempt.fence = snapshot.fence
    await attempt.save(stage="snapshot", snapshot_summary=summarised(snapshot))
    return snapshot


async def frozen_plan(attempt: Attempt, snapshot: Snapshot, craft: Craft) -> Plan:
    """The run's plan, asked of the model if none stands. Raises AgentFailed."""
    runs = attempt.ports.ledger.runs
    plan = await runs.plan(attempt.lease.dedupe_key)
    if plan is None:
        made = await craft.ask(attempt, snapshot)
        plan = await _saved(attempt, made)
    attempt.planned = True
    await attempt.save(stage="plan", **craft.told(attempt, plan))
    return plan


async def _saved(attempt: Attempt, made: Asked) -> Plan:
    """The plan that stands, with what the next run needs of this one; without the session where
    that is not whole: the next one starts cold."""
    save, clock = attempt.ports.ledger.runs.save_plan, attempt.ports.clock
    try:
        return await ask_twice(lambda: save(attempt.lease, made.plan, made.promotion), clock)
    except StateNotSavedError as error:
        run = attempt.lease.dedupe_key
        attempt.ports.log("STATE-NOT-SAVED", run=run, reason=f"{error}; the next starts cold")
        bare = made.promotion and made.promotion.without_session()
        return await ask_twice(lambda: save(attempt.lease, made.plan, bare), clock)


async def intend(attempt: Attempt, plan: Plan, snapshot: Snapshot) -> None:
    """The run's effects: those that the plan means, and of those that stand the summary and
    whatever was tried or settled; saved. A ledger that was set back may hold effects of a plan that
    it has lost.

    An observe run's are only thought of: it saves none but its report. A report and a review's page
    are wanted whatever the plan says: a run that fails before it has them is not over.
    """
    observing = attempt.run.inputs.mode is Mode.OBSERVE
    standing = () if observing else attempt.run.effects
    derived = derive(plan, snapshot, attempt.run.inputs)
    if observing:
        await _keep_wanted(attempt, EffectKind.REPORT, attempt.run.key.window)
    elif plan.review is not None:
        standing = await _keep_wanted(attempt, EffectKind.SUMMARY, None)
    kept = [
        effect
        for effect in standing
        if effect.sends
        or effect.evidence is not Evidence.ABSENT
        or effect.kind is EffectKind.SUMMARY
    ]
    effects = list({effect.effect_key: effect for effect in (*derived, *kept)}.values())
    await attempt.know(effect.effect_key for effect in effects)
    attempt.effects = {effect.effect_key: effect for effect in (effects if observing else standing)}
    meant = {effect.effect_key for effect in effects}
    lost = [effect for effect in standing if effect.effect_key not in meant]
    await attempt.keep([*effects, *(skipped(effect, Skip.SUPERSEDED) for effect in lost)])


async def _keep_wanted(
    attempt: Attempt, kind: EffectKind, window: str | None
) -> tuple[RunEffect, ...]:
    """The one effect of the whole repository, saved unless it stands; gives all that stand."""
    key = attempt.run.key
    name = effect_key(key.repository_id, 0, FAMILY[key.job], kind, window)
    if name not in attempt.effects:
        await attempt.keep([RunEffect(effect_key=name, kind=kind, issue=0, issue_id=0)])
    return tuple(attempt.effects.values())
