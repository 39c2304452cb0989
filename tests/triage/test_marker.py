"""Markers: what a body on GitHub proves, and what it does not."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.triage.samples import DEDUPE_KEY, KEYS
from triage.marker import (
    BODY_LIMIT,
    UNMARKED,
    MalformedMarkerKeyError,
    Marker,
    MarkerKeys,
    Reading,
    Signature,
    body_digest,
    cut,
    intended_digest,
    read,
    stamp,
    unmarked,
)

EFFECT = "e" * 64
OLD, NEW, OTHER = "k1:" + "ab" * 16, "k2:" + "cd" * 16, "k1:" + "ef" * 16
BODY = "**Triage: `bug`.** It crashes.\n\n- [ ] close this\n- [ ] post it again\n"
GITHUB_LIMIT = 65_536


def stamped(body: str = BODY, keys: MarkerKeys = KEYS) -> str:
    """A body as the bot writes it."""
    return stamp(body, effect_key=EFFECT, run=DEDUPE_KEY, keys=keys)


def tampered(body: str, old: str, new: str) -> str:
    """The body with something in its marker replaced."""
    first, _, rest = body.partition("\n")
    assert first.count(old) == 1
    return first.replace(old, new) + "\n" + rest


# --- What is written is read --------------------------------------------------------------------


@given(st.text())
def test_any_body_is_read_back_as_the_bots_own(body: str) -> None:
    """Whatever is written, the marker names the effect, the run and the digest of the body."""
    reading = read(stamped(body), KEYS)
    assert reading == Reading(
        Signature.VALID, Marker(EFFECT, DEDUPE_KEY, body_digest(body)), body_digest(body)
    )
    assert not reading.edited_by_person
    assert intended_digest(stamped(body)) == body_digest(body)


@given(st.text())
def test_a_body_without_its_marker_is_what_was_written(body: str) -> None:
    """Taking the marker off leaves the text; where there is none, nothing is taken."""
    assert body_digest(unmarked(stamped(body))) == body_digest(body)
    assert unmarked("no marker\n" + body) == "no marker\n" + body


def test_the_marker_is_hidden_and_comes_first() -> None:
    """An HTML comment on a line of its own: people see the text alone."""
    first, _, rest = stamped().partition("\n")
    assert first.startswith("<!-- retriage v1 kid=k1 ")
    assert first.endswith(" -->")
    assert rest == BODY


# --- Keys ---------------------------------------------------------------------------------------


def test_the_newest_key_signs_and_old_ones_keep_verifying() -> None:
    """Keys are rotated by putting a new one in front."""
    before = stamped(keys=MarkerKeys.parse(OLD))
    rotated = MarkerKeys.parse(f"{NEW},{OLD}")
    assert read(before, rotated).signature is Signature.VALID
    after = stamped(keys=rotated)
    assert " kid=k2 " in after
    assert read(after, rotated).signature is Signature.VALID


@pytest.mark.parametrize(
    "keys", [NEW, OTHER], ids=["an id that is not known", "another secret under the same id"]
)
def test_a_signature_of_a_key_that_is_not_ours_is_invalid(keys: str) -> None:
    """It is not taken for no marker: an own comment with a bad signature is a conflict."""
    reading = read(stamped(), MarkerKeys.parse(keys))
    assert reading.signature is Signature.INVALID
    assert reading.marker is not None
    assert not reading.edited_by_person


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (f"effect={EFFECT}", f"effect={'f' * 64}"),
        (f"run={DEDUPE_KEY}", f"run={DEDUPE_KEY}:forced-1"),
        (f"body={body_digest(BODY)}", f"body={'0' * 64}"),
        ("kid=k1", "kid=k2"),
    ],
    ids=["effect", "run", "digest", "key id"],
)
def test_nothing_in_a_marker_can_be_changed(old: str, new: str) -> None:
    """Everything that a marker says is signed, the key's id too."""
    keys = MarkerKeys.parse(f"{OLD},{NEW}")
    assert read(tampered(stamped(), old, new), keys).signature is Signature.INVALID


def test_a_marker_signed_for_one_effect_says_nothing_of_another() -> None:
    """A signature cannot be carried over to another marker."""
    mine, other = stamped(), stamp(BODY, effect_key="f" * 64, run=DEDUPE_KEY, keys=KEYS)
    signature = re.search(r"sig=\w+", other)
    own = re.search(r"sig=\w+", mine)
    assert signature is not None
    assert own is not None
    assert read(tampered(mine, own[0], signature[0]), KEYS).signature is Signature.INVALID


# --- What is a marker ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        None,
        "",
        "just text",
        "> " + stamped(),
        "quoted:\n" + stamped(),
        "\n" + stamped(),
        stamped().replace("v1", "v2", 1),
        stamped().replace(" -->", " --> and more", 1),
        stamped().replace("<!-- ", "<!--", 1),
    ],
)
def test_a_marker_anywhere_but_on_the_first_line_is_text(body: str | None) -> None:
    """Only the first line, whole, is a marker."""
    assert read(body, KEYS) == UNMARKED


def test_a_body_without_a_marker_has_no_intended_digest() -> None:
    """The writer asks for it, and is told."""
    with pytest.raises(ValueError, match="bears no marker"):
        intended_digest("text\n" + stamped())


