"""``retriage run``: one window, here and now, and again."""

from pathlib import Path

from sandbox.github.faults import POST_COMMENT, POST_LABELS
from sandbox.model import Misbehaviour
from tests.cli.terminal import NO_APP, REPOSITORY, World, today, world


def test_twice_is_once(here: World) -> None:
    """The second run reuses the first: one comment on each issue, no further write. What people
    changed since is told, and left."""
    first = here.terminal.type("run", REPOSITORY)
    assert first.code == 0, first.err
    assert first.out.startswith(f"✓ completed  daily-issue-triage {today()}  {REPOSITORY}")
    assert first.out.splitlines()[-1].startswith("Evidence: retriage show daily-issue-triage:R")
    names = [line.split("  ")[0] for line in first.err.splitlines()]
    assert names[:4] == ["Snapshot", "Plan", "Wrote", "Read back"]
    assert "\nRUN-COMPLETED run=" in first.err
    assert "\x1b" not in first.out + first.err  # neither colours nor motion where it is piped
    assert here.bot_comments() == 3
    before = len(here.writes())

    second = here.terminal.type("run", REPOSITORY, "--json")
    assert second.code == 0
    answer = second.json
    assert (answer["outcome"], answer["status"]) == ("reused", "completed")
    assert answer["drift"] == []
    assert answer["run"]["dedupe_key"] == answer["dedupe_key"]
    assert "RUN-REUSED run=" in second.err
    assert len(here.writes()) == before

    here.github.as_user("maintainer").unlabel(REPOSITORY, 1, "bug")
    third = here.terminal.type("run", REPOSITORY)
    assert third.code == 0
    assert "\nDrift: issue 1: label 'bug' is gone\n" in third.out
    assert len(here.writes()) == before


def test_observing_writes_nothing_and_prints_the_writes(tmp_path: Path) -> None:
    """The report has the exact writes, and titles of strangers do no harm in a terminal. A broken
    policy stops nothing that the last good one allowed. A ledger that is new
    keeps nobody from observing."""
    with world(tmp_path, first=False) as here:
        here.github.add_issue(
            REPOSITORY,
            "Crash \x1b[2J\u202e of 中文 عربي <img onerror> @everyone",
            "x",
            author="reporter",
        )
        token = here.github.add_token("alice")
        words = ("run", REPOSITORY, "--mode", "observe")
        ended = here.terminal.type(*words, **NO_APP, GITHUB_TOKEN=token)
        assert ended.code == 0, ended.err
        assert here.writes() == []
        assert "- labels: issues/1/labels: +bug" in ended.out
        assert "中文 عربي" in ended.out
        assert not {"\x1b", "\u202e"} & set(ended.out)
        result = [line for line in ended.out.splitlines() if line.startswith("Result: ")]
        assert result[0].endswith(f"reports/acme/api/daily-issue-triage/{today()}.md")

        here.github.put_file(REPOSITORY, ".github/retriage.yml", "jobs: 1\n")
        again = here.terminal.type(*words, "--json", **NO_APP, GITHUB_TOKEN=token)
        assert again.code == 0
        assert "Warning: The policy file is broken, the last good one is used: line 1" in again.err
        assert again.json["outcome"] == "reused"
        assert again.json["report"].startswith("# acme/api: what would be written")


def test_a_lost_reply(here: World) -> None:
    """The comment landed, its reply did not: 1, and the command that is named goes on. The comment
    is not sent again."""
    here.github.fail(POST_COMMENT, "apply then drop")
    first = here.terminal.type("run", REPOSITORY)
    assert first.code == 1, first.out
    assert first.out.startswith("‼ failed-after-write")
    again = first.out.splitlines()[-1].removeprefix("Again: retriage ")
    second = here.terminal.type(*again.split())
    assert second.code == 0, second.out
    assert "Read back  7 of 7 match" in second.err
    assert here.bot_comments() == 3
    assert sum(write.endswith("/comments") for write in here.writes()) == 3


def test_a_proof_is_pending(here: World) -> None:
    """Not seen and not proved absent: 1; asked again before the proof, 99 with the time."""
    here.github.fail(POST_COMMENT, "502")
    longer = {"RETRIAGE_ABSENCE_WINDOW_SECONDS": "600"}
    first = here.terminal.type("run", REPOSITORY, **longer)
    assert first.code == 1
    assert "failed-after-write" in first.out
    second = here.terminal.type("run", REPOSITORY, **longer)
    assert second.code == 99
    assert "a proof is pending, until 20" in second.out
    assert "Asia/Taipei (" in second.out
    assert here.bot_comments() == 2


def test_a_conflict_needs_a_person(here: World) -> None:
    """3, with what is undecided, what was tried, and what to do; and again, without a write."""
    here.github.fail(POST_LABELS, "422")
    first = here.terminal.type("run", REPOSITORY)
    assert first.code == 3, first.out
    assert "? needs-review" in first.out
    assert "undecided  issues/1/labels: +bug, conflict" in first.out
    before = len(here.writes())
    second = here.terminal.type("run", REPOSITORY, "--json")
    assert second.code == 3
    assert second.json["outcome"] == "stopped"
    assert len(here.writes()) == before
    listed = here.terminal.type("runs", "--status", "needs-review")
    for word in ("undecided", "tried", "read", "do"):
        assert f"\n  {word} " in listed.out


def test_the_model_fails_before_any_write(here: World) -> None:
    """1, nothing written, and the same command goes on."""
    here.model.misbehave(Misbehaviour.UNAUTHORIZED)
    ended = here.terminal.type("run", REPOSITORY, "--json")
    assert ended.code == 1
    assert ended.json["status"] == "failed-before-write"
    assert here.writes() == []
    here.model.reset()
    assert here.terminal.type("run", REPOSITORY).code == 0


def test_a_person_decides(here: World) -> None:
    """GitHub refuses a comment: a person is asked, says why it should be sent again, and it is. A
    decision about a run that is over, and one that is none, get one line and 2."""
    here.github.fail(POST_COMMENT, "422")
    asked = here.terminal.type("run", REPOSITORY, "--json")
    assert asked.code == 3, asked.err
    key = asked.json["dedupe_key"]
    none = here.terminal.type("resolve", key, "--as", "maybe", "--reason", "x")
    assert (none.code, none.out) == (2, "")
    assert "done, retry, abandon" in none.err
    decided = here.terminal.type("resolve", key, "--as", "retry", "--reason", "mended", "--json")
    assert decided.code == 0, decided.err
    assert decided.json["status"] == "completed"
    assert here.bot_comments() == 3
    shown = here.terminal.type("show", key, "--json").json
    assert [item["why"] for item in shown["resolutions"]] == ["mended"]
    over = here.terminal.type("resolve", key, "--as", "done", "--reason", "x")
    assert over.code == 2
    assert "only needs-review can be resolved" in over.err
