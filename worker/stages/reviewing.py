"""The nightly review: a tree of files, a session that may know the last review, one issue.

Invariant: what the next review needs of this one is kept in one step with the plan, or not at all.
"""

import json
from collections.abc import Mapping

from typing_extensions import override

from ledger.memory import Promotion, Recall, ReviewState, StagedSession
from ledger.records import Report
from triage import review_page
from triage.contract import Status, figures
from triage.findings import (
    REMEMBERED_VERSION,
    Remembered,
    Review,
    ReviewInput,
    Start,
)
from triage.identifiers import FAMILY, EffectKind, effect_key
from triage.opening import Past, opening_of
from triage.plan import Cost, Plan
from triage.review import UnusableAnswerError, make_review, remembered
from triage.secret_words import possible_secrets
from triage.snapshot import Snapshot, source_set
from triage.tree import renames_of, tree_of
from worker.ports import (
    AgentFailed,
    Checkout,
    Gone,
    RepositoryNow,
    ReviewRequest,
    SessionAnswer,
)
from worker.stages.attempt import Attempt, ask_twice
from worker.stages.craft import Artifact, Asked, Craft, Page, of_another
from worker.stages.scanning import scan


class Reviewing(Craft):
    """One review of the whole repository a window."""

    @override
    async def take(self, attempt: Attempt, repository: RepositoryNow) -> Snapshot:
        """The tree at the head of the default branch, and what is known of the last review."""
        ports, inputs, key = attempt.ports, attempt.run.inputs, attempt.run.key
        commit = await ports.reader.head_commit(attempt.place, repository.default_branch)
        async with ports.checkouts.at(attempt.place, commit) as checkout:
            files, left_out = checkout.files, dict(checkout.left_out)
        state = await ports.ledger.reviews.last(inputs.repository_id)
        past, tree = _past(state), tree_of(files)
        opening = opening_of(inputs.review, past, tree, attempt.now)
        prior = past.prior
        resumed = opening.start is Start.RESUMED and state is not None
        return Snapshot(
            dedupe_key=inputs.dedupe_key,
            source_set=source_set(key.job),
            query_cutoff=attempt.now,
            base_commit=commit,
            observed_at=attempt.now,
            fence=attempt.lease.fence,
            issues=(),
            review=ReviewInput(
                opening=opening,
                tree=tree,
                left_out=left_out,
                renames=renames_of(prior.findings, files) if prior else {},
                prior=prior,
                session_id=state.session_id if resumed and state else None,
                session_length=state.session_length if resumed and state else 0,
                session_since=state.session_since if resumed and state else None,
            ),
        )

    @override
    async def ask(self, attempt: Attempt, snapshot: Snapshot) -> Asked:
        """Have the tree reviewed. A session that cannot be resumed is given up: the next window
        starts cold."""
        taken, copy = _taken(snapshot), _copy(attempt, snapshot)
        async with attempt.ports.checkouts.at(attempt.place, snapshot.base_commit) as checkout:
            request = _request(attempt, taken, checkout, copy)
            try:
                answer = await attempt.ports.agent.review(request)
            except AgentFailed as failure:
                attempt.spend(failure.cost)
                attempt.tell_denials(failure.denials)
                if copy is not None and copy.session_id and not failure.keeps_session:
                    await _clear(attempt, copy, failure.reason)
                raise
            attempt.spend(answer.cost)
            attempt.tell_denials(answer.denials)
            review = await _review(attempt, answer, snapshot, checkout)
        plan = Plan(cost=answer.cost, review=review)
        return Asked(plan, await _promotion(attempt, snapshot, review, answer, copy))

    @override
    def told(self, attempt: Attempt, plan: Plan) -> Mapping[str, object]:
        """The verdict, and whether the answer was continuous."""
        review, log = plan.review, attempt.ports.log
        if review is None:
            return {}
        run = attempt.run.inputs.dedupe_key
        open_ = sum(item.state.is_open for item in review.findings)
        log(f"REVIEW-VERDICT {review.verdict}", run=run, findings=open_, held=len(review.held))
        if review.instructed:
            first, count = review.instructed[0], len(review.instructed)
            log("AGENT-INSTRUCTED", run=run, file=first, count=count)
        if review.link is not None:
            log("RESUME-LINK", **review.link.pairs, run=run)
            if review.link.broken:
                log("RESUME-LINK-BROKEN", run=run, reason="; ".join(review.link.broken))
        return {"review": figures(review)}

    @override
    async def page(
        self, attempt: Attempt, plan: Plan, snapshot: Snapshot, status: Status
    ) -> Page | None:
        """The one issue of the repository, with the boxes ticked that people ticked."""
        body = review_page.body(attempt.run.inputs, snapshot, plan)
        return Page(review_page.TITLE, await _with_ticks(attempt, body), None)

    @override
    async def report(
        self, attempt: Attempt, plan: Plan, snapshot: Snapshot, before: Report | None
    ) -> Artifact:
        """The same as a file."""
        earlier = of_another(before, attempt)
        text = review_page.report(attempt.run.inputs, snapshot, plan, earlier=earlier)
        return Artifact(text, is_news=review_page.has_news(plan))


def _taken(snapshot: Snapshot) -> ReviewInput:
    if snapshot.review is None:
        raise ValueError(f"the snapshot of {snapshot.dedupe_key} is none of a review")
    return snapshot.review


