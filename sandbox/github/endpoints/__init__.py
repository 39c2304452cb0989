"""The REST endpoints, one module per noun; `ROUTES` is all of them."""

from __future__ import annotations

from sandbox.github.endpoints import (
    accounts,
    apps,
    comments,
    contents,
    events,
    issues,
    labels,
    reactions,
    repositories,
)
from sandbox.github.routing import Route

# Within a length of path the first that fits wins: literal paths (issues/comments) come first.
ROUTES: list[Route] = [
    *apps.ROUTES,
    *accounts.ROUTES,
    *repositories.ROUTES,
    *contents.ROUTES,
    *events.ROUTES,
    *comments.ROUTES,
    *reactions.ROUTES,
    *labels.ROUTES,
    *issues.ROUTES,
]
