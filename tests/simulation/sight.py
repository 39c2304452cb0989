"""What a story sees, and what GitHub does not show yet."""

import asyncio
from dataclasses import replace

from tests.simulation.world import REPOSITORY, REPOSITORY_ID, SECOND, TIMING, World
from triage.identifiers import EffectKind, Family, effect_key

WINDOW = TIMING.absence_window.total_seconds()
WIDE_WINDOW = WINDOW * 3
WIDE = replace(TIMING, absence_window=SECOND * WIDE_WINDOW)
"""Bounds for lags between one window and two: a machine that is busy must not close that gap."""
LISTS = ("issue_comments", "repository_comments", "issues", "issues_by_creator")


def comment_key(w: World, number: int) -> str:
    """The effect key of the bot's comment on an issue."""
    issue = w.github.issue(REPOSITORY, number)
    return effect_key(REPOSITORY_ID, issue.id, Family.TRIAGE, EffectKind.COMMENT)


async def blind(w: World, lag: float, views: tuple[str, ...] = LISTS) -> None:
    """From now on these views show only what is older than this many seconds: they show at least
    what is there."""
    await asyncio.sleep(lag)
    for view in views:
        w.github.fail("GET .", "stale", view=view, lag=lag)
