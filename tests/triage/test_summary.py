"""The summary issue of a window and the report of an observe run."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.triage.markdown import ZERO_WIDTH, headings, kinds
from tests.triage.samples import (
    DEDUPE_KEY,
    KEYS,
    NOON,
    WINDOW,
    decision,
    effect,
    inputs,
    issue,
    policy,
    run,
    snapshot,
)
from triage.contract import Evidence, RunEffect, Skip, Status
from triage.identifiers import EffectKind, Mode
from triage.marker import BODY_LIMIT, body_digest, intended_digest, stamp
from triage.plan import Cost, Held, HeldFor, Plan
from triage.summary import MOST_LISTED, WindowRun, body, item_statuses, report, report_path, title

COMMENT, LABEL = EffectKind.COMMENT, EffectKind.LABELS
TAIPEI = policy(schedule={"timezone": "Asia/Taipei"})


def written(number: int) -> list[RunEffect]:
    """An issue that got its comment and its label."""
    return [
        effect(kind, number, evidence=Evidence.CONFIRMED, sends=1, sent_at=NOON)
        for kind in (COMMENT, LABEL)
    ]


def in_place(number: int) -> list[RunEffect]:
    """An issue that had its label already."""
    return [effect(LABEL, number, evidence=Evidence.CONFIRMED)]


def left(number: int, reason: str) -> list[RunEffect]:
    """An issue that was skipped."""
    return [effect(LABEL, number, evidence=Evidence.SKIPPED, reason=reason)]


def in_conflict(
    number: int, reason: str = "sent twice and never seen on GitHub"
) -> list[RunEffect]:
    """An issue that a person has to look at."""
    return [
        effect(COMMENT, number, evidence=Evidence.CONFLICT, reason=reason, sends=2, when=NOON),
        effect(LABEL, number),
    ]


def held(number: int, reason: str = "confidence 0.55 is below 0.70") -> Held:
    """A decision without effect."""
    return Held(issue_id=1000 + number, number=number, why=HeldFor.CONFIDENCE, reason=reason)


def of_window(
    *effects: list[RunEffect], changes: dict[str, Any] | None = None, **more: Any
) -> WindowRun:
    """One run of the window, with its effects issue by issue."""
    flat = [item for group in effects for item in group]
    return WindowRun(run(**(changes or {})), Status.COMPLETED, flat, **more)


def summed(*runs: WindowRun, **changes: Any) -> str:
    """The body over these runs, oldest first."""
    return body(runs, **{"window": WINDOW, "missed": (), "now": NOON, **changes})


def section(text: str, name: str) -> list[str]:
    """The lines of one section; none where it is not there."""
    _, _, rest = text.partition(f"\n## {name}\n")
    return rest.partition("\n## ")[0].strip().splitlines()


# --- The summary --------------------------------------------------------------------------------


def test_a_summary_says_first_what_needs_somebody() -> None:
    """Then what became of each issue, what was held and skipped, and what it cost."""
    text = summed(
        of_window(
            written(1),
            written(2),
            in_place(3),
            left(4, "human-labelled"),
            in_conflict(5),
            changes={
                "inputs": inputs(policy=TAIPEI),
                "cost": Cost(estimated_usd=0.314, sessions=2),
            },
            held=[held(6)],
        )
    )
    assert text == (
        "**1 need review, 4 completed, 0 failed** on 2026-09-16, "
        "due 2026-09-16 20:00 Asia/Taipei.\n"
        "\n"
        "| Outcome | Issues |\n"
        "| --- | ---: |\n"
        "| completed | 3 |\n"
        "| needs-review | 1 |\n"
        "| no-change | 1 |\n"
        "\n"
        "## Needs review\n"
        "\n"
        "- issue 5, comment: sent twice and never seen on GitHub, "
        "read 2026-09-16 20:00 Asia/Taipei\n"
        "\n"
        "## Held\n"
        "\n"
        "- issue 6: confidence 0.55 is below 0.70\n"
        "\n"
        "## Skipped\n"
        "\n"
        "- 1: a person had already labelled them\n"
        "\n"
        "## Cost\n"
        "\n"
        "$0.31 by the SDK's estimate, in 2 sessions of the model"
    )


def test_a_window_without_issues_says_so() -> None:
    """It is written only where there is something else to tell."""
    text = summed(of_window(held=[held(1)]))
    assert text.startswith("**0 need review, 0 completed, 0 failed** on 2026-09-16")
    assert "No issue." in text
    assert section(text, "Needs review") == section(text, "Skipped") == []


def test_a_time_on_which_nothing_hangs_changes_nothing() -> None:
    """The same runs give the same bytes, whenever it is asked: there is nothing to edit then."""
    runs = [of_window(written(1), in_conflict(2), held=[held(3)])]
    assert summed(*runs) == summed(*runs, now=NOON + timedelta(days=3))


@pytest.mark.parametrize("name", ["daily", "rolling"])
def test_the_title_is_constant(name: str) -> None:
    """But for the window: a rolling summary is one issue for good."""
    of_policy = inputs(policy=policy(summary=name))
    expected = {"daily": "Triage summary 2026-09-16", "rolling": "Triage summary"}
    assert title(of_policy, WINDOW) == expected[name]


def test_tables_have_three_columns_at_most() -> None:
    """They are read on a phone."""
    text = summed(of_window(written(1), in_conflict(2)))
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 4
    assert all(row.count("|") <= 4 for row in rows)
    assert "table_open" in kinds(text)


# --- Counting -----------------------------------------------------------------------------------


def test_each_issue_has_its_own_status() -> None:
    """By the same table as the run; the summary and the report are of no issue."""
    effects = [
        *written(1),
        *in_place(2),
        *left(3, "locked"),
        *in_conflict(4),
        effect(LABEL, 5),
        effect(COMMENT, 6, evidence=Evidence.UNSETTLED, open=True, sends=1, sent_at=NOON),
        effect(EffectKind.SUMMARY, evidence=Evidence.CONFIRMED, sends=1),
        effect(EffectKind.REPORT, evidence=Evidence.CONFIRMED, sends=1),
    ]
    assert item_statuses(effects, NOON) == {
        1: Status.COMPLETED,
        2: Status.NO_CHANGE,
        3: Status.COMPLETED,
        4: Status.NEEDS_REVIEW,
        5: Status.FAILED_BEFORE_WRITE,
        6: Status.FAILED_AFTER_WRITE,
    }


def test_what_failed_is_counted_together() -> None:
    """Before or after a write: the table tells them apart."""
    sent = effect(COMMENT, 3, evidence=Evidence.UNSETTLED, sends=1, sent_at=NOON)
    text = summed(of_window([effect(LABEL, 1)], [effect(LABEL, 2)], [sent]))
    assert text.startswith("**0 need review, 0 completed, 3 failed**")
    assert "| failed-after-write | 1 |\n| failed-before-write | 2 |" in text


def test_an_issue_of_two_runs_is_counted_once() -> None:
    """As the newest run of the window left it."""
    text = summed(
        of_window(in_conflict(1), left(2, "blocked"), written(3)),
        of_window(written(1), left(2, "closed")),
    )
    assert text.startswith("**0 need review, 3 completed, 0 failed**")
    assert section(text, "Needs review") == []
    assert section(text, "Skipped") == ["- 1: closed since"]


@pytest.mark.parametrize("why", ["blocked", "superseded"])
def test_an_issue_that_a_run_left_to_another_is_the_others(why: str) -> None:
    """What the other made of it is told; where there is no other, that it was left."""
    text = summed(of_window(written(1)), of_window(left(1, why), left(2, why)))
    assert text.startswith("**0 need review, 2 completed, 0 failed**")
    assert section(text, "Skipped")[0].startswith("- 1: ")


def test_an_observe_run_of_the_window_counts_no_issue() -> None:
    """Its one effect is the report; what it held and cost is told."""
    observed = of_window(
        [effect(EffectKind.REPORT, evidence=Evidence.CONFIRMED, sends=1)],
        changes={"inputs": inputs(mode=Mode.OBSERVE), "cost": Cost(estimated_usd=1, sessions=1)},
        held=[held(7)],
    )
    text = summed(observed, of_window(written(1)))
    assert "| completed | 1 |" in text
    assert section(text, "Held") == ["- issue 7: confidence 0.55 is below 0.70"]
    assert section(text, "Cost")[0].startswith("$1.00 ")


def test_what_another_run_decided_is_not_held() -> None:
    """The newest reason is shown where it still is."""
    first = of_window(held=[held(1), held(2, "the model decided twice")])
    text = summed(first, of_window(written(1), held=[held(2, "no label of the policy fits")]))
    assert section(text, "Held") == ["- issue 2: no label of the policy fits"]


@given(
    st.lists(
        st.tuples(
            st.integers(1, 9),
            st.sampled_from([written, in_place, in_conflict, lambda n: left(n, "locked")]),
        ),
        max_size=20,
    )
)
def test_the_counts_add_up(made: list[tuple[int, Any]]) -> None:
    """Whatever the runs: as many as there are issues, in the head and in the table."""
    runs = [of_window(make(number)) for number, make in made] or [of_window()]
    text = summed(*runs)
    rows = [line for line in text.splitlines() if line.startswith("| ") and "---" not in line][1:]
    counted = [int(row.split("|")[2]) for row in rows]
    issues = len({number for number, _ in made})
    head = text.replace("*", "").split(" on ")[0].replace(",", "").split()
    assert sum(int(word) for word in head if word.isdigit()) == sum(counted) == issues
    assert len(section(text, "Needs review")) == int(head[0])


# --- Its sections -------------------------------------------------------------------------------


def test_what_is_unsettled_for_a_day_needs_review_too() -> None:
    """It is counted so, and listed with what GitHub had answered."""
    doubt = effect(
        COMMENT, evidence=Evidence.UNSETTLED, open=True, sends=1, reason="502", sent_at=NOON
    )
    early = summed(of_window([doubt]), now=NOON + timedelta(hours=23))
    assert section(early, "Needs review") == []
    text = summed(of_window([doubt]), now=NOON + timedelta(hours=24))
    assert text.startswith("**1 need review, 0 completed, 0 failed**")
    assert section(text, "Needs review") == ["- issue 1, comment: 502"]


def test_a_run_that_needs_review_says_how_to_decide() -> None:
    """By a comment on the summary, which names the run; the others say nothing of it."""
    text = summed(replace(of_window(in_conflict(1)), status=Status.NEEDS_REVIEW))
    [line] = [line for line in section(text, "Needs review") if "/retriage resolve" in line]
    assert f"`/retriage resolve {DEDUPE_KEY} done`" in line
    assert "/retriage resolve" not in summed(of_window(written(1)))


@pytest.mark.parametrize("why", Skip)
def test_every_reason_to_skip_is_told_in_words(why: Skip) -> None:
    """And counted by issue."""
    text = summed(of_window(left(1, why), left(2, why), written(3)))
    [line] = section(text, "Skipped")
    assert line.startswith("- 2: ")
    assert line != f"- 2: {why}" or why is Skip.LOCKED


def test_what_github_or_the_repository_said_is_told_once() -> None:
    """The count, then each detail; a skipped comment alone is no skipped issue."""
    comment = effect(COMMENT, 3, evidence=Evidence.SKIPPED, reason="human-removed")
    text = summed(
        of_window(
            left(1, "refused: the repository has no label 'bug'"),
            left(2, "refused: the repository has no label 'bug'"),
            [comment, *in_place(3)],
            passed_over={"locked": 2, "labelled": 40},
        )
    )
    assert section(text, "Skipped") == [
        "- 2: refused by GitHub or the repository's settings",
        "- 2: locked, not looked at",
        "- the repository has no label 'bug'",
    ]


def test_what_was_not_looked_at_is_told() -> None:
    """Issues over the limit, and windows that never started, whichever run knew of them."""
    first = of_window(changes={"inputs": inputs(missed=["2026-09-14", "2026-09-15"])})
    text = summed(first, of_window(written(1), left_over=3), missed=["2026-09-15"])
    assert section(text, "Not yet looked at") == [
        "- 3 issues over the limit of one run: the next window goes on",
        "- windows never started: 2026-09-14, 2026-09-15",
    ]


def test_a_broken_policy_is_told() -> None:
    """With its error, until the file is mended."""
    notice = "The policy file is broken: line 3: jobs.x: unknown job <b>@ada</b>"
    text = summed(of_window(changes={"inputs": inputs(policy_notice=notice)}))
    assert section(text, "Policy") == [
        "The policy file is broken: line 3: jobs.x: unknown job "
        f"&lt;b&gt;@{ZERO_WIDTH}ada&lt;/b&gt;"
    ]
    mended = summed(of_window(changes={"inputs": inputs(policy_notice=notice)}), of_window())
    assert section(mended, "Policy") == []


def test_the_cost_is_that_of_all_runs() -> None:
    """Of the window, by the SDK's estimate and called so."""
    one = {"cost": Cost(estimated_usd=0.1, sessions=1)}
    two = {"cost": Cost(estimated_usd=0.25, sessions=2)}
    text = summed(of_window(changes=one), of_window(changes=two))
    assert section(text, "Cost") == ["$0.35 by the SDK's estimate, in 3 sessions of the model"]


