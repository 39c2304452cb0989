"""The resource watch: the documents of an allow-list, each fetched once, and what changed in them.

Invariant: a run fetches once, into its snapshot; whoever asks for the same run again reuses that.
"""

from collections.abc import Mapping

from typing_extensions import override

from ledger.memory import Promotion, ReviewState
from ledger.records import Report
from triage import watch_page
from triage.contract import Status
from triage.documents import KEPT_VERSION, Change, Kept, WatchDocument, WatchInput
from triage.identifiers import Family
from triage.plan import Plan
from triage.policy import Resource
from triage.snapshot import Snapshot, source_set
from triage.summary import report_path
from triage.watch import compared, document_of, kept, make_watch, not_read
from worker.ports import (
    AgentFailed,
    Fetched,
    NotFetched,
    Obstacle,
    RepositoryNow,
    WatchRequest,
)
from worker.stages.attempt import Attempt
from worker.stages.craft import Artifact, Asked, Craft, Page


class Watching(Craft):
    """One look at each resource a window. It writes nothing but its report."""

    @override
    async def take(self, attempt: Attempt, repository: RepositoryNow) -> Snapshot:
        """Every resource as it is now, and as it was when it was last told of."""
        inputs = attempt.run.inputs
        documents = [await _fetched(attempt, item) for item in inputs.watch.resources]
        return Snapshot(
            dedupe_key=inputs.dedupe_key,
            source_set=source_set(attempt.run.key.job),
            query_cutoff=attempt.now,
            base_commit="",
            observed_at=attempt.now,
            fence=attempt.lease.fence,
            issues=(),
            watch=WatchInput(documents=tuple(documents), prior=await _prior(attempt)),
        )

    @override
    async def ask(self, attempt: Attempt, snapshot: Snapshot) -> Asked:
        """What the changes mean. Where nothing changed nobody is asked."""
        taken, policy = _taken(snapshot), attempt.run.inputs.watch
        changed = tuple(item for item in compared(taken) if item.change is Change.CHANGED)
        if not changed:
            return Asked(Plan(watch=make_watch((), taken)), _promotion(attempt, snapshot))
        request = WatchRequest(
            taken=taken,
            changed=changed,
            language=policy.language,
            max_turns=policy.max_turns.cold,
            budget_usd=policy.budget_usd.cold,
        )
        try:
            answer = await attempt.ports.agent.watch(request)
        except AgentFailed as failure:
            attempt.spend(failure.cost)
            raise
        attempt.spend(answer.cost)
        plan = Plan(cost=answer.cost, watch=make_watch(answer.decisions, taken))
        return Asked(plan, _promotion(attempt, snapshot))

    @override
    def told(self, attempt: Attempt, plan: Plan) -> Mapping[str, object]:
        """Nothing: the report says it all."""
        return {}

    @override
    async def page(
        self, attempt: Attempt, plan: Plan, snapshot: Snapshot, status: Status
    ) -> Page | None:
        """None: it writes nothing to GitHub."""
        return None

    @override
    async def report(
        self, attempt: Attempt, plan: Plan, snapshot: Snapshot, before: Report | None
    ) -> Artifact:
        """The window's file, with the section of this run added or replaced. A ledger that has lost
        it may have left the file."""
        inputs, key = attempt.run.inputs, attempt.run.key
        path = report_path(inputs, key.job, key.window)
        standing = attempt.ports.artifacts.standing
        earlier = before.text if before is not None else await standing(path)
        text = watch_page.report(attempt.run.inputs, snapshot, plan, earlier=earlier)
        return Artifact(text, is_news=watch_page.has_news(plan))


def _taken(snapshot: Snapshot) -> WatchInput:
    if snapshot.watch is None:
        raise ValueError(f"the snapshot of {snapshot.dedupe_key} is none of a watch")
    return snapshot.watch


async def _fetched(attempt: Attempt, resource: Resource) -> WatchDocument:
    found = await attempt.ports.fetcher.fetch(resource.url)
    if isinstance(found, Fetched):
        return document_of(
            resource,
            address=found.address,
            observed_at=found.observed_at,
            status=found.status,
            text=found.text,
            digest=found.digest,
            size=found.bytes,
        )
    return not_read(
        resource,
        address=found.address,
        observed_at=found.observed_at,
        status=_status(found),
        problem=f"{found.reason}: {found.detail}",
    )


def _status(found: NotFetched) -> int:
    """HTTP's, with which the detail begins where that was the obstacle; else 0."""
    return int(found.detail[:3]) if found.reason is Obstacle.STATUS else 0


async def _prior(attempt: Attempt) -> tuple[WatchDocument, ...]:
    """The documents of the last run that told of them; those in another form than ours are new."""
    repository_id = attempt.run.inputs.repository_id
    state = await attempt.ports.ledger.reviews.last(repository_id, Family.WATCH)
    if state is None or state.version != KEPT_VERSION:
        return ()
    return Kept.model_validate_json(state.review).documents


def _promotion(attempt: Attempt, snapshot: Snapshot) -> Promotion:
    inputs, key = attempt.run.inputs, attempt.run.key
    return Promotion(
        ReviewState(
            family=Family.WATCH,
            repository_id=inputs.repository_id,
            review_id=inputs.dedupe_key,
            run=inputs.dedupe_key,
            window=key.window,
            fence=snapshot.fence,
            at=attempt.now,
            commit="",
            files=0,
            files_digest="",
            version=KEPT_VERSION,
            review=Kept(documents=kept(_taken(snapshot))).model_dump_json(),
        )
    )
