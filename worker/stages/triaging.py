"""Triage: which issues are taken, what the model decides about them, and the words for people."""

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from typing_extensions import override

from ledger.records import Report
from triage import summary
from triage.contract import RunEffect, RunRecord, Skip, Status
from triage.effects import judge
from triage.identifiers import DedupeKey, EffectKind
from triage.instructions import without_instructions
from triage.plan import NEVER_AGAIN, NOTHING_SPENT, AskedAgain, Cost, Plan, make_plan
from triage.policy import Summary
from triage.secret_words import possible_secrets
from triage.snapshot import Issue, Selection, Snapshot, SnapshotIssue, select
from triage.summary import WindowRun
from worker.ports import (
    AgentFailed,
    AgentRequest,
    Checkout,
    CheckoutFailed,
    Gone,
    IssueText,
    LeaseLost,
    RepositoryNow,
)
from worker.stages.attempt import Attempt
from worker.stages.craft import Artifact, Asked, Craft, Page, of_another
from worker.stages.gone import GONE
from worker.stages.present import as_seen
from worker.stages.sampling import SKEW
from worker.stages.scanning import scan
from worker.stages.writing import groups

OVERLAP = timedelta(hours=1)
"""How far a listing reaches back behind the last scan: clocks differ and lists lag."""

PAUSES_SECONDS = (5.0, 20.0)
"""Pauses before a batch is asked again within one attempt."""


class Triaging(Craft):
    """Both jobs of the family: a window's issues, or the one of a command."""

    @override
    async def take(self, attempt: Attempt, repository: RepositoryNow) -> Snapshot:
        """The issues that nobody has sorted."""
        return await _take(attempt, repository)

    @override
    async def ask(self, attempt: Attempt, snapshot: Snapshot) -> Asked:
        """A decision about each; where the policy says so, with the code at hand."""
        if not attempt.run.inputs.triage.code or not snapshot.issues:
            return Asked(await _ask(attempt, snapshot))
        try:
            async with attempt.ports.checkouts.at(attempt.place, snapshot.base_commit) as checkout:
                return Asked(await _ask(attempt, snapshot, checkout))
        except CheckoutFailed as failure:
            if failure.retryable:
                raise
            run = attempt.run.inputs.dedupe_key
            why = {"reason": failure.reason, "detail": failure.detail}
            attempt.ports.log("CHECKOUT-FAILED", run=run, **why)
            return Asked(await _ask(attempt, snapshot))

    @override
    def told(self, attempt: Attempt, plan: Plan) -> Mapping[str, object]:
        """Nothing: the summary says it all."""
        return {}

    @override
    async def page(
        self, attempt: Attempt, plan: Plan, snapshot: Snapshot, status: Status
    ) -> Page | None:
        """The summary of the window, if the policy wants one: what was written, what is undecided,
        and what people should know where nothing was."""
        inputs, window = attempt.run.inputs, attempt.run.key.window
        if inputs.triage.summary is Summary.OFF or inputs.target_issue is not None:
            return None
        told = bool(plan.held or inputs.policy_notice or inputs.missed)
        if not (
            status in (Status.COMPLETED, Status.NEEDS_REVIEW)
            or (status is Status.NO_CHANGE and told)
        ):
            return None
        rolling = inputs.triage.summary is Summary.ROLLING
        body = await _body(attempt, plan, snapshot, status)
        return Page(summary.title(inputs, window), body, None if rolling else window)

    @override
    async def report(
        self, attempt: Attempt, plan: Plan, snapshot: Snapshot, before: Report | None
    ) -> Artifact:
        """What comment mode would write."""
        judged = await _judged(attempt, snapshot)
        earlier = of_another(before, attempt)
        text = summary.report(attempt.run.inputs, snapshot, plan, judged, earlier=earlier)
        return Artifact(text, is_news=bool(judged or plan.held))


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
        backlog=inputs.triage.backlog,
        backlog_until=record.backlog_until or cutoff,
        max_issues=inputs.triage.max_issues,
        always=always,
    )


async def _earlier(attempt: Attempt, key: DedupeKey) -> frozenset[int]:
    """The issues of the window's earlier runs: a forced run takes them again."""
    runs = attempt.ports.ledger.runs
    earlier = await runs.of_window(key.repository_id, key.job, key.window)
    snapshots = [await runs.snapshot(run.inputs.dedupe_key) for run in earlier]
    return frozenset(issue.id for snap in snapshots if snap is not None for issue in snap.issues)


async def _ask(attempt: Attempt, snapshot: Snapshot, checkout: Checkout | None = None) -> Plan:
    """The plan of what the model answers. Issues whose text gives instructions are asked about a
    second time without it. Raises AgentFailed where nothing was decided."""
    policy, asking = attempt.run.inputs.triage, _Asking(attempt, checkout)
    try:
        answers = await asking.about([_text(issue) for issue in snapshot.issues])
        again = await _ask_again(asking, snapshot, {item.get("number") for item in answers})
    finally:
        attempt.spend(asking.cost)
    files = checkout.files if checkout is not None else ()
    secrets = await _secrets(attempt, checkout, (*answers, *again.answers))
    return make_plan(answers, snapshot, policy, asking.cost, files, secrets=secrets, again=again)


