"""How far two trees are apart, and where a file went."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.triage.reviews import known
from triage.tree import SAMPLE, changed_share, renames_of, tree_of

TREES = st.dictionaries(st.text("abcdef/", min_size=1, max_size=8), st.sampled_from("123"))


@pytest.mark.parametrize(
    ("old", "new", "share"),
    [
        ({}, {}, 0),
        ({"a": "1"}, {"a": "1"}, 0),
        ({"a": "1"}, {"a": "2"}, 1),
        ({"a": "1"}, {}, 1),
        ({}, {"a": "1"}, 1),
        ({"a": "1", "b": "1"}, {"a": "1", "b": "2"}, 0.5),
        ({"a": "1", "b": "1"}, {"a": "1"}, 0.5),
        ({"a": "1"}, {"a": "1", "b": "1", "c": "1", "d": "1"}, 0.75),
        ({"a": "1"}, {"b": "1"}, 1),
    ],
)
def test_the_share_of_files_that_changed(
    old: dict[str, str], new: dict[str, str], share: float
) -> None:
    """New, gone and changed files, of all that either tree has."""
    assert changed_share(tree_of(old), tree_of(new)) == share


@given(TREES, TREES)
def test_the_share_is_exact_where_both_trees_are_whole(
    old: dict[str, str], new: dict[str, str]
) -> None:
    """And the same in both directions."""
    paths = old.keys() | new.keys()
    differs = sum(old.get(path) != new.get(path) for path in paths)
    expected = differs / len(paths) if paths else 0.0
    assert changed_share(tree_of(old), tree_of(new)) == expected
    assert changed_share(tree_of(new), tree_of(old)) == expected


@pytest.mark.parametrize("changed", [0, 500, 2500, 5000])
def test_the_share_is_near_in_large_trees(changed: int) -> None:
    """A sample of 2,000 of 5,000 files; a third of the change is renames."""
    old = {f"src/{n}.py": "1" for n in range(5000)}
    new = dict.fromkeys(old, "1")
    for n in range(changed):
        del new[f"src/{n}.py"]
        new[f"src/{n}.py" if n % 3 else f"lib/{n}.py"] = "2"
    exact = sum(old.get(p) != new.get(p) for p in old.keys() | new.keys()) / len(
        old.keys() | new.keys()
    )
    assert len(tree_of(old).sample) == SAMPLE
    assert abs(changed_share(tree_of(old), tree_of(new)) - exact) < 0.03


def test_a_small_tree_beside_a_large_one() -> None:
    """Nearly everything is new."""
    large = {f"src/{n}.py": "1" for n in range(5000)}
    assert changed_share(tree_of({"src/1.py": "1"}), tree_of(large)) > 0.99
    assert changed_share(tree_of(large), tree_of({})) == 1


def test_a_tree_is_known_by_its_files() -> None:
    """Whatever their order."""
    one, other = {"a": "1", "b": "2"}, {"b": "2", "a": "1"}
    assert tree_of(one) == tree_of(other)
    assert tree_of(one).digest != tree_of({"a": "1", "b": "3"}).digest
    assert tree_of({"\ud800": "1"}).files == 1


@pytest.mark.parametrize(
    ("digest", "files", "moved"),
    [
        ("d1", {"src/main.py": "d1"}, {"src/app.py": "src/main.py"}),
        ("d1", {"src/main.py": "d2"}, {}),
        ("d1", {"src/app.py": "d1", "src/copy.py": "d1"}, {}),
        ("d1", {"src/main.py": "d1", "src/copy.py": "d1"}, {}),
        ("", {"src/main.py": ""}, {}),
    ],
)
def test_where_a_file_with_findings_went(
    digest: str, files: dict[str, str], moved: dict[str, str]
) -> None:
    """Only where there is one answer."""
    assert renames_of((known(file_digest=digest),), files) == moved


def test_two_files_that_were_the_same_are_not_one() -> None:
    """Either may be the one that moved: none is followed."""
    findings = (known(file="a.py", file_digest="d"), known(file="b.py", file_digest="d"))
    assert renames_of(findings, {"c.py": "d"}) == {}


def test_a_file_that_had_findings_itself_is_no_new_place() -> None:
    """It was there before: the one that is gone did not become it."""
    findings = (known(file="a.py", file_digest="d"), known(file="b.py", file_digest="d"))
    assert renames_of(findings, {"b.py": "d"}) == {}
