"""What happens to labels, in the repository and on issues."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from sandbox.github.deeds.doer import Doer, change, current, named, record, tell
from sandbox.github.happenings import Happening
from sandbox.github.state import Issue, Label, Repository
from sandbox.github.world import World


def find_or_make_label(world: World, doer: Doer, repository: Repository, name: str) -> Label:
    """As GitHub does: naming an unknown label on an issue creates it."""
    known = repository.labels.get(name.lower())
    return known or create_label(world, doer, repository, name)


def create_label(
    world: World,
    doer: Doer,
    repository: Repository,
    name: str,
    color: str = "ededed",
    description: str | None = None,
) -> Label:
    label = world.make_label(repository, name, color, description)
    world.tell(Happening("label", "created", doer.account, repository, label=label))
    return label


def edit_label(
    world: World,
    doer: Doer,
    repository: Repository,
    label: Label,
    *,
    name: str | None = None,
    color: str | None = None,
    description: str | None = None,
) -> None:
    changes: dict[str, object] = {}
    if name is not None and name != label.name:
        changes["name"] = {"from": label.name}
        del repository.labels[label.name.lower()]
        repository.labels[name.lower()] = label
        label.name = name
    if color is not None and color != label.color:
        changes["color"] = {"from": label.color}
        label.color = color
    if description is not None and description != label.description:
        changes["description"] = {"from": label.description or ""}
        label.description = description
    if changes:
        world.tell(
            Happening("label", "edited", doer.account, repository, label=label, changes=changes)
        )


def delete_label(world: World, doer: Doer, repository: Repository, label: Label) -> None:
    """Takes it off every issue too, without an event on each."""
    at = world.clock.now()
    del repository.labels[label.name.lower()]
    for issue in repository.issues.values():
        state = issue.history.latest
        if state is not None and label in state.labels:
            kept = tuple(each for each in state.labels if each is not label)
            issue.history.put(at, dataclasses.replace(state, labels=kept))
    world.tell(Happening("label", "deleted", doer.account, repository, label=label))


def add_labels(world: World, doer: Doer, issue: Issue, names: Iterable[str]) -> None:
    """Those already there change nothing: no event, no new `updated_at`."""
    state = current(issue)
    wanted = dict.fromkeys(
        find_or_make_label(world, doer, issue.repository, name) for name in names
    )
    new = [label for label in wanted if label not in state.labels]
    if not new:
        return
    at = world.clock.now()
    change(issue, at, labels=(*state.labels, *new))
    for label in new:
        record(world, doer, at, issue, "labeled", label=named(label))
        tell(world, doer, "labeled", issue, label=label)


def remove_labels(world: World, doer: Doer, issue: Issue, labels: Iterable[Label]) -> None:
    state = current(issue)
    gone = [label for label in labels if label in state.labels]
    if not gone:
        return
    at = world.clock.now()
    change(issue, at, labels=tuple(label for label in state.labels if label not in gone))
    for label in gone:
        record(world, doer, at, issue, "unlabeled", label=named(label))
        tell(world, doer, "unlabeled", issue, label=label)


def set_labels(world: World, doer: Doer, issue: Issue, names: Iterable[str]) -> None:
    wanted = list(names)
    keys = {name.lower() for name in wanted}
    gone = [label for label in current(issue).labels if label.name.lower() not in keys]
    remove_labels(world, doer, issue, gone)
    add_labels(world, doer, issue, wanted)
