"""What the pipeline needs of a repository's files: a read-only tree of one commit."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from worker.ports.github import Place


@dataclass(frozen=True, slots=True)
class Checkout:
    """A tree of ``commit`` under ``root``, a real path; it holds regular files alone, and no git.

    ``files``: their paths below ``root``, sorted, each with git's id of its content. ``bytes``: of
    all of them. ``left_out``: how many
    entries of the commit are not there, by reason: ``too-large``, ``link``, ``submodule``,
    ``odd-name``, ``env-file``, ``over-limit``.
    """

    root: Path
    commit: str
    files: Mapping[str, str]
    bytes: int
    left_out: Mapping[str, int]


class CheckoutFailed(Exception):  # noqa: N818 - an outcome, told apart by its attributes
    """There is no tree. ``reason`` is a short stable word; ``detail`` one line for people."""

    def __init__(self, reason: str, detail: str, *, retryable: bool) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
        self.retryable = retryable


class Checkouts(Protocol):
    """Trees of commits, kept on this machine."""

    def at(self, place: Place, commit: str) -> AbstractAsyncContextManager[Checkout]:
        """The tree, for as long as the block lasts; nobody changes or removes it meanwhile.

        ``commit`` is the whole id. A tree that is there is used as it is: nothing is fetched.
        Raises CheckoutFailed.
        """