async def _ask_again(
    asking: "_Asking", snapshot: Snapshot, answered: Container[object]
) -> AskedAgain:
    """What is said of the issues that were answered without the text in them that gives
    instructions. What fails here leaves them undecided, and the others as they are."""
    asks: dict[int, tuple[str, ...]] = {}
    texts: list[IssueText] = []
    labels = asking.attempt.run.inputs.triage.labels
    for issue in snapshot.issues:
        await asking.attempt.ports.clock.sleep(0)  # a hostile text takes half a second
        told = without_instructions(issue.title, issue.body, labels)
        if told is not None and issue.number in answered:
            asks[issue.number] = told.asks
            texts.append(replace(_text(issue), title=told.title, body=told.body))
    if not texts:
        return NEVER_AGAIN
    run = asking.attempt.run.inputs.dedupe_key
    asking.attempt.ports.log("AGENT-INSTRUCTED", run=run, issues=len(texts))
    try:
        answers = tuple(await asking.about(texts))
    except AgentFailed as failure:
        asking.attempt.ports.log("AGENT-PARTIAL", reason=failure.reason, answered=0)
        return AskedAgain(asks=asks, missing=failure.reason)
    return AskedAgain(asks=asks, answers=answers, missing=asking.ended)


async def _secrets(
    attempt: Attempt, checkout: Checkout | None, answers: Sequence[Mapping[str, object]]
) -> frozenset[str]:
    """Words of the answers that a file of the checkout has as a value."""
    words = possible_secrets(json.dumps(answer, ensure_ascii=False) for answer in answers)
    if checkout is None or not words:
        return frozenset()
    return (await scan(checkout, words, attempt.ports.clock, reviewed=False)).values


@dataclass(slots=True)
class _Asking:
    """The questions of one attempt, within one budget. ``ended``: why some batch was not answered,
    if one was not."""

    attempt: Attempt
    checkout: Checkout | None
    cost: Cost = NOTHING_SPENT
    ended: str = ""

    async def about(self, texts: Sequence[IssueText]) -> list[dict[str, object]]:
        """Ask batch by batch. A batch that fails for good after others were answered leaves its
        issues unanswered: what was paid for is not thrown away. Raises AgentFailed where none was
        answered."""
        answers: list[dict[str, object]] = []
        for batch in self.attempt.ports.agent.batches(texts):
            try:
                answers += await self._batch(batch)
            except AgentFailed as failure:
                self.ended = failure.reason
                if not answers:
                    raise
                log = self.attempt.ports.log
                log("AGENT-PARTIAL", reason=failure.reason, answered=len(answers))
                break
        return answers

    async def _batch(self, batch: tuple[IssueText, ...]) -> list[dict[str, object]]:
        inputs = self.attempt.run.inputs
        policy = inputs.triage
        left = policy.budget_usd.cold - self.cost.estimated_usd
        if left <= 0 or self.attempt.out_of_time:
            reason = "budget" if left <= 0 else "deadline"
            raise AgentFailed(reason, "nothing was decided", retryable=left > 0, cost=self.cost)
        request = AgentRequest(
            repository=inputs.repository,
            issues=batch,
            labels=policy.labels,
            exclusive=policy.exclusive,
            language=policy.language,
            max_turns=policy.max_turns.cold,
            budget_usd=left,
            root=self.checkout.root if self.checkout is not None else None,
        )
        try:
            decided, spent = await _decide(self.attempt, request)
        except AgentFailed as failure:
            self.cost += failure.cost
            raise
        self.cost += spent
        return decided


async def _decide(attempt: Attempt, request: AgentRequest) -> tuple[list[dict[str, object]], Cost]:
    spent = Cost()
    for pause in (*PAUSES_SECONDS, None):
        try:
            left = request.budget_usd - spent.estimated_usd
            answer = await attempt.ports.agent.decide(replace(request, budget_usd=left))
        except AgentFailed as failure:
            spent += failure.cost
            attempt.tell_denials(failure.denials)
            broke = spent.estimated_usd >= request.budget_usd
            if pause is None or not failure.retryable or attempt.out_of_time or broke:
                raise AgentFailed(
                    failure.reason, failure.detail, retryable=failure.retryable, cost=spent
                ) from failure
            await attempt.ports.clock.sleep(pause)
            continue
        attempt.tell_denials(answer.denials)
        return [dict(item) for item in answer.decisions], spent + answer.cost
    raise AssertionError("the last pause is None")


def _text(issue: SnapshotIssue) -> IssueText:
    return IssueText(
        issue.number, issue.title, issue.body, issue.author, issue.labels, issue.created_at
    )


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