def test_a_long_list_is_cut_and_the_rest_counted() -> None:
    """A summary is read, not searched."""
    text = summed(of_window(held=[held(n) for n in range(1, MOST_LISTED + 4)]))
    lines = section(text, "Held")
    assert len(lines) == MOST_LISTED + 1
    assert (lines[0][:9], lines[-1]) == ("- issue 1", "- and 3 more")
    whole = section(summed(of_window(held=[held(n) for n in range(1, MOST_LISTED + 1)])), "Held")
    assert len(whole) == MOST_LISTED
    assert "more" not in whole[-1]


@pytest.mark.parametrize("character", ["&", "x", "字"])
def test_the_longest_summary_is_cut_before_its_digest_is_taken(character: str) -> None:
    """Else the marker would name another body than the one that was intended, for ever."""
    text = summed(
        of_window(
            *(in_conflict(n, character * 2000) for n in range(1, 60)),
            held=[held(n, character * 200) for n in range(100, 160)],
        )
    )
    stamped = stamp(text, effect_key="e" * 64, run=DEDUPE_KEY, keys=KEYS)
    assert len(stamped) <= BODY_LIMIT
    assert intended_digest(stamped) == body_digest(text)


@given(st.text(), st.text())
def test_words_of_others_stay_on_their_line(reason: str, notice: str) -> None:
    """Whatever GitHub or a file said: no heading, no box, no link comes of it."""
    text = summed(
        of_window(
            in_conflict(1, reason),
            left(2, f"refused: {reason}"),
            changes={"inputs": inputs(policy_notice=notice)},
            held=[held(3, reason)],
        )
    )
    sections = ["Needs review", "Held", "Skipped", *(["Policy"] if notice else []), "Cost"]
    assert headings(text) == sections
    assert not kinds(text) & {"link_open", "image", "html_inline", "html_block", "fence"}


