"""The adapter: a request of the pipeline becomes one session of the agent SDK."""

import asyncio
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, cast

import claude_agent_sdk
from claude_agent_sdk import SessionStore

from ledger.memory import StagedSession
from triage.plan import Cost
from triage.policy import AnyJobPolicy
from worker import prompt
from worker.agent import questions
from worker.agent.boundaries import Bounds, Endpoint, Room, refused, root_of, session_options
from worker.agent.folder import session_folder
from worker.agent.leash import Leash
from worker.agent.outcome import Reason, failed
from worker.agent.progress import Progress
from worker.agent.session import run_session
from worker.agent.transcript import Mirror, lay_out
from worker.ports import (
    AgentAnswer,
    AgentFailed,
    AgentRequest,
    IssueText,
    ReviewRequest,
    SessionAnswer,
    SessionRequest,
    WatchRequest,
)

Stores = Callable[[StagedSession], SessionStore]
"""The SDK's store over one attempt's copy of a session."""


@dataclass(frozen=True, slots=True)
class Host:
    """What the agent is told of the worker around it.

    ``kept_out`` is what no checkout may contain or lie in: the data folder. ``stores`` is needed
    for sessions that are kept. ``cli`` replaces the one that came with the SDK.
    """

    kept_out: tuple[Path, ...] = ()
    stores: Stores | None = None
    cli: Path | None = None


ALONE: Final = Host()


class ClaudeAgent:
    """Asks the model. One instance serves many sessions, also at once."""

    def __init__(
        self,
        *,
        model: str | None,
        api_key: str,
        base_url: str | None = None,
        wall_seconds: float = 900,
        idle_seconds: float = 180,
        api_retries: int = 2,
        folder: Path | None = None,
        host: Host = ALONE,
    ) -> None:
        """``folder`` is where sessions have their own folders (default: the system's for temporary
        files); it must allow programs to be run.
        """
        self._endpoint = Endpoint(model, api_key, base_url)
        self._bounds = Bounds(wall_seconds, idle_seconds, api_retries)
        self._folder = folder
        self._host = host

    def batches(self, issues: Sequence[IssueText]) -> list[tuple[IssueText, ...]]:
        """Split issues into sessions."""
        return list(prompt.batches(issues))

    def prompt_version(self, policy: AnyJobPolicy) -> str:
        """What goes into the input version of a job with these settings."""
        return questions.prompt_version(policy)

    async def decide(self, request: AgentRequest) -> AgentAnswer:
        """One session about issues. Raises AgentFailed."""
        answer = await self.ask(questions.about_issues(request))
        return AgentAnswer(_listed(answer, "decisions"), answer.cost, answer.denials)

    async def review(self, request: ReviewRequest) -> SessionAnswer:
        """One session about a tree. Raises AgentFailed."""
        return await self.ask(questions.about_tree(request))

    async def watch(self, request: WatchRequest) -> AgentAnswer:
        """What the changes mean: a session for each batch. Raises AgentFailed, with the cost of
        all of them."""
        said: list[Mapping[str, object]] = []
        cost = Cost()
        for session in questions.about_changes(request):
            left = request.budget_usd - cost.estimated_usd
            try:
                if left <= 0:
                    detail = "spent before all changes were told"
                    raise AgentFailed(Reason.BUDGET.value, detail, retryable=False, cost=Cost())
                answer = await self.ask(replace(session, budget_usd=left))
                said += _listed(answer, "changes")
            except AgentFailed as failure:
                failure.cost += cost
                raise
            cost += answer.cost
        return AgentAnswer(tuple(said), cost)

    async def ask(self, request: SessionRequest) -> SessionAnswer:
        """One session. Raises AgentFailed; whatever happens, it leaves no process and no file."""
        if reason := refused(request, self._host.kept_out):
            raise not_started(reason)
        store = None
        if request.session is not None:
            if self._host.stores is None:
                raise not_started("there is no place for sessions")
            store = self._host.stores(request.session)
        progress = Progress(
            moved_at=asyncio.get_running_loop().time(),
            tools=request.tools,
            root=root_of(request),
            resumed=request.session is not None and request.session.session_id is not None,
            copied=store is not None,
        )
        try:
            with session_folder(self._folder) as folder:
                leash = Leash(folder, self._host.cli or bundled_cli())
                try:
                    return await self._run(request, folder, leash, store, progress)
                finally:
                    leash.close()
        except OSError as error:  # a full disk, a folder that is not writable
            words = error.strerror or type(error).__name__
            detail = f"the session's folder cannot be used: {words}"
            raise failed(Reason.CRASHED, detail, progress) from error

    async def _run(
        self,
        request: SessionRequest,
        folder: Path,
        leash: Leash,
        store: SessionStore | None,
        progress: Progress,
    ) -> SessionAnswer:
        mirror = None if store is None else cast("SessionStore", Mirror(store))
        options = session_options(
            request,
            self._endpoint,
            self._bounds,
            Room(folder, leash.launcher, self._host.kept_out, mirror),
            denied=progress.denied.__setitem__,
            stderr=progress.stderr.append,
        )
        if store is not None and options.resume and options.cwd:
            config = folder / "config"
            progress.prior_usd = await lay_out(store, options.resume, Path(options.cwd), config)
        return await run_session(request.prompt, options, self._bounds, leash, progress)


def _listed(answer: SessionAnswer, name: str) -> tuple[Mapping[str, object], ...]:
    """The list of objects in an answer. Raises AgentFailed where there is none."""
    found = answer.output.get(name)
    if isinstance(found, list) and all(isinstance(item, dict) for item in found):
        return tuple(found)
    detail = f"the answer has no list of {name}"
    raise AgentFailed(
        Reason.SCHEMA.value, detail, retryable=True, cost=answer.cost, denials=answer.denials
    )


def not_started(reason: str) -> AgentFailed:
    """The failure of a session that would have broken a boundary."""
    return AgentFailed(Reason.BOUNDARY.value, reason, retryable=False, cost=Cost())


def bundled_cli() -> Path:
    """The CLI that came with the SDK, or else one on the path, which must itself find nothing there
    (``boundaries``). Raises AgentFailed."""
    bundled = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
    if bundled.is_file():
        return bundled
    if found := shutil.which("claude"):
        return Path(found).resolve()
    detail = "the agent SDK came without its CLI, and none is on the path"
    raise AgentFailed(Reason.NO_CLI.value, detail, retryable=True, cost=Cost())
