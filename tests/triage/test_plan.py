"""Plans: nothing that a model wrote goes on unless it passed."""

import math
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.triage.samples import answer, decision, issue, policy, snapshot
from triage.plan import (
    CONSIDERED_LIMIT,
    EVIDENCE_LIMIT,
    QUOTE_LIMIT,
    VERDICT_LIMIT,
    AskedAgain,
    Cost,
    Held,
    HeldFor,
    Plan,
    make_plan,
)

COST = Cost(estimated_usd=0.02, turns=3, input_tokens=1800, output_tokens=120, sessions=1)


def planned(*answers: Mapping[str, Any], issues: int = 1, **settings: Any) -> Plan:
    """The plan of these answers about issues 1, 2, …"""
    taken = snapshot(*(issue(n + 1) for n in range(issues)))
    return make_plan(answers, taken, policy(**settings), COST)


def held(*answers: Mapping[str, Any], **settings: Any) -> Held:
    """The one decision about issue 1, held."""
    plan = planned(*answers, **settings)
    assert plan.decisions == ()
    [only] = plan.held
    assert (only.issue_id, only.number) == (1001, 1)
    return only


# --- What passes --------------------------------------------------------------------------------


def test_an_answer_that_fits_is_a_decision() -> None:
    """With the id of the snapshot's issue, and what it cost."""
    assert planned(answer()) == Plan(decisions=(decision(),), held=(), cost=COST)


def test_decisions_stand_in_the_order_of_the_snapshot() -> None:
    """However the model ordered them: effects are sent issue by issue."""
    plan = planned(answer(3), answer(1), answer(2), issues=3)
    assert [item.number for item in plan.decisions] == [1, 2, 3]


def test_a_label_said_twice_is_one() -> None:
    """In the order in which they were said."""
    plan = planned(answer(labels=["docs", "bug", "docs"]))
    assert plan.decisions[0].labels == ("docs", "bug")


def test_the_policys_language_wins() -> None:
    """Without one it is that of the issue, as the model saw it."""
    assert planned(answer(language="ja"), language="de").decisions[0].language == "de"
    assert planned(answer(language="ja")).decisions[0].language == "ja"
    silent = answer()
    del silent["language"]
    assert planned(silent).decisions[0].language == "en"


def test_exactly_the_confidence_asked_for_is_enough() -> None:
    """Below it is below."""
    assert planned(answer(confidence=0.7)).decisions
    assert held(answer(confidence=0.69)).why is HeldFor.CONFIDENCE


@pytest.mark.parametrize(
    "verdict",
    [
        "Fails with code 7 # in a comment",
        "Writes to a@b without asking",
        "If a < b it hangs, if a > b it does not",
        "Loss of data: the file is cut",
        "C#7 is not recognised; neither is F#4x",
        "Uses [brackets] and (parentheses)",
        "在空文件上崩溃",
        "ينهار عند ملف فارغ",
    ],
)
def test_plain_sentences_pass(verdict: str) -> None:
    """The rules are for what GitHub would make of a text, not for punctuation."""
    assert planned(answer(verdict=verdict)).decisions[0].verdict == verdict


def test_an_answer_may_name_every_label_of_the_policy() -> None:
    """One applied and one considered are all that there are."""
    assert planned(answer(), labels={"bug": "", "question": ""}, exclusive=[]).decisions


def test_white_space_around_a_verdict_is_dropped() -> None:
    """A line end behind it does not make two lines."""
    assert planned(answer(verdict=" It crashes.\n")).decisions[0].verdict == "It crashes."


