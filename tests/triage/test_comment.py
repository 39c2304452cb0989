"""The triage comment: what it says, and that nothing in it mentions, links, refers or formats."""

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.triage.markdown import ZERO_WIDTH, kinds, shown
from tests.triage.samples import answer, decision, issue, policy, snapshot
from triage.comment import PHRASES, escaped, phrases, render
from triage.plan import (
    CONSIDERED_LIMIT,
    EVIDENCE_LIMIT,
    QUOTE_LIMIT,
    VERDICT_LIMIT,
    Cost,
    make_plan,
)
from triage.wording import CONTROL

HOSTILE = "@#<>&*_`[]()!|~\\:/.-+=\"' \n\r\tabchpstwgGHW019\u202e\u200b\u2028\x00\x1b"
TEXTS = st.text(st.sampled_from(HOSTILE) | st.characters(exclude_categories=["Cs"]))

# --- Escaping -----------------------------------------------------------------------------------

LIVE = {
    "a mention": r"@\w",
    "a reference": r"#\d|(?i:\bgh-)\d",
    "a tag, a comment or an address in brackets": "<",
    "an address": r"(?i)\bwww\.|://\S(?<!\u200b)|\bmailto:\S(?<!\u200b)",
    "an e-mail address": r"[\w.+-]+@[\w-]",
    "a line of its own": r"[\n\r\u2028\u2029\x85]",
}


@given(TEXTS)
@example("@everyone, see #1, acme/api#2, GH-3 and https://x.example")
@example("</details><img src=x onerror=alert(1)><!-- retriage v1 -->")
@example("[a](https://x.example) ![b](c) **d** _e_ `f` ~~g~~ | h |")
@example("&#64;ada &commat;ada &#35;1")
@example("\\@ada \\\\*b\\\\*")
def test_words_of_others_are_only_words(text: str) -> None:
    """Whatever stands in an issue: no mention, reference, link, HTML or format comes of it."""
    found = escaped(text)
    for what, pattern in LIVE.items():
        assert not re.search(pattern, found), what
    assert not CONTROL.search(found)
    words = " ".join(CONTROL.sub(" ", text).split()).replace(ZERO_WIDTH, "")
    assert shown(found) == words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("index out of range", "index out of range"),
        ("a  b\n c", "a b c"),
        ("ping @ada", f"ping @{ZERO_WIDTH}ada"),
        ("like #12", f"like #{ZERO_WIDTH}12"),
        ("a < b & c", "a &lt; b &amp; c"),
        ("`x` *y* [z]", r"\`x\` \*y\* \[z\]"),
        ("https://x.example", f"https://{ZERO_WIDTH}x.example"),
        ("gone\u202eback", "gone back"),
        ("空文件 ملف", "空文件 ملف"),
        ("می\u200cخواهم 👩\u200d💻", "می\u200cخواهم 👩\u200d💻"),
    ],
)
def test_how_words_are_escaped(text: str, expected: str) -> None:
    """Readable still: letters of every script stay, joiners included."""
    assert escaped(text) == expected


# --- The comment --------------------------------------------------------------------------------


def test_the_verdict_comes_first_and_the_evidence_is_folded() -> None:
    """Alone in a mail, the first line says it all; the last one says how to correct it."""
    assert render(
        decision(
            labels=["bug", "docs"],
            verdict="Crashes on an empty file since 2.3; a stack trace is given.",
            evidence=[{"label": "bug", "quote": "index out of range"}],
            considered=[{"label": "question", "reason": "it asks nothing"}],
        )
    ) == (
        "**Triage: `bug`, `docs`.** Crashes on an empty file since 2.3; a stack trace is given.\n"
        "\n"
        "<details>\n"
        "<summary>Evidence for these labels</summary>\n"
        "\n"
        '- `bug`: "index out of range"\n'
        "- Considered, not applied: `question` (it asks nothing)\n"
        "\n"
        "</details>\n"
        "\n"
        "Wrong? Change the labels: they will not be put back. `/retriage` runs it again. "
        "Automated, edited in place."
    )