# --- The report of an observe run ---------------------------------------------------------------


def test_a_report_stands_where_its_window_says() -> None:
    """The same file for the same window."""
    assert report_path(inputs(), "daily-issue-triage", WINDOW) == (
        "reports/acme/api/daily-issue-triage/2026-09-16.md"
    )


def reported(earlier: str | None = None, **changes: Any) -> str:
    """The report of a run that decided issue 1, held issue 2, and found issue 3 in place."""
    made = Plan(decisions=(decision(1, **changes), decision(3)), held=(held(2),), cost=Cost())
    effects = [effect(COMMENT, 1), effect(LABEL, 1), *left(3, "locked")]
    observed = snapshot(issue(1), issue(2), issue(3))
    return report(inputs(mode=Mode.OBSERVE), observed, made, effects, earlier=earlier)


def test_a_report_shows_the_exact_writes() -> None:
    """Issue by issue: what would be written, what is held, and what is skipped."""
    text = reported()
    assert text.splitlines()[:12] == [
        "# acme/api: what would be written",
        "",
        f"Run `{DEDUPE_KEY}`, observed 2026-09-16 12:00 UTC, cut-off 2026-09-16 12:00 UTC, "
        "base 6dcb09b.",
        "3 issues, 2 writes, 1 held. Nothing was written to GitHub.",
        "",
        "## issue 1: Title 1",
        "",
        "- comment: issues/1/comments",
        "",
        "  > **Triage: `bug`.** Crashes on an empty file since 2.3.",
        "  > ",
        "  > <details>",
    ]
    assert "- labels: issues/1/labels: +bug" in text.splitlines()
    assert text.endswith(
        "\n## issue 2: Title 2\n\n- held: confidence 0.55 is below 0.70\n"
        "\n## issue 3: Title 3\n\n- labels: skipped locked\n"
    )