def _past(state: ReviewState | None) -> Past:
    """The last review; one in another form than ours is as good as none."""
    if state is None or state.version != REMEMBERED_VERSION:
        return Past()
    return Past(
        prior=Remembered.model_validate_json(state.review),
        session_id=state.session_id,
        session_since=state.session_since,
        cleared=state.cleared.reason if state.cleared else "",
    )


def _copy(attempt: Attempt, snapshot: Snapshot) -> StagedSession | None:
    """The copy of the session that this attempt works on; None where no later review resumes."""
    if attempt.run.inputs.review.memory != "resume":
        return None
    taken = _taken(snapshot)
    name = f"{attempt.lease.fence}-{attempt.ports.clock.token()[:8]}"
    return StagedSession(
        attempt.run.inputs.repository_id, name, taken.session_id, taken.session_length
    )


def _request(
    attempt: Attempt, taken: ReviewInput, checkout: Checkout, copy: StagedSession | None
) -> ReviewRequest:
    inputs, policy = attempt.run.inputs, attempt.run.inputs.review
    resumed = taken.opening.start is Start.RESUMED
    return ReviewRequest(
        repository=inputs.repository,
        commit=checkout.commit,
        files=tuple(checkout.files),
        left_out=checkout.left_out,
        language=policy.language,
        start=taken.opening.start,
        prior=taken.prior,
        max_turns=policy.max_turns.resumed if resumed else policy.max_turns.cold,
        budget_usd=policy.budget_usd.resumed if resumed else policy.budget_usd.cold,
        root=checkout.root,
        session=copy,
    )


async def _review(
    attempt: Attempt, answer: SessionAnswer, snapshot: Snapshot, checkout: Checkout
) -> Review:
    words = possible_secrets([json.dumps(answer.output, ensure_ascii=False)])
    scanned = await scan(checkout, words, attempt.ports.clock)
    try:
        return make_review(
            answer.output,
            snapshot,
            checkout.files,
            session_id=answer.session_id,
            instructed=scanned.instructed,
            secrets=scanned.values,
        )
    except UnusableAnswerError as error:
        raise AgentFailed("schema", str(error), retryable=True, cost=Cost()) from error


async def _clear(attempt: Attempt, copy: StagedSession, reason: str) -> None:
    clear = attempt.ports.ledger.reviews.clear_session
    done = await ask_twice(lambda: clear(attempt.lease, copy, reason), attempt.ports.clock)
    if done:
        run = attempt.run.inputs.dedupe_key
        attempt.ports.log("SESSION-CLEARED", run=run, session=copy.session_id, reason=reason)


async def _promotion(
    attempt: Attempt,
    snapshot: Snapshot,
    review: Review,
    answer: SessionAnswer,
    copy: StagedSession | None,
) -> Promotion:
    """What the next review needs. A session that could not be saved is not kept: the next review
    starts cold."""
    taken, inputs, key = _taken(snapshot), attempt.run.inputs, attempt.run.key
    length = await attempt.ports.ledger.sessions.length(copy) if copy is not None else 0
    copy = _worth_keeping(attempt, review, answer, copy, length)
    since = taken.session_since or snapshot.observed_at
    state = ReviewState(
        repository_id=inputs.repository_id,
        review_id=review.review_id,
        run=inputs.dedupe_key,
        window=key.window,
        fence=snapshot.fence,
        at=attempt.now,
        commit=snapshot.base_commit,
        files=taken.tree.files,
        files_digest=taken.tree.digest,
        version=REMEMBERED_VERSION,
        review=remembered(review, snapshot).model_dump_json(),
        session_id=answer.session_id if copy is not None else None,
        session_length=length if copy is not None else 0,
        session_since=since if copy is not None else None,
    )
    return Promotion(state, copy, _recall(attempt, review))


def _worth_keeping(
    attempt: Attempt,
    review: Review,
    answer: SessionAnswer,
    copy: StagedSession | None,
    length: int,
) -> StagedSession | None:
    """The copy, whose session has ``length`` lines, unless the next review is to start cold. A
    ledger that was set back meanwhile has lost what was added."""
    run, log = attempt.run.inputs.dedupe_key, attempt.ports.log
    if copy is not None and (not answer.saved or length <= copy.length):
        reason = "the session could not be kept whole; the next review starts cold"
        log("STATE-NOT-SAVED", run=run, reason=reason)
        return None
    if copy is not None and review.link is not None and review.link.broken:
        reason = "the answer is not continuous; the next review starts cold"
        log("SESSION-CLEARED", run=run, reason=reason)
        return None
    return copy


def _recall(attempt: Attempt, review: Review) -> Recall | None:
    link = review.link
    if link is None:
        return None
    return Recall(
        run=attempt.run.inputs.dedupe_key,
        at=attempt.now,
        same_session=link.same_session,
        prior_review_id_echoed=link.prior_review_id_echoed,
        recalled=link.recalled,
        prior=link.prior,
        current=link.current,
    )


async def _with_ticks(attempt: Attempt, body: str) -> str:
    """The body with the ticks of the issue that stands, where one is known."""
    key = attempt.run.key
    name = effect_key(key.repository_id, 0, FAMILY[key.job], EffectKind.SUMMARY, None)
    await attempt.know([name])
    record = attempt.records.get(name)
    if record is None or not record.issue:
        return body
    standing = await attempt.ports.reader.issue(attempt.place, record.issue)
    return body if isinstance(standing, Gone) else review_page.with_ticks(body, standing.body)
