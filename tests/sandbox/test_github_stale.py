"""A write becomes visible in each view when its lag is over, or flaps until then."""

from __future__ import annotations

import pytest

from sandbox.github import GitHub
from sandbox.github.views import View
from tests.sandbox.github_world import REPO, Api, HandClock, as_app, make_world

ISSUES = f"/repos/{REPO}/issues"


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def github(clock: HandClock) -> GitHub:
    world = make_world(clock)
    world.add_issue(REPO, "It crashes", "On start.", author="bob")
    clock.move(60)
    return world


@pytest.fixture
def api(github: GitHub) -> Api:
    return as_app(github)


def seen(api: Api, view: View, comment: object) -> bool:
    """Whether the comment (or what it did to the issue) shows in this view."""
    match view:
        case View.ISSUE:
            return api.json("GET", f"{ISSUES}/1")["comments"] == 1
        case View.COMMENT:
            return api("GET", f"{ISSUES}/comments/{comment}").status == 200
        case View.ISSUE_COMMENTS:
            return api.list(f"{ISSUES}/1/comments") != []
        case View.REPOSITORY_COMMENTS:
            return api.list(f"{ISSUES}/comments?since=2026-01-01T00:00:00Z") != []
        case View.ISSUES:
            return api.list(ISSUES)[0]["comments"] == 1
        case View.ISSUES_BY_CREATOR:
            return api.list(f"{ISSUES}?creator=bob")[0]["comments"] == 1
        case View.EVENTS:
            return any(each["event"] == "commented" for each in api.list(f"{ISSUES}/1/timeline"))


@pytest.mark.parametrize("view", list(View))
def test_each_view_lags_by_itself(github: GitHub, api: Api, clock: HandClock, view: View) -> None:
    github.fail("GET ", "stale", view=view, lag=5)
    made = api.json("POST", f"{ISSUES}/1/comments", {"body": "x"})["id"]
    clock.move(4)
    assert {each: seen(api, each, made) for each in View} == {each: each != view for each in View}
    clock.move(1)
    assert all(seen(api, each, made) for each in View)


def test_a_deletion_lags_too(github: GitHub, api: Api, clock: HandClock) -> None:
    comment = github.as_user("eve").comment(REPO, 1, "x")
    clock.move(60)
    github.fail("GET ", "stale", view="comment", lag=5)
    github.as_user("eve").delete_comment(REPO, comment)
    assert api("GET", f"{ISSUES}/comments/{comment}").status == 200
    clock.move(5)
    assert api("GET", f"{ISSUES}/comments/{comment}").status == 404


def test_labels_lag_with_their_issue(github: GitHub, api: Api, clock: HandClock) -> None:
    github.fail("GET ", "stale", view="issue", lag=5)
    api("POST", f"{ISSUES}/1/labels", ["bug"])
    assert api.list(f"{ISSUES}/1/labels") == []
    clock.move(5)
    assert len(api.list(f"{ISSUES}/1/labels")) == 1


def test_a_new_issue_lags_in_the_listing_by_creator(
    github: GitHub, api: Api, clock: HandClock
) -> None:
    github.fail("GET ", "stale", view="issues_by_creator", lag=5)
    api("POST", ISSUES, {"title": "Summary"})
    mine = f"{ISSUES}?creator=retriage%5Bbot%5D"
    assert api.list(mine) == []
    assert len(api.list(ISSUES)) == 2
    clock.move(5)
    assert len(api.list(mine)) == 1


def test_a_stale_view_delays_no_write(github: GitHub, api: Api) -> None:
    github.fail("* ", "stale", lag=3600)
    assert api("POST", f"{ISSUES}/1/comments", {"body": "x"}).status == 201
    assert len(github.comments(REPO, 1)) == 1


def test_a_list_flaps_as_measured(github: GitHub, api: Api) -> None:
    github.fail(
        "GET ", "flap", view="issue_comments", lag=60, sequence=[False, True, False, False, True]
    )
    api("POST", f"{ISSUES}/1/comments", {"body": "x"})
    found = [len(api.list(f"{ISSUES}/1/comments")) for _ in range(6)]
    assert found == [0, 1, 0, 0, 1, 0]


def test_dice_repeat_with_their_seed(clock: HandClock) -> None:
    """Young objects come and go, old ones stay, and it settles when the lag is over."""

    def run(seed: int) -> list[int]:
        time = HandClock()
        world = make_world(time)
        world.add_issue(REPO, "It crashes")
        for index in range(3):
            world.as_user("eve").comment(REPO, 1, f"{index}")
        time.move(60)
        api = as_app(world)
        world.fail("GET ", "flap", view="issue_comments", lag=30, seed=seed)
        for index in range(3):
            api("POST", f"{ISSUES}/1/comments", {"body": f"{index}"})
        found = [len(api.list(f"{ISSUES}/1/comments")) for _ in range(12)]
        time.move(30)
        assert len(api.list(f"{ISSUES}/1/comments")) == 6
        return found

    first = run(3)
    assert first == run(3)
    assert first != run(4)
    assert min(first) >= 3
    assert len(set(first)) > 1