# --- What is held -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"close": True}, "it has a field that is not asked for"),
        ({"sk-live-hunter2 @everyone": 1}, "it has a field that is not asked for"),
        ({"labels": ["urgent"]}, "it has a label that the policy does not allow"),
        ({"labels": ["Bug"]}, "it has a label that the policy does not allow"),
        ({"labels": ["bug", "question"]}, "labels bug and question exclude each other"),
        (
            {"evidence": [{"label": "urgent", "quote": "now"}]},
            "the evidence names a label that the policy has not",
        ),
        (
            {"considered": [{"label": "urgent", "reason": "it says now"}]},
            "the evidence names a label that the policy has not",
        ),
        ({"verdict": "Ask @ada about it"}, "the text mentions somebody"),
        ({"verdict": "For @acme/triage"}, "the text mentions somebody"),
        ({"verdict": "See https://evil.example"}, "the text holds a link"),
        ({"verdict": "See www.evil.example"}, "the text holds a link"),
        ({"verdict": "See [this](x)"}, "the text holds a link"),
        ({"verdict": "See [this][x]"}, "the text holds a link"),
        ({"verdict": "[x]: /y"}, "the text holds a link"),
        ({"verdict": "Open javascript:alert(1)"}, "the text holds a link"),
        ({"verdict": "It shows <b>bold</b>"}, "the text holds HTML"),
        ({"verdict": "Hidden <!-- words"}, "the text holds HTML"),
        ({"verdict": "Same as #12"}, "the text refers to another issue"),
        ({"verdict": "Same as acme/api#12"}, "the text refers to another issue"),
        ({"verdict": "Same as GH-12"}, "the text refers to another issue"),
        ({"verdict": "One line\nand another"}, "the verdict is longer than one line"),
        ({"verdict": "Turned \u202e around"}, "the text holds control characters"),
        ({"verdict": "Hidden \U000e0041 tag"}, "the text holds control characters"),
        ({"verdict": "An \x1b[31m escape"}, "the text holds control characters"),
        (
            {"considered": [{"label": "docs", "reason": "ask @ada"}]},
            "the text mentions somebody",
        ),
        (
            {"considered": [{"label": "docs", "reason": "see #4"}]},
            "the text refers to another issue",
        ),
    ],
)
def test_a_decision_that_says_too_much_is_held(changes: dict[str, Any], reason: str) -> None:
    """The model's own words name nobody, link nothing and refer to nothing."""
    assert held(answer(**changes)) == Held(
        issue_id=1001, number=1, why=HeldFor.VALIDATION, reason=reason
    )


def test_the_words_of_the_issue_may_say_anything() -> None:
    """They are quoted, and escaped where they are shown."""
    quote = "ping @ada, see #4 and <b>https://x.example</b>"
    said = answer(evidence=[{"label": "bug", "quote": quote}])
    plan = make_plan([said], snapshot(issue(body=f"Please {quote}, now")), policy(), COST)
    assert plan.decisions[0].evidence[0].quote == quote


def test_words_that_the_issue_has_not_are_no_evidence() -> None:
    """A quote stands in the issue, whatever its case and spacing, or is dropped."""
    quotes = ("Index OUT of\nrange", "the key is 4711", "body 1")
    said = answer(evidence=[{"label": "bug", "quote": quote} for quote in quotes])
    kept = [item.quote for item in planned(said).decisions[0].evidence]
    assert kept == ["Index OUT of\nrange", "body 1"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"confidence": 1.01}, "confidence"),
        ({"confidence": -0.1}, "confidence"),
        ({"confidence": math.nan}, "confidence"),
        ({"confidence": math.inf}, "confidence"),
        ({"confidence": 10**400}, "confidence"),
        ({"confidence": None}, "confidence"),
        ({"labels": "bug"}, "labels"),
        ({"labels": {"bug": 1}}, "labels"),
        ({"labels": [["bug"]]}, "labels.0"),
        ({"verdict": ""}, "verdict"),
        ({"verdict": " \n "}, "verdict"),
        ({"verdict": "x" * (VERDICT_LIMIT + 1)}, "verdict"),
        ({"verdict": "\ud800"}, "verdict"),
        ({"evidence": [{"label": "bug", "quote": "x" * (QUOTE_LIMIT + 1)}]}, "evidence.0.quote"),
        (
            {"evidence": [{"label": "bug", "quote": "x"}] * (EVIDENCE_LIMIT + 1)},
            "evidence",
        ),
        (
            {"considered": [{"label": "bug", "reason": "x"}] * (CONSIDERED_LIMIT + 1)},
            "considered",
        ),
        ({"language": "Deutsch, bitte"}, "language"),
    ],
)
def test_a_decision_of_another_shape_is_held(changes: dict[str, Any], field: str) -> None:
    """The reason names the field."""
    only = held(answer(**changes))
    assert only.why is HeldFor.VALIDATION
    assert only.reason.startswith(f"{field}: ")


