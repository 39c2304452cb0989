"""The five boundaries of every session. Nothing starts the SDK but with options from here.

1. Tools: those that the request names, of Read, Glob and Grep. No shell, no network, no write.
2. Permission: nothing is asked; allowed is what a rule allows that names the checkout from the
   disk's root. ``.git``, ``.env`` and the data folder are denied besides.
3. The gate: a hook that decides on real paths (``worker.agent.gate``).
4. Isolation: no settings, hooks, instructions or servers of the repository or of this machine; own
   folders; an environment with no secret but the model's key (``worker.agent.cli_wrapper``) and no
   program to be found on its path. The prompt is taken as written: ``@file`` and ``/command`` in it
   mean nothing.
5. Budgets: turns, dollars, the whole time, and the time without progress, each with a word of its
   own when it is spent (``worker.agent.outcome``).

Invariant: what is long or secret goes over standard input or the environment, never into argv,
which everybody on the machine can read.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from claude_agent_sdk import ClaudeAgentOptions, SessionStore

from worker.agent.gate import gate
from worker.ports import Denial, SessionRequest
from worker.settings.folders import overlap, unsafe_path

TOOLS: Final = ("Read", "Glob", "Grep")
"""All that a session may have."""

MAX_FRAME_BYTES = 16 << 20
"""Of one message of the CLI: with a session that is kept, the prompt stands in it twice."""

MAX_OUTPUT_TOKENS: Final = 32_000
"""Of one answer: four times what 40 decisions take, and the bound of what one answer can cost."""

MOST_ARGUMENT_BYTES: Final = 100_000
"""Of the system prompt, and of the schema: the kernel takes no longer argument than 128 KiB."""

_UNNAMEABLE: Final = re.compile(r"[^\w./+@=-]")
_SESSION_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


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


@dataclass(frozen=True, slots=True)
class Room:
    """Where one session lives: its own folder, what starts the CLI, the folders that no checkout
    may touch, and where its transcript is kept, if it is."""

    folder: Path
    launcher: Path
    kept_out: Sequence[Path]
    store: SessionStore | None


def refused(request: SessionRequest, kept_out: Sequence[Path]) -> str | None:
    """Why a session cannot be held within its boundaries, if it cannot: it is not started then."""
    if not set(request.tools) <= set(TOOLS):
        return f"a session has no tools but {', '.join(TOOLS)}"
    if request.session is not None and not _is_id(request.session.session_id):
        return "a session's id is no UUID"
    arguments = (request.system, json.dumps(request.schema))
    if any(len(text.encode(errors="replace")) > MOST_ARGUMENT_BYTES for text in arguments):
        return f"system prompt or schema is larger than {MOST_ARGUMENT_BYTES} bytes"
    if request.root is None:
        return "tools need a checkout" if request.tools else None
    if not request.root.is_dir():
        return "the checkout is no folder"
    if any(overlap(request.root, folder) for folder in kept_out):
        return "the checkout and the data folder lie in one another"
    return unsafe_path(request.root)


def session_options(
    request: SessionRequest,
    endpoint: Endpoint,
    bounds: Bounds,
    room: Room,
    *,
    denied: Callable[[str, Denial], None],
    stderr: Callable[[str], None],
) -> ClaudeAgentOptions:
    """What the SDK is told for one session that is not refused."""
    root = root_of(request)
    resumed = request.session.session_id if request.session else None
    return ClaudeAgentOptions(
        model=endpoint.model,
        effort="low",
        # Without the snapshot: a resumed session would go on with its first system prompt.
        system_prompt={"type": "custom", "prompt": request.system, "snapshot": False},
        output_format={"type": "json_schema", "schema": dict(request.schema)},
        verbatim_prompts=True,  # or "@/some/file" in an issue is replaced by the file
        tools=list(request.tools),
        allowed_tools=[] if root is None else [f"Read(/{root}/**)"],
        disallowed_tools=[] if root is None else denials(root, room.kept_out),
        permission_mode="dontAsk",
        hooks=None if root is None else {"PreToolUse": [gate(root, denied)]},
        setting_sources=[],
        strict_mcp_config=True,
        skills=[],
        max_turns=request.max_turns,
        max_buffer_size=MAX_FRAME_BYTES,
        max_budget_usd=request.budget_usd + headroom(request),
        resume=resumed,
        session_store=room.store,
        extra_args={} if room.store else {"no-session-persistence": None},
        include_partial_messages=True,  # progress can be told from pings
        cwd=root or room.folder / "work",
        cli_path=room.launcher,
        env=environment(endpoint, bounds, room.folder),
        stderr=stderr,
    )


def root_of(request: SessionRequest) -> Path | None:
    """The real path of what the session may read, if it may read anything."""
    return request.root.resolve() if request.root and request.tools else None


def denials(root: Path, kept_out: Sequence[Path]) -> list[str]:
    """Rules against what may hold a secret. The two slashes at the start mean the disk's root.

    ``?`` stands for a character that a rule would take for something else: wider, so still denied.
    """
    apart = [_UNNAMEABLE.sub("?", str(folder.resolve())) for folder in kept_out]
    places = [*apart, f"{root}/.git", f"{root}/**/.git"]
    return [
        *(f"Read(/{place}{rest})" for place in places for rest in ("", "/**")),
        f"Read(/{root}/**/.env)",
    ]


INPUT_USD: Final = 5e-6
OUTPUT_USD: Final = 25e-6
"""Dollars a token, of the dearest model in use: for what the SDK gives no estimate of."""

CHARACTERS_PER_TOKEN: Final = 3
TOKENS_PER_READ: Final = 25_000
"""The most that one call of a tool puts before the model."""


def headroom(request: SessionRequest) -> float:
    """Dollars of one answer at the dearest price.

    The CLI compares what was spent with its limit after an answer, and throws the answer away that
    went over it, though it is paid for. So the CLI's limit stands one answer above the budget.
    """
    tokens_in = len(request.prompt) / CHARACTERS_PER_TOKEN
    if request.tools:
        tokens_in += TOKENS_PER_READ
    return round(tokens_in * INPUT_USD + request.answer_tokens * OUTPUT_USD, 4)


def environment(endpoint: Endpoint, bounds: Bounds, folder: Path) -> dict[str, str]:
    """The variables of the CLI, besides the few that the wrapper lets through."""
    patience = str(int(bounds.idle_seconds * 500))  # half the idle deadline, in milliseconds
    variables = {
        "ANTHROPIC_API_KEY": endpoint.api_key,
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        # Or the CLI runs git in the checkout, under whatever configuration it finds there.
        "PATH": str(folder / "home"),
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


def _is_id(session_id: str | None) -> bool:
    return session_id is None or _SESSION_ID.fullmatch(session_id) is not None