def test_a_comment_is_shown_only_where_it_would_be_written() -> None:
    """Once; not where it was skipped, and not below the labels."""
    assert reported().count("**Triage: ") == 1
    skipped = effect(COMMENT, 1, evidence=Evidence.SKIPPED, reason="human-removed")
    plan = Plan(decisions=(decision(1),), held=())
    text = report(inputs(), snapshot(), plan, [skipped, effect(LABEL, 1)], earlier=None)
    assert "**Triage: " not in text
    assert "- comment: skipped human-removed\n- labels: issues/1/labels: +bug\n" in text


def test_an_empty_repository_has_no_base() -> None:
    """There is no commit yet."""
    empty = report(
        inputs(), snapshot(base_commit=""), Plan(decisions=(), held=()), [], earlier=None
    )
    assert ", base -." in empty


DIFFERENCE = "# Difference from the report before"


def test_the_same_report_has_no_difference() -> None:
    """A second run of the window adds nothing."""
    assert reported(earlier=reported()) == reported()


def test_another_report_of_the_window_shows_what_changed() -> None:
    """Line by line, below the report itself."""
    changed = reported(earlier=reported(), verdict="Hangs on an empty file.")
    assert changed.startswith(reported(verdict="Hangs on an empty file."))
    difference = changed.partition(DIFFERENCE)[2]
    assert "\n-  > **Triage: `bug`.** Crashes on an empty file since 2.3.\n" in difference
    assert "\n+  > **Triage: `bug`.** Hangs on an empty file.\n" in difference
    assert difference.count("```") == 2