def test_an_issue_without_an_answer_is_held_for_the_next_time() -> None:
    """It was not decided: asking again is not wasted."""
    only = held()
    assert (only.why, only.reason) == (HeldFor.UNANSWERED, "the model gave no decision")
    assert not only.why.settles


def test_of_two_answers_neither_is_used() -> None:
    """There is no telling which one was meant, even where they agree."""
    only = held(answer(), answer())
    assert (only.why, only.reason) == (HeldFor.VALIDATION, "the model decided twice")


def test_no_label_that_fits_is_no_effect() -> None:
    """A comment that says nothing would be noise."""
    only = held(answer(labels=[]))
    assert (only.why, only.reason) == (HeldFor.NO_LABEL, "no label of the policy fits")


def test_a_low_confidence_is_told_with_its_number() -> None:
    """So that the policy can be set by it."""
    only = held(answer(confidence=0.55), min_confidence=0.8)
    assert (only.why, only.reason) == (HeldFor.CONFIDENCE, "confidence 0.55 is below 0.80")


def test_what_was_decided_for_good_is_not_asked_again() -> None:
    """Only what nobody answered is."""
    assert [why for why in HeldFor if not why.settles] == [HeldFor.UNANSWERED]


def test_one_bad_answer_holds_no_other() -> None:
    """Each decision stands for itself."""
    plan = planned(answer(1), answer(2, verdict="@all"), answer(3), issues=3)
    assert [item.number for item in plan.decisions] == [1, 3]
    assert [item.number for item in plan.held] == [2]


@pytest.mark.parametrize("number", [7, "1", 1.0, True, None, [1], 10**400])
def test_an_answer_about_no_issue_of_the_snapshot_is_dropped(number: Any) -> None:
    """It cannot reach an issue that was not asked about."""
    assert held(answer(number=number)).why is HeldFor.UNANSWERED


def test_nothing_asked_is_an_empty_plan() -> None:
    """No issues, no decisions."""
    empty = snapshot().model_copy(update={"issues": ()})
    assert make_plan([answer()], empty, policy(), COST) == Plan(decisions=(), held=(), cost=COST)


# --- Hostile answers ----------------------------------------------------------------------------

ANY_TEXT = st.text(st.characters(), max_size=300)  # halves of surrogate pairs too
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)
FIELDS = st.sampled_from([*answer(), "close", "\ud800"])


@given(st.lists(st.dictionaries(FIELDS | ANY_TEXT, ANY_JSON, max_size=8), max_size=5))
def test_no_answer_makes_planning_fail(answers: list[dict[str, Any]]) -> None:
    """Whatever a model says, each issue is decided or held, and the plan can be saved."""
    plan = planned(*answers, issues=3)
    numbers = [item.number for item in plan.decisions] + [item.number for item in plan.held]
    assert sorted(numbers) == [1, 2, 3]
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


@given(st.dictionaries(FIELDS, ANY_JSON, max_size=3))
def test_an_answer_with_some_fields_replaced_does_neither(changes: dict[str, Any]) -> None:
    """Almost right is the harder case."""
    plan = planned({**answer(), **changes}, answer(2), issues=2)
    assert [item.number for item in plan.decisions][-1:] == [2]
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


