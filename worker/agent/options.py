"""The options of every session: what the model and the CLI may do, and for how long."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from claude_agent_sdk import ClaudeAgentOptions

from worker.ports import AgentRequest
from worker.prompt import SYSTEM_PROMPT, schema

MAX_OUTPUT_TOKENS = 32_000
"""Of one answer: four times what 40 decisions take, and the bound of what one answer can cost."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Which model, and where."""

    model: str | None
    api_key: str
    base_url: str | None


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long a session may take. ``idle_seconds``: between two signs of the model's progress."""

    wall_seconds: float
    idle_seconds: float
    api_retries: int


def session_options(
    request: AgentRequest,
    endpoint: Endpoint,
    bounds: Bounds,
    *,
    folder: Path,
    launcher: Path,
    limit_usd: float,
    stderr: Callable[[str], None],
) -> ClaudeAgentOptions:
    """What the SDK is told for one session."""
    numbers = [issue.number for issue in request.issues]
    return ClaudeAgentOptions(
        model=endpoint.model,
        effort="low",
        system_prompt=SYSTEM_PROMPT,
        output_format={"type": "json_schema", "schema": schema(request.labels, numbers)},
        verbatim_prompts=True,  # or "@/some/file" in an issue is replaced by the file
        tools=[],
        allowed_tools=[],
        permission_mode="dontAsk",
        setting_sources=[],
        strict_mcp_config=True,
        max_turns=request.max_turns,
        max_budget_usd=limit_usd,
        extra_args={"no-session-persistence": None},
        include_partial_messages=True,  # progress can be told from pings
        cwd=folder / "work",
        cli_path=launcher,
        env=environment(endpoint, bounds, folder),
        stderr=stderr,
    )


def environment(endpoint: Endpoint, bounds: Bounds, folder: Path) -> dict[str, str]:
    """The variables of the CLI, besides the few that the wrapper lets through."""
    patience = str(int(bounds.idle_seconds * 500))  # half the idle deadline, in milliseconds
    variables = {
        "ANTHROPIC_API_KEY": endpoint.api_key,
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "CLAUDE_CONFIG_DIR": str(folder / "config"),
        "CLAUDE_CODE_MAX_RETRIES": str(bounds.api_retries),
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(MAX_OUTPUT_TOKENS),
        "API_TIMEOUT_MS": patience,
        "CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS": patience,
        "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
        # Without it the whole prompt is sent a second time, to name the session.
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_TERMINAL_TITLE": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    if endpoint.base_url:
        variables["ANTHROPIC_BASE_URL"] = endpoint.base_url
        if urlsplit(endpoint.base_url).hostname in ("localhost", "127.0.0.1", "::1"):
            variables["NO_PROXY"] = variables["no_proxy"] = "localhost,127.0.0.1,::1"
    return variables