def test_a_third_report_does_not_nest_differences() -> None:
    """It is compared with the report before, not with its difference."""
    second = reported(earlier=reported(), verdict="Hangs on an empty file.")
    third = reported(earlier=second, verdict="Hangs for ever.")
    assert third.count(DIFFERENCE) == 1
    assert "Crashes" not in third
    assert reported(earlier=second, verdict="Hangs on an empty file.") == reported(
        verdict="Hangs on an empty file."
    )


def test_a_title_cannot_break_the_report() -> None:
    """It stays on its line, is cut, and neither ends the report nor opens a fence."""
    hostile = f"<img onerror=x>\n{DIFFERENCE}\n```@ada" + "&" * 300
    observed = snapshot(issue(1, title=hostile))
    plan = Plan(decisions=(), held=(held(1),))
    text = report(inputs(), observed, plan, [], earlier=None)
    assert DIFFERENCE not in text.splitlines()
    [heading] = [line for line in text.splitlines() if line.startswith("## ")]
    assert heading.startswith("## issue 1: &lt;img onerror=x&gt; ")
    assert heading.endswith("&amp;")
    assert "<img" not in text
    again = report(inputs(), observed, plan, [], earlier=text.replace("held:", "kept:"))
    assert again.partition(DIFFERENCE)[2].count("```") == 2
