"""What a job asks, as sessions: the prompt, the schema, the tools and the bounds of each."""

from collections.abc import Iterator
from secrets import token_hex

from triage.findings import Start
from triage.policy import AnyJobPolicy, JobPolicy, ReviewPolicy
from triage.review import FINDINGS_LIMIT, given_again
from triage.watch import sides
from worker import prompt, review_prompt, watch_prompt
from worker.agent.boundaries import TOOLS
from worker.ports import AgentRequest, ReviewRequest, SessionRequest, WatchRequest

TOKENS_PER_DECISION = 250
TOKENS_PER_FINDING = 200
TOKENS_PER_CHANGE = 150
"""What an answer takes at most for each."""

LANGUAGE = "en"
"""Of a review or a watch whose policy names none."""


def prompt_version(policy: AnyJobPolicy) -> str:
    """The version of what a job with these settings asks."""
    match policy:
        case JobPolicy():
            return prompt.prompt_version(code=policy.code)
        case ReviewPolicy():
            return review_prompt.PROMPT_VERSION
        case _:
            return watch_prompt.PROMPT_VERSION


def about_issues(request: AgentRequest) -> SessionRequest:
    """One session about a batch of issues."""
    code = request.root is not None
    numbers = [issue.number for issue in request.issues]
    return SessionRequest(
        system=prompt.system_prompt(code=code),
        prompt=prompt.render(request, nonce=token_hex(8), code=code),
        schema=prompt.schema(request.labels, numbers, code=code),
        max_turns=request.max_turns,
        budget_usd=request.budget_usd,
        tools=TOOLS if code else (),
        root=request.root,
        answer_tokens=len(numbers) * TOKENS_PER_DECISION,
    )


def about_tree(request: ReviewRequest) -> SessionRequest:
    """One session about a tree. Cold and resumed are two jobs, each with its own prompt."""
    system, text = _review(request, token_hex(8))
    return SessionRequest(
        system=system,
        prompt=text,
        schema=review_prompt.schema(follow_up=request.start is not Start.COLD),
        max_turns=request.max_turns,
        budget_usd=request.budget_usd,
        tools=TOOLS,
        root=request.root,
        session=request.session,
        answer_tokens=FINDINGS_LIMIT * TOKENS_PER_FINDING,
    )


def _review(request: ReviewRequest, nonce: str) -> tuple[str, str]:
    tree = review_prompt.Tree(
        request.repository,
        request.commit,
        request.files,
        request.left_out,
        request.language or LANGUAGE,
    )
    match request.start:
        case Start.RESUMED:
            return review_prompt.RESUMED_SYSTEM_PROMPT, review_prompt.resumed(tree, nonce)
        case Start.FINDINGS if request.prior is not None:
            known = [
                review_prompt.Known(item.told_as, item.file, item.line, item.severity, item.summary)
                for item in given_again(request.prior)
            ]
            last = review_prompt.LastReview(request.prior.review_id, known)
            text = review_prompt.with_findings(tree, last, nonce)
            return review_prompt.FINDINGS_SYSTEM_PROMPT, text
        case _:
            return review_prompt.COLD_SYSTEM_PROMPT, review_prompt.first(tree, nonce)


def about_changes(request: WatchRequest) -> Iterator[SessionRequest]:
    """The sessions about what changed, one for each batch."""
    addresses = {item.name: item.address for item in request.taken.documents}
    changes = [
        watch_prompt.Changed(item.name, addresses[item.name], *sides(item, request.taken))
        for item in request.changed
    ]
    for batch in watch_prompt.batches(changes):
        yield SessionRequest(
            system=watch_prompt.SYSTEM_PROMPT,
            prompt=watch_prompt.render(batch, request.language or LANGUAGE, token_hex(8)),
            schema=watch_prompt.schema([change.name for change in batch]),
            max_turns=request.max_turns,
            budget_usd=request.budget_usd,
            answer_tokens=len(batch) * TOKENS_PER_CHANGE,
        )
