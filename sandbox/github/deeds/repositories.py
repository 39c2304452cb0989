"""What happens to repositories."""

from __future__ import annotations

from sandbox.github.deeds.doer import Doer
from sandbox.github.happenings import Happening
from sandbox.github.state import Repository
from sandbox.github.world import World


def rename_repository(world: World, doer: Doer, repository: Repository, name: str) -> None:
    before = repository.name
    repository.name = name
    repository.updated_at = world.now_stamp()
    world.names[repository.full_name.lower()] = repository.id
    changes: dict[str, object] = {"repository": {"name": {"from": before}}}
    world.tell(Happening("repository", "renamed", doer.account, repository, changes=changes))


def delete_repository(world: World, doer: Doer, repository: Repository) -> None:
    """From here on it answers 404, by whatever name."""
    world.tell(Happening("repository", "deleted", doer.account, repository))
    del world.repositories[repository.id]


def make_private(world: World, doer: Doer, repository: Repository, *, on: bool) -> None:
    repository.private = on
    repository.updated_at = world.now_stamp()
    action = "privatized" if on else "publicized"
    world.tell(Happening("repository", action, doer.account, repository))


def archive_repository(world: World, doer: Doer, repository: Repository, *, on: bool) -> None:
    repository.archived = on
    repository.updated_at = world.now_stamp()
    action = "archived" if on else "unarchived"
    world.tell(Happening("repository", action, doer.account, repository))
