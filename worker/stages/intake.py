"""The frozen input of a run: its snapshot, and the plan that the model makes of it."""

from dataclasses import replace
from datetime import datetime, timedelta

from triage.contract import Evidence, Skip, summarised
from triage.effects import derive, skipped
from triage.identifiers import DedupeKey, EffectKind, Mode
from triage.plan import Cost, Plan, make_plan
from triage.snapshot import Issue, Selection, Snapshot, SnapshotIssue, select
from worker.ports import AgentFailed, AgentRequest, Gone, IssueText, LeaseLost, RepositoryNow
from worker.stages.attempt import Attempt, ask_twice

OVERLAP = timedelta(hours=1)
"""How far a listing reaches back behind the last scan: clocks differ and lists lag."""

PAUSES_SECONDS = (5.0, 20.0)
"""Pauses before a batch is asked again within one attempt."""


async def frozen_snapshot(attempt: Attempt, repository: RepositoryNow) -> Snapshot:
    """The run's snapshot, taken now if none stands."""
    runs = attempt.ports.ledger.runs
    snapshot = await runs.snapshot(attempt.lease.dedupe_key)
    if snapshot is None:
        taken = await _take(attempt, repository)
        snapshot = await ask_twice(
            lambda: runs.save_snapshot(attempt.lease, taken), attempt.ports.clock
        )
    attempt.fence = snapshot.fence
    await attempt.save(stage="snapshot", snapshot_summary=summarised(snapshot))
    return snapshot


async def frozen_plan(attempt: Attempt, snapshot: Snapshot) -> Plan:
    """The run's plan, asked of the model if none stands. Raises AgentFailed."""
    runs = attempt.ports.ledger.runs
    plan = await runs.plan(attempt.lease.dedupe_key)
    if plan is None:
        made = await _ask(attempt, snapshot)
        plan = await ask_twice(lambda: runs.save_plan(attempt.lease, made), attempt.ports.clock)
    attempt.planned = True
    await attempt.save(stage="plan")
    return plan


async def intend(attempt: Attempt, plan: Plan, snapshot: Snapshot) -> None:
    """The run's effects: those that the plan means, and of those that stand the summary and
    whatever was tried or settled; saved. A ledger that was set back may hold effects of a plan that
    it has lost.

    An observe run's are only thought of: it saves none but its report.
    """
    observing = attempt.run.inputs.mode is Mode.OBSERVE
    standing = () if observing else attempt.run.effects
    derived = derive(plan, snapshot, attempt.run.inputs)
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


async def _take(attempt: Attempt, repository: RepositoryNow) -> Snapshot:
    ports, inputs = attempt.ports, attempt.run.inputs
    cutoff = attempt.now if inputs.by in ("hand", "command") else min(inputs.due_at, attempt.now)
    selection = await _select(attempt, cutoff)
    target = inputs.target_issue
    return Snapshot(
        dedupe_key=inputs.dedupe_key,
        source_set="issues:open:unlabeled" if target is None else f"issue:{target}",
        query_cutoff=cutoff,
        base_commit=await ports.reader.head_commit(attempt.place, repository.default_branch),
        observed_at=attempt.now,
        fence=attempt.lease.fence,
        issues=selection.issues,
        passed_over=selection.passed_over,
        left_over=selection.left_over,
    )


async def _select(attempt: Attempt, cutoff: datetime) -> Selection:
    ports, inputs, key = attempt.ports, attempt.run.inputs, attempt.run.key
    record = await ports.ledger.repositories.get(inputs.repository_id)
    if record is None:
        # Whoever asked knew it: the ledger was lost since, and the lease with it.
        raise LeaseLost(attempt.lease.dedupe_key)
    if record.backlog_until is None:
        was, record = record, record.model_copy(update={"backlog_until": cutoff})
        await ports.ledger.repositories.save(record, was)
    always: frozenset[int] = frozenset()
    if inputs.target_issue is not None:
        found = await ports.reader.issue(attempt.place, inputs.target_issue)
        if isinstance(found, Gone):
            return Selection(issues=(), passed_over={str(found): 1}, left_over=0)
        listed, always = [found], frozenset([found.id])
    else:
        same = record.scan_version == key.input_version and key.forced is None
        since = record.scanned_until - OVERLAP if same and record.scanned_until else None
        listed = await ports.reader.issues(attempt.place, since=since)
        listed = [issue for issue in listed if issue.created_at <= cutoff]
        if key.forced is not None:
            always = await _earlier(attempt, key)
    settled = await ports.ledger.repositories.settled(
        inputs.repository_id, key.input_version, [issue.id for issue in listed]
    )
    return select(
        listed,
        bot_ids=await ports.ledger.repositories.bot_ids(),
        settled=settled,
        backlog=inputs.policy.backlog,
        backlog_until=record.backlog_until or cutoff,
        max_issues=inputs.policy.max_issues,
        always=always,
    )


