"""One session: the CLI's process from its start to its certain end.

The SDK is never cancelled. A deadline or a cancellation kills the CLI, and the SDK's reader then
comes to its end by itself: so neither a first nor a second cancellation can leave a process behind.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

from claude_agent_sdk import ClaudeAgentOptions, Message, query

from worker.agent.boundaries import Bounds
from worker.agent.leash import Leash
from worker.agent.outcome import Reason, answer_of, overdue
from worker.agent.progress import Progress
from worker.ports import SessionAnswer

logging.getLogger("claude_agent_sdk").setLevel(logging.CRITICAL)  # AgentFailed says it all

LEAVE_SECONDS = 5.0
"""For the CLI to leave after its result, and for the reader to end after the CLI."""


async def run_session(
    prompt: str, options: ClaudeAgentOptions, bounds: Bounds, leash: Leash, progress: Progress
) -> SessionAnswer:
    """Ask, and wait for the answer within the bounds. Raises AgentFailed."""
    reader = asyncio.create_task(_read(prompt, options, progress))
    reader.add_done_callback(_error_of)  # or asyncio warns of an error that nobody looked at
    try:
        passed = await _wait(reader, bounds, progress)
    finally:
        leash.kill()
        await _ended(reader)
    if passed is not None and progress.result is None:
        idle = passed is Reason.IDLE
        raise overdue(progress, passed, bounds.idle_seconds if idle else bounds.wall_seconds)
    return answer_of(progress, _error_of(reader))


async def _read(prompt: str, options: ClaudeAgentOptions, progress: Progress) -> None:
    clock = asyncio.get_running_loop().time
    messages = cast("AsyncGenerator[Message]", query(prompt=prompt, options=options))
    async with aclosing(messages):
        async for message in messages:
            progress.note(message, clock())


async def _wait(reader: asyncio.Task[None], bounds: Bounds, progress: Progress) -> Reason | None:
    """Wait for the reader's end. Gives the deadline that passed before it, if one did."""
    clock = asyncio.get_running_loop().time
    wall = clock() + bounds.wall_seconds
    while not reader.done():
        patience = LEAVE_SECONDS if progress.result else bounds.idle_seconds
        idle = progress.moved_at + patience
        now = clock()
        if now >= wall:
            return Reason.TIMEOUT
        if now >= idle:
            return Reason.IDLE
        await asyncio.wait({reader}, timeout=min(wall, idle) - now)
    return None


async def _ended(reader: asyncio.Task[None]) -> None:
    """Let the reader notice that the CLI is gone. A cancellation here does no harm any more."""
    await asyncio.wait({reader}, timeout=LEAVE_SECONDS)
    reader.cancel()


def _error_of(reader: asyncio.Task[None]) -> BaseException | None:
    return None if reader.cancelled() or not reader.done() else reader.exception()
