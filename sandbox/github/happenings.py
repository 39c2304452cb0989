"""What the world tells those who listen (the webhooks): one value per happening."""

from __future__ import annotations

from dataclasses import dataclass, field

from sandbox.github.state import Account, Comment, Installation, Issue, Label, Repository


@dataclass(frozen=True, slots=True)
class Happening:
    """Told while the objects are as the payload should show them (before a deletion)."""

    event: str
    action: str
    sender: Account
    repository: Repository | None = None
    issue: Issue | None = None
    comment: Comment | None = None
    label: Label | None = None
    installation: Installation | None = None
    changes: dict[str, object] | None = None
    moved_to: Issue | None = None
    repositories: tuple[Repository, ...] = ()
    detail: dict[str, object] = field(default_factory=dict)
