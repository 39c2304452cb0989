"""How far a tree of files is from another one, from a small sample of each.

The sample is of the paths with the least digests: it is the same choice in every tree, so what two
samples have in common is measured without keeping either tree, and exactly where both are whole.
"""

import hashlib
from collections.abc import Mapping

from triage.findings import Finding, Tree
from triage.identifiers import digest_of

SAMPLE = 2_000
"""Files that are kept of a tree: 36 kB, and a share that is right to about two points in 100."""

_DIGITS = 8


def tree_of(files: Mapping[str, str]) -> Tree:
    """A tree as it is kept. ``files`` maps each path to a digest of its content."""
    sample = sorted(f"{_short(path)}:{_short(content)}" for path, content in files.items())
    return Tree(
        files=len(files), digest=digest_of(sorted(files.items())), sample=tuple(sample[:SAMPLE])
    )


def changed_share(old: Tree, new: Tree) -> float:
    """The share, 0 to 1, of the files of both trees that are new, gone or changed."""
    before, after = _pairs(old), _pairs(new)
    end = min(_end(old, before), _end(new, after))
    paths = [path for path in before.keys() | after.keys() if path <= end]
    if not paths:
        return 0.0
    return sum(before.get(path) != after.get(path) for path in paths) / len(paths)


def renames_of(findings: tuple[Finding, ...], files: Mapping[str, str]) -> dict[str, str]:
    """Where the files with findings are now that are not at their path any more: the one file with
    the same content that had none. More than one such file, or an unknown digest: none."""
    known = {item.file for item in findings}
    by_content: dict[str, list[str]] = {}
    for path, content in files.items():
        if path not in known:
            by_content.setdefault(content, []).append(path)
    gone = {item.file: item.file_digest for item in findings if item.file not in files}
    moved: dict[str, str] = {}
    for old, content in gone.items():
        there = by_content.get(content, []) if content else []
        twins = [other for other in gone if gone[other] == content]
        if len(there) == 1 and len(twins) == 1:
            moved[old] = there[0]
    return moved


def _pairs(tree: Tree) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in tree.sample:
        path, _, content = item.partition(":")
        found[path] = content
    return found


def _end(tree: Tree, pairs: Mapping[str, str]) -> str:
    """The last path of a sample; beyond it nothing is known of a tree that is larger."""
    return max(pairs) if tree.files > len(tree.sample) else "g"


def _short(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:_DIGITS]
