"""Which entries of a commit are written: decided from the list, before anything is."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from worker.checkout.bounds import Bounds, LeftOut, Reason, Stopped
from worker.checkout.names import unfit

Sizes = Callable[[Iterable[str]], dict[str, int]]


@dataclass(frozen=True, slots=True)
class Chosen:
    """A file that is written: the id of its content, its path, its bytes."""

    oid: str
    path: str
    size: int


@dataclass
class Choice:
    """What is written, in git's order; and how much is not, and why."""

    files: list[Chosen] = field(default_factory=list)
    bytes: int = 0
    left_out: Counter[LeftOut] = field(default_factory=Counter)


def choose(entries: Iterable[tuple[str, str, bytes]], sizes: Sizes, bounds: Bounds) -> Choice:
    """Decide. ``sizes`` tells those of objects that are there; what is not there was too large to
    be sent. Raises Stopped where the list is longer than any commit that we read."""
    choice = Choice()
    fit = list(_fit(entries, choice, bounds))
    known = sizes(oid for oid, _ in fit)
    folders: set[str] = set()
    for oid, path in fit:
        size = known.get(oid)
        new = _folders_of(path) - folders
        if size is None or size > bounds.file_bytes:
            choice.left_out[LeftOut.TOO_LARGE] += 1
        elif (
            len(choice.files) >= bounds.files
            or len(folders) + len(new) > bounds.files
            or choice.bytes + size > bounds.tree_bytes
        ):
            choice.left_out[LeftOut.OVER_LIMIT] += 1
        else:
            folders |= new
            choice.files.append(Chosen(oid, path, size))
            choice.bytes += size
    return choice


def _fit(
    entries: Iterable[tuple[str, str, bytes]], choice: Choice, bounds: Bounds
) -> Iterator[tuple[str, str]]:
    """Regular files with a name that can be written; the rest is counted."""
    for number, (mode, oid, path) in enumerate(entries):
        if number >= bounds.entries:
            detail = f"the commit has more than {bounds.entries} entries"
            raise Stopped(Reason.TOO_LARGE, detail)
        reason = _KINDS.get(mode) or unfit(path)
        if reason is not None:
            choice.left_out[reason] += 1
        elif not mode.startswith("100"):
            choice.left_out[LeftOut.ODD_NAME] += 1
        else:
            yield oid, path.decode()


_KINDS = {"120000": LeftOut.LINK, "160000": LeftOut.SUBMODULE}


def _folders_of(path: str) -> set[str]:
    parts = path.split("/")[:-1]
    return {"/".join(parts[:end]) for end in range(1, len(parts) + 1)}