def test_without_evidence_nothing_is_folded() -> None:
    """An empty fold would be noise."""
    assert render(decision(evidence=[], considered=[])).splitlines() == [
        "**Triage: `bug`.** Crashes on an empty file since 2.3.",
        "",
        PHRASES["en"].wrong,
    ]


def test_what_was_considered_is_told_only_where_something_was() -> None:
    """And the other way round."""
    assert "Considered" not in render(decision(considered=[]))
    assert "- Considered, not applied: `question` (it asks nothing)" in render(
        decision(evidence=[])
    )


def test_the_fold_has_six_lines_at_most() -> None:
    """As much as a model may answer."""
    most = answer(
        verdict="x" * VERDICT_LIMIT,
        evidence=[{"label": "bug", "quote": "y" * QUOTE_LIMIT}] * EVIDENCE_LIMIT,
        considered=[{"label": "question", "reason": "z" * QUOTE_LIMIT}] * CONSIDERED_LIMIT,
    )
    taken = snapshot(issue(body="y" * QUOTE_LIMIT))
    [passed] = make_plan([most], taken, policy(), Cost()).decisions
    _, _, rest = render(passed).partition("</summary>")
    fold, _, _ = rest.partition("</details>")
    assert len([line for line in fold.splitlines() if line]) == 6


@given(TEXTS, TEXTS, TEXTS, st.sampled_from(sorted(PHRASES)))
def test_no_decision_breaks_out_of_its_comment(
    verdict: str, quote: str, reason: str, language: str
) -> None:
    """The comment is a paragraph, a fold with a list, and a paragraph, whatever it quotes."""
    body = render(
        decision(
            verdict=verdict[:VERDICT_LIMIT] or "x",
            evidence=[{"label": "bug", "quote": quote[:QUOTE_LIMIT]}],
            considered=[{"label": "docs", "reason": reason[:QUOTE_LIMIT]}],
            language=language,
        )
    )
    assert len(body.splitlines()) == 11
    assert kinds(body) <= {
        *("paragraph_open", "paragraph_close", "inline", "text", "text_special", "code_inline"),
        *("strong_open", "strong_close", "softbreak", "html_block"),
        *("bullet_list_open", "list_item_open", "list_item_close", "bullet_list_close"),
    }
    assert body.count("<") == 4
    for pattern in LIVE.values():
        assert pattern == "<" or not any(re.search(pattern, line) for line in body.splitlines())


def test_the_same_decision_gives_the_same_comment() -> None:
    """Its digest is how an edit is recognised."""
    assert render(decision()) == render(decision())


# --- Languages ----------------------------------------------------------------------------------


@pytest.mark.parametrize("language", PHRASES)
def test_every_language_has_every_phrase(language: str) -> None:
    """None is empty, none formats, and each tells the command and keeps labels as they are."""
    words = phrases(language)
    for text in (words.triage, words.evidence, words.considered, words.wrong):
        assert text == text.strip() == unicodedata.normalize("NFC", text) != ""
        assert not set(text) & set("<>@#*[]\n")
    assert words.wrong.count("`") == words.wrong.count("`/retriage`") * 2 == 2
    assert language == language.lower()


def test_no_language_is_left_in_another() -> None:
    """Languages differ in every phrase; those that share their words say so."""
    english = PHRASES["en"]
    for words in set(PHRASES.values()) - {english}:
        assert words.evidence != english.evidence
        assert words.considered != english.considered
        assert words.wrong != english.wrong


@pytest.mark.parametrize(
    ("tag", "key"),
    [
        ("en", "en"),
        ("en-GB", "en"),
        ("DE", "de"),
        ("de-AT", "de"),
        ("zh", "zh"),
        ("zh-CN", "zh"),
        ("zh-Hans-CN", "zh"),
        ("zh-TW", "zh-tw"),
        ("zh-Hant-TW", "zh-tw"),
        ("zh-HK", "zh-tw"),
        ("pt-BR", "en"),
        ("tlh", "en"),
        ("", "en"),
    ],
)
def test_a_tag_finds_the_nearest_words(tag: str, key: str) -> None:
    """Its base language, then English; traditional characters are not read as simplified ones."""
    assert phrases(tag) == PHRASES[key]
