"""Which finding is which: told in other words, some lines away, in a file that moved."""

import string
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.triage.reviews import known
from triage.findings import Finding, Severity
from triage.matching import NEAR_LINES, SPOT_LINES, Told, alike, matched, new_id

LOOP = "The loop runs one step past the end."
SECRET = "A password is written into the source."


def told(line: int = 10, summary: str = LOOP, file: str = "src/app.py", name: str = "x") -> Told:
    """A finding of this review."""
    return Told(name, file, line, Severity.LOW, summary)


def same(new: Told, old: Finding) -> bool:
    """Whether the two are one."""
    return matched([new], [old], {}) == {0: 0}


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (told(), True),
        (told(line=14), True),
        (told(line=10 + NEAR_LINES - 1), True),
        (told(line=5000), True),
        (told(summary="Loop goes one step past the end of the list."), True),
        (told(line=25, summary="The loop runs a step beyond the end"), True),
        (told(summary="Counts an element too many"), True),
        (told(line=10 + SPOT_LINES, summary="Counts an element too many"), True),
        (told(line=10 + SPOT_LINES + 1, summary="Counts an element too many"), False),
        (told(line=16, summary=SECRET), False),
        (told(line=16, summary=SECRET, name="p"), True),
        (told(line=60, summary=SECRET, name="p"), False),
        (told(line=300, summary=SECRET, name="p"), False),
        (told(file="src/db.py"), False),
        (told(file="src/db.py", name="p"), False),
        (told(file="src/db.py", summary=SECRET, name="p"), False),
    ],
)
def test_one_finding_or_two(new: Told, expected: bool) -> None:
    """Place and words, each alone where it is clear; an echoed id never alone."""
    assert same(new, known()) is expected


def test_severity_makes_no_difference() -> None:
    """A model weighs one fault differently from night to night."""
    assert same(told(), known(severity=Severity.HIGH))


def test_two_faults_on_one_line_stay_two() -> None:
    """Each finds its own, in whatever order they are told."""
    prior = [known("f-00000001", told_as="p"), known("f-00000002", summary=SECRET, told_as="q")]
    here = [told(summary="The source has a password written into it."), told()]
    assert matched(here, prior, {}) == {0: 1, 1: 0}
    assert matched(here[::-1], prior, {}) == {0: 0, 1: 1}


def test_the_nearer_of_two_alike_is_the_one() -> None:
    """The same fault three times in a file, all of them moved by three lines."""
    prior = [known(f"f-0000000{n}", line=line) for n, line in enumerate((10, 50, 90))]
    here = [told(line=93), told(line=13), told(line=53)]
    assert matched(here, prior, {}) == {0: 2, 1: 0, 2: 1}


def test_a_fault_that_repeats_itself_keeps_its_order() -> None:
    """Lines put in above shift all of them alike: the second is not taken for the first."""
    prior = [known("f-00000001", line=1), known("f-00000002", line=3)]
    assert matched([told(line=5), told(line=3)], prior, {}) == {0: 1, 1: 0}


def test_a_crossed_echo_does_not_swap_findings() -> None:
    """A session that mixes its ids up does not turn one fault into the other."""
    prior = [known("f-00000001"), known("f-00000002", line=60, summary=SECRET, told_as="q")]
    here = [told(name="q"), told(line=60, summary=SECRET, name="p")]
    assert matched(here, prior, {}) == {0: 0, 1: 1}


def test_what_was_called_resolved_is_not_matched_by_its_spot_alone() -> None:
    """Another fault took its place; the same one in other words would still be found."""
    other = [told(summary="Counts an element too many")]
    assert matched(other, [known()], {}, apart={0}) == {}
    assert matched([told()], [known()], {}, apart={0}) == {0: 0}


def test_a_renamed_file_takes_its_findings_along() -> None:
    """Its old path is another file's business now."""
    renames = {"src/app.py": "src/main.py"}
    assert matched([told(file="src/main.py")], [known()], renames) == {0: 0}
    assert matched([told(file="src/app.py")], [known()], renames) == {}


