"""The adapter: a request of the pipeline becomes one session of the agent SDK."""

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path
from secrets import token_hex

import claude_agent_sdk

from triage.plan import Cost
from worker import prompt
from worker.agent.folder import session_folder
from worker.agent.leash import Leash
from worker.agent.options import Bounds, Endpoint, session_options
from worker.agent.outcome import Reason
from worker.agent.progress import INPUT_USD, OUTPUT_USD, Progress
from worker.agent.session import run_session
from worker.ports import AgentAnswer, AgentFailed, AgentRequest, IssueText

TOKENS_PER_DECISION = 250
CHARACTERS_PER_TOKEN = 3


class ClaudeAgent:
    """Decides about issues with the model. One instance serves many sessions, also at once."""

    prompt_version = prompt.PROMPT_VERSION

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
        cli: Path | None = None,
    ) -> None:
        """``folder`` is where sessions have their own folders (default: the system's for temporary
        files); it must allow programs to be run. ``cli`` replaces the one that came with the SDK.
        """
        self._endpoint = Endpoint(model, api_key, base_url)
        self._bounds = Bounds(wall_seconds, idle_seconds, api_retries)
        self._folder = folder
        self._cli = cli

    def batches(self, issues: Sequence[IssueText]) -> list[tuple[IssueText, ...]]:
        """Split issues into sessions."""
        return list(prompt.batches(issues))

    async def decide(self, request: AgentRequest) -> AgentAnswer:
        """One session. Raises AgentFailed; whatever happens, it leaves no process and no file."""
        text = prompt.render(request, nonce=token_hex(8))
        progress = Progress(moved_at=asyncio.get_running_loop().time())
        with session_folder(self._folder) as folder:
            leash = Leash(folder, self._cli or bundled_cli())
            try:
                options = session_options(
                    request,
                    self._endpoint,
                    self._bounds,
                    folder=folder,
                    launcher=leash.launcher,
                    limit_usd=request.budget_usd + headroom(text, len(request.issues)),
                    stderr=progress.stderr.append,
                )
                return await run_session(text, options, self._bounds, leash, progress)
            finally:
                leash.close()


def bundled_cli() -> Path:
    """The CLI that came with the SDK, or else one on the path. Raises AgentFailed."""
    bundled = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
    if bundled.is_file():
        return bundled
    if found := shutil.which("claude"):
        return Path(found).resolve()
    detail = "the agent SDK came without its CLI, and none is on the path"
    raise AgentFailed(Reason.NO_CLI.value, detail, retryable=True, cost=Cost())


def headroom(text: str, decisions: int) -> float:
    """Dollars of one answer at the dearest price.

    The CLI compares what was spent with its limit after an answer, and throws the answer away that
    went over it, though it is paid for. So the CLI's limit stands one answer above the budget.
    """
    tokens_in = len(text) / CHARACTERS_PER_TOKEN
    return round(tokens_in * INPUT_USD + decisions * TOKENS_PER_DECISION * OUTPUT_USD, 4)