async def _earlier(attempt: Attempt, key: DedupeKey) -> frozenset[int]:
    """The issues of the window's earlier runs: a forced run takes them again."""
    runs = attempt.ports.ledger.runs
    earlier = await runs.of_window(key.repository_id, key.job, key.window)
    snapshots = [await runs.snapshot(run.inputs.dedupe_key) for run in earlier]
    return frozenset(issue.id for snap in snapshots if snap is not None for issue in snap.issues)


async def _ask(attempt: Attempt, snapshot: Snapshot) -> Plan:
    """Ask the model, batch by batch. A batch that fails for good after others were answered leaves
    its issues unanswered: what was paid for is not thrown away."""
    policy = attempt.run.inputs.policy
    answers: list[dict[str, object]] = []
    cost = Cost()
    for batch in attempt.ports.agent.batches([_text(issue) for issue in snapshot.issues]):
        left = policy.budget_usd.cold - cost.estimated_usd
        if left <= 0 or attempt.out_of_time:
            reason = "budget" if left <= 0 else "deadline"
            if not answers:
                attempt.run = attempt.run.model_copy(update={"cost": attempt.run.cost + cost})
                raise AgentFailed(reason, "nothing was decided", retryable=left > 0, cost=cost)
            attempt.ports.log("AGENT-PARTIAL", reason=reason, answered=len(answers))
            break
        request = AgentRequest(
            repository=attempt.run.inputs.repository,
            issues=batch,
            labels=policy.labels,
            exclusive=policy.exclusive,
            language=policy.language,
            max_turns=policy.max_turns.cold,
            budget_usd=left,
        )
        try:
            decided, spent = await _decide(attempt, request)
        except AgentFailed as failure:
            cost += failure.cost
            if not answers:
                attempt.run = attempt.run.model_copy(update={"cost": attempt.run.cost + cost})
                raise
            attempt.ports.log("AGENT-PARTIAL", reason=failure.reason, answered=len(answers))
            break
        answers += decided
        cost += spent
    attempt.run = attempt.run.model_copy(update={"cost": attempt.run.cost + cost})
    return make_plan(answers, snapshot, policy, cost)


async def _decide(attempt: Attempt, request: AgentRequest) -> tuple[list[dict[str, object]], Cost]:
    spent = Cost()
    for pause in (*PAUSES_SECONDS, None):
        try:
            left = request.budget_usd - spent.estimated_usd
            answer = await attempt.ports.agent.decide(replace(request, budget_usd=left))
        except AgentFailed as failure:
            spent += failure.cost
            broke = spent.estimated_usd >= request.budget_usd
            if pause is None or not failure.retryable or attempt.out_of_time or broke:
                raise AgentFailed(
                    failure.reason, failure.detail, retryable=failure.retryable, cost=spent
                ) from failure
            await attempt.ports.clock.sleep(pause)
            continue
        return [dict(item) for item in answer.decisions], spent + answer.cost
    raise AssertionError("the last pause is None")


def _text(issue: SnapshotIssue) -> IssueText:
    return IssueText(
        issue.number, issue.title, issue.body, issue.author, issue.labels, issue.created_at
    )


def as_seen(issue: SnapshotIssue, snapshot: Snapshot) -> Issue:
    """A snapshot's issue as it stood then: what it still is, unless a listing says otherwise."""
    return Issue(
        id=issue.id,
        number=issue.number,
        title=issue.title,
        body=issue.body,
        author=issue.author,
        author_id=0,
        labels=issue.labels,
        state="open",
        locked=False,
        created_at=issue.created_at,
        updated_at=snapshot.observed_at,
        url="",
        comments=issue.comments,
    )