@given(ANY_TEXT)
def test_no_verdict_that_passes_does_harm(verdict: str) -> None:
    """One line of at most 240 characters, without HTML, mentions or references."""
    for item in planned(answer(verdict=verdict)).decisions:
        assert 0 < len(item.verdict) <= VERDICT_LIMIT
        assert "\n" not in item.verdict
        assert "<!--" not in item.verdict
        assert "](" not in item.verdict
        assert " @a" not in item.verdict
        assert " #1" not in item.verdict


# --- Cost ---------------------------------------------------------------------------------------


def test_costs_add_up() -> None:
    """Over sessions and attempts."""
    assert COST + Cost() == COST
    twice = COST + COST
    assert (twice.turns, twice.input_tokens, twice.output_tokens) == (6, 3600, 240)
    assert (twice.estimated_usd, twice.sessions) == (0.04, 2)


# --- Asked again without the text that gives instructions -------------------------------------


def again(
    first: Mapping[str, Any] | None, second: Mapping[str, Any] | None, missing: str = ""
) -> Plan:
    """The plan of an issue that was asked about twice; None: it was not answered."""
    asked = AskedAgain(
        asks={1: ("a label",)}, answers=(second,) if second is not None else (), missing=missing
    )
    answers = [first] if first is not None else []
    return make_plan(answers, snapshot(issue()), policy(), COST, again=asked)


def test_second_answer_counts_where_it_decides_the_same() -> None:
    """Not one word of the first goes on: not even that it may not be shown."""
    plan = again(answer(verdict="Ask @ada", confidence=1), answer(verdict="It crashes."))
    assert [item.verdict for item in plan.decisions] == ["It crashes."]
    assert plan.decisions[0].confidence == 0.9


@pytest.mark.parametrize(
    ("first", "second", "change"),
    [
        ({"labels": ["question"]}, {}, "labels question with them, bug without"),
        ({"labels": []}, {}, "labels none with them, bug without"),
        ({}, {"labels": ["docs", "bug"]}, "labels bug with them, bug, docs without"),
        ({"confidence": 1}, {"confidence": 0.5}, "confidence 1.00 with them, 0.50 without"),
        ({"confidence": 0.1}, {"confidence": 0.9}, "confidence 0.10 with them, 0.90 without"),
    ],
)
def test_decision_that_instructions_changed_is_held(
    first: dict[str, Any], second: dict[str, Any], change: str
) -> None:
    """A person reads it; asking once more would tell nothing new."""
    plan = again(answer(**first), answer(**second))
    assert plan.decisions == ()
    [only] = plan.held
    assert (only.why, only.why.settles) == (HeldFor.INSTRUCTIONS, True)
    asks = "its text gives instructions (a label) that change the decision: "
    assert only.reason == asks + change


def test_second_answer_is_held_for_its_own_reasons() -> None:
    """It passes the same checks as any."""
    [only] = again(answer(), answer(verdict="Ask @ada")).held
    assert only.why is HeldFor.VALIDATION
    [only] = again(answer(confidence=0.5), answer(confidence=0.4)).held
    assert only.why is HeldFor.CONFIDENCE


def test_not_asked_again_is_not_decided() -> None:
    """It comes up again in the next window."""
    [only] = again(answer(), None, "budget").held
    assert (only.why, only.why.settles) == (HeldFor.UNANSWERED, False)
    assert only.reason.endswith("and it was not asked about without them: budget")
    [only] = again(None, answer()).held
    assert only.reason == "the model gave no decision"


def test_secret_of_the_repository_is_not_said() -> None:
    """A word that a file has as a value, and one that can be nothing else."""
    said = answer(verdict="The key is canary-settings-61bd")
    plan = make_plan([said], snapshot(issue()), policy(), COST, secrets=["canary-settings-61bd"])
    assert [item.reason for item in plan.held] == ["the text repeats what looks like a secret"]
    assert held(answer(verdict="It is ghp_0123456789abcdefABCD")).why is HeldFor.VALIDATION