@pytest.mark.parametrize(
    ("one", "other", "least", "most"),
    [
        (LOOP, LOOP, 1, 1),
        (LOOP, LOOP.upper(), 1, 1),
        (LOOP, SECRET, 0, 0.2),
        ("", "", 1, 1),
        ("", LOOP, 0, 0),
        ("迴圈多跑了一次", "迴圈會多跑一次", 0.6, 1),
        ("迴圈多跑了一次", "密碼寫在程式碼裡", 0, 0.2),
        ("!!!", "???", 0, 0),
    ],
)
def test_how_far_two_sentences_are_alike(one: str, other: str, least: float, most: float) -> None:
    """In both directions the same, and in scripts without spaces too."""
    assert least <= alike(one, other) <= most
    assert alike(one, other) == alike(other, one)


WORDS = st.lists(
    st.sampled_from("loop end password source step query value text".split()), max_size=5
)
SUMMARIES = WORDS.map(" ".join)
FILES = st.sampled_from(["a.py", "b.py"])
TOLD = st.builds(
    Told,
    st.sampled_from("pqrs"),
    FILES,
    st.integers(1, 60),
    st.sampled_from(Severity),
    SUMMARIES,
)
PRIOR = st.lists(
    st.builds(
        lambda file, line, summary, told_as: known(
            file=file, line=line, summary=summary, told_as=told_as
        ),
        FILES,
        st.integers(1, 60),
        SUMMARIES,
        st.sampled_from("pqrs"),
    ),
    max_size=6,
).map(lambda found: [item.model_copy(update={"id": f"f-{n:08x}"}) for n, item in enumerate(found)])


@given(st.lists(TOLD, max_size=6), PRIOR)
def test_the_matching_is_one_to_one(here: list[Told], prior: list[Finding]) -> None:
    """And never across files."""
    found = matched(here, prior, {})
    assert len(set(found.values())) == len(found)
    assert all(here[new].file == prior[old].file for new, old in found.items())


@given(st.lists(TOLD, max_size=6, unique=True), PRIOR)
def test_the_order_makes_no_difference(here: list[Told], prior: list[Finding]) -> None:
    """The same findings, shuffled, find the same."""
    mixed, others = here[::-1], prior[::-1]
    before = {here[new]: prior[old].id for new, old in matched(here, prior, {}).items()}
    after = {mixed[new]: others[old].id for new, old in matched(mixed, others, {}).items()}
    assert before == after


@given(
    st.dictionaries(st.tuples(FILES, st.integers(1, 2000)), SUMMARIES, max_size=6),
    st.integers(0, 5),
)
def test_findings_that_move_together_stay_themselves(
    places: dict[tuple[str, int], str], shift: int
) -> None:
    """Some lines are put in above them: each is found again where it went."""
    prior = [
        known(f"f-{n:08x}", file=file, line=line, summary=f"{words} number{n}")
        for n, ((file, line), words) in enumerate(places.items())
    ]
    here = [told(item.line + shift, item.summary, item.file, "z") for item in prior]
    assert matched(here, prior, {}) == {n: n for n in range(len(prior))}


def test_a_new_id_is_of_file_and_words() -> None:
    """Not of the line, nor of the order of words: a second ledger would name it alike."""
    name = new_id(told(), ())
    assert name == new_id(told(line=99), ()) == "f-" + name[2:]
    assert len(name) == 10
    assert name != new_id(told(file="b.py"), ())
    assert name != new_id(told(summary=SECRET), ())


@given(st.integers(1, 5), st.text(string.printable, max_size=40), FILES)
def test_a_new_id_is_never_taken(count: int, summary: str, file: str) -> None:
    """The same fault five times in one file has five ids."""
    names: list[str] = []
    for _ in range(count):
        names.append(new_id(told(summary=summary, file=file), names))
    assert len(set(names)) == count


def test_unlike_findings_in_one_file_are_all_told_apart() -> None:
    """None of these is another one, however near."""
    faults = [LOOP, SECRET, "Errors are swallowed.", "Text is formatted into the query."]
    for one, other in combinations(faults, 2):
        assert not same(told(line=14, summary=one), known(summary=other))