# --- What is an edit ----------------------------------------------------------------------------


def test_the_line_ends_of_githubs_editor_are_no_edit() -> None:
    """GitHub's editor saves CRLF, and drops white space at the ends."""
    assert not read(stamped().replace("\n", "\r\n"), KEYS).edited_by_person
    assert not read(stamped().rstrip(), KEYS).edited_by_person
    assert not read(stamped().replace("crashes.\n", "crashes.  \n"), KEYS).edited_by_person


def test_a_ticked_box_is_no_edit() -> None:
    """Ticking is an answer, not a change of the text; unticking neither."""
    ticked = stamped().replace("- [ ] close", "- [x] close").replace("- [ ] post", "- [X] post")
    assert read(ticked, KEYS).body_digest == body_digest(BODY)
    assert body_digest("* [x] one\n  + [X] two") == body_digest("* [ ] one\n  + [ ] two")


def test_a_box_in_a_sentence_is_text() -> None:
    """Only a list item's box is one."""
    assert body_digest("an [x] in text") != body_digest("an [ ] in text")


@given(st.text(), st.text(st.characters(categories=["L", "N", "P"]), min_size=1))
def test_a_person_who_adds_words_has_edited(body: str, words: str) -> None:
    """The marker still stands, valid, above a body that it does not describe."""
    reading = read(stamped(body) + "\n\n" + words, KEYS)
    assert reading.signature is Signature.VALID
    assert reading.edited_by_person


def test_a_body_of_blank_lines_is_read_in_no_time() -> None:
    """Anybody may paste a marker above 65,000 line ends: reading it must not stop a worker."""
    reading = read(stamped("a" + "\n" * GITHUB_LIMIT + "b"), KEYS)
    assert reading.signature is Signature.VALID
    assert body_digest("a" + "\n" * GITHUB_LIMIT + "b") != reading.body_digest  # it was cut


# --- Long bodies --------------------------------------------------------------------------------


@pytest.mark.parametrize("character", ["x", "é", "字", "🙂"])
def test_a_long_body_is_cut_with_its_marker_whole(character: str) -> None:
    """GitHub counts characters; the longest marker and body stay under what it takes."""
    longest = MarkerKeys.parse("k" * 32 + ":" + "ab" * 32)
    body = character * 200_000
    written = stamp(body, effect_key=EFFECT, run="r" * 200, keys=longest)
    assert len(written) <= BODY_LIMIT < GITHUB_LIMIT
    assert written.endswith("(cut: too long for GitHub)")
    reading = read(written, longest)
    assert reading.signature is Signature.VALID
    assert not reading.edited_by_person


@given(st.integers(BODY_LIMIT - 600, BODY_LIMIT + 100), st.sampled_from(["x", "x ", "x\n"]))
def test_cutting_twice_is_cutting_once(length: int, pattern: str) -> None:
    """Who cuts before comparing digests gets what the marker will name."""
    body = (pattern * length)[:length]
    assert cut(cut(body)) == cut(body)
    assert intended_digest(stamped(body)) == body_digest(cut(body))


def test_what_fits_is_left_whole() -> None:
    """500 characters are kept for the marker: the longest takes 474."""
    assert cut(BODY) == BODY
    longest = "x" * (BODY_LIMIT - 500)
    assert cut(longest) == longest
    assert cut(longest + "x") != longest + "x"
    assert BODY_LIMIT == 60_000


# --- MARKER_KEYS --------------------------------------------------------------------------------


def test_keys_are_read_newest_first() -> None:
    """Blanks and line ends around them do not count."""
    keys = MarkerKeys.parse(f" {NEW} ,\n{OLD},")
    assert [key.kid for key in keys.keys] == ["k2", "k1"]
    assert keys.keys[0].secret == bytes.fromhex("cd" * 16)


SECRET = "5ec2e7" * 6


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "at least one kid:hex is needed"),
        (" , ", "at least one kid:hex is needed"),
        (SECRET, "the id of key 1 must be"),
        (SECRET[:32], "the secret of key 1 must be"),
        (f"{SECRET[:32]}:k1", "the secret of key 1 must be"),
        (f"k1:{SECRET[:30]}", "the secret of key 1 must be"),
        (f"k1:{SECRET[:35]}", "an even number"),
        (f"k1:{SECRET}zz", "the secret of key 1 must be"),
        (f"k1:{SECRET}:{SECRET}", "the secret of key 1 must be"),
        (f"{OLD},k 2:{SECRET}", "the id of key 2 must be"),
        (f"{OLD},k1:{SECRET}", "a key id stands there twice"),
    ],
)
def test_an_error_in_the_keys_never_names_a_secret(text: str, reason: str) -> None:
    """Not even where the secret stands in the place of the id."""
    with pytest.raises(MalformedMarkerKeyError, match=reason) as caught:
        MarkerKeys.parse(text)
    assert "5ec2" not in str(caught.value)


def test_keys_do_not_show_their_secrets() -> None:
    """A traceback or a log may show the value."""
    keys = MarkerKeys.parse(f"k1:{SECRET}")
    assert "k1" in repr(keys)
    assert repr(bytes.fromhex(SECRET)) not in repr(keys)
    assert "secret" not in repr(keys)
