"""Issues, labels, comments and reactions behave as GitHub's."""

from __future__ import annotations

import base64
import re

import pytest

from sandbox.github import GitHub
from tests.sandbox.github_world import (
    REPO,
    REPO_ID,
    Api,
    HandClock,
    as_app,
    as_user,
    logins,
    make_world,
    names,
)

ISSUES = f"/repos/{REPO}/issues"


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def github(clock: HandClock) -> GitHub:
    world = make_world(clock)
    world.add_issue(REPO, "It crashes", "On start.", author="bob")
    return world


@pytest.fixture
def api(github: GitHub) -> Api:
    return as_app(github)


def test_what_the_app_writes_is_the_bots(api: Api) -> None:
    made = api.json("POST", f"{ISSUES}/1/comments", {"body": "Hello"})
    user, app = made["user"], made["performed_via_github_app"]
    assert isinstance(user, dict)
    assert isinstance(app, dict)
    assert (user["login"], user["type"]) == ("retriage[bot]", "Bot")
    assert (app["slug"], app["id"]) == ("retriage", 42)
    assert made["author_association"] == "NONE"


def test_by_name_and_by_id_it_is_one(github: GitHub, api: Api) -> None:
    assert api("GET", f"{ISSUES}/1").body == api("GET", f"/repositories/{REPO_ID}/issues/1").body
    api("POST", f"/repositories/{REPO_ID}/issues/1/comments", {"body": "x"})
    last = github.requests()[-1]
    assert (last.canonical, last.by_id) == (f"{ISSUES}/1/comments", True)
    assert last.path == f"/repositories/{REPO_ID}/issues/1/comments"


def test_an_unknown_label_is_created(github: GitHub, api: Api) -> None:
    """GitHub does so, and so a bot must ask first."""
    answer = api("POST", f"{ISSUES}/1/labels", {"labels": ["bug", "brand new"]})
    assert (answer.status, names(answer.json())) == (200, ["bug", "brand new"])
    made = api.json("GET", f"/repos/{REPO}/labels/brand%20new")
    assert (made["color"], made["default"]) == ("ededed", False)
    assert github.events(REPO, 1) == [("labeled", "retriage[bot]")] * 2


def test_a_label_that_is_there_changes_nothing(github: GitHub, api: Api, clock: HandClock) -> None:
    api("POST", f"{ISSUES}/1/labels", ["bug"])
    before = github.issue(REPO, 1)
    clock.move(60)
    assert names(api("POST", f"{ISSUES}/1/labels", ["BUG"]).json()) == ["bug"]
    assert github.issue(REPO, 1) == before
    assert len(github.events(REPO, 1)) == 1


def test_labels_are_replaced_and_removed(github: GitHub, api: Api) -> None:
    api("POST", f"{ISSUES}/1/labels", ["bug", "question"])
    assert names(api("PUT", f"{ISSUES}/1/labels", ["question", "enhancement"]).json()) == [
        "question",
        "enhancement",
    ]
    assert names(api("DELETE", f"{ISSUES}/1/labels/question").json()) == ["enhancement"]
    answer = api("DELETE", f"{ISSUES}/1/labels/question")
    assert answer.status == 404
    assert b"Label does not exist" in answer.body
    assert [event for event, _ in github.events(REPO, 1)].count("unlabeled") == 2


def test_a_label_with_a_slash_in_its_name(github: GitHub, api: Api) -> None:
    api("POST", f"{ISSUES}/1/labels", ["area/web"])
    assert api.json("GET", f"/repos/{REPO}/labels/area%2Fweb")["name"] == "area/web"
    assert api("DELETE", f"{ISSUES}/1/labels/area%2Fweb").status == 200


def test_a_hundred_labels_are_the_most(github: GitHub, api: Api) -> None:
    wished = [f"label {n}" for n in range(101)]
    assert api("POST", f"{ISSUES}/1/labels", wished[:100]).status == 200
    answer = api("POST", f"{ISSUES}/1/labels", wished[100:])
    assert answer.status == 422
    assert len(github.labels(REPO, 1)) == 100
    assert api("PUT", f"{ISSUES}/1/labels", wished).status == 422


def test_a_suggested_label_is_not_applied(github: GitHub, api: Api) -> None:
    """Issue intents: recorded for a person to accept."""
    answer = api("POST", f"{ISSUES}/1/labels", {"labels": [{"name": "bug", "suggest": True}]})
    assert (answer.status, answer.json()) == (200, [])
    assert github.labels(REPO, 1) == []
    assert api.json("GET", f"{ISSUES}/1")["suggestions"] == {"labels": [{"name": "bug"}]}


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (f"{ISSUES}/1/comments", {"body": ""}),
        (f"{ISSUES}/1/comments", {"body": " \n"}),
        (f"{ISSUES}/1/comments", {}),
        (f"{ISSUES}/1/comments", {"body": 7}),
        (f"{ISSUES}/1/comments", {"body": "x" * 65_537}),
        (f"{ISSUES}/1/labels", {"labels": ["x" * 51]}),
        (f"{ISSUES}/1/labels", {"labels": [""]}),
        (f"{ISSUES}/1/labels", {}),
        (f"{ISSUES}/1/reactions", {"content": "shrug"}),
        (ISSUES, {"title": ""}),
        (ISSUES, {"body": "no title"}),
        (ISSUES, {"title": "x" * 257}),
        (ISSUES, {"title": "x", "body": "y" * 65_537}),
        (f"/repos/{REPO}/labels", {"name": "bug"}),
        (f"/repos/{REPO}/labels", {"name": "red", "color": "red"}),
    ],
)
def test_what_is_invalid_is_422_with_errors(
    github: GitHub, api: Api, path: str, content: object
) -> None:
    answer = api("POST", path, content)
    told = answer.json()
    assert isinstance(told, dict)
    assert (answer.status, told["message"]) == (422, "Validation Failed")
    assert told["errors"]
    assert not github.requests(applied=True, method="POST", path="/repos")


def test_the_longest_comment_is_taken(github: GitHub, api: Api) -> None:
    assert api("POST", f"{ISSUES}/1/comments", {"body": "x" * 65_536}).status == 201


@pytest.mark.parametrize("body", [b"{", b"\xff", b"[1]"])
def test_a_body_that_is_none(api: Api, body: bytes) -> None:
    assert api("POST", f"{ISSUES}/1/comments", body).status == 400


def test_writing_moves_updated_at(github: GitHub, api: Api, clock: HandClock) -> None:
    stamps = [github.issue(REPO, 1).updated_at]
    writes: list[tuple[str, str, object]] = [
        ("POST", f"{ISSUES}/1/comments", {"body": "x"}),
        ("POST", f"{ISSUES}/1/labels", ["bug"]),
        ("PATCH", f"{ISSUES}/1", {"state": "closed"}),
    ]
    for method, path, content in writes:
        clock.move(10)
        assert api(method, path, content).status in (200, 201)
        stamps.append(github.issue(REPO, 1).updated_at)
    assert sorted(set(stamps)) == stamps
    assert stamps[-1] == "2026-09-16T09:00:30Z"


def test_since_goes_by_updated_at(github: GitHub, api: Api, clock: HandClock) -> None:
    first = api.json("POST", f"{ISSUES}/1/comments", {"body": "old"})
    clock.move(60)
    api("POST", f"{ISSUES}/1/comments", {"body": "young"})
    for path in (f"{ISSUES}/1/comments", f"{ISSUES}/comments"):
        since = f"{path}?since=2026-09-16T09:01:00Z"
        assert [each["body"] for each in api.list(since)] == ["young"]
        assert api.list(f"{path}?since=2026-09-16T11:01:00.5%2B02:00") == []
        assert api("GET", f"{path}?since=yesterday").status == 422
    clock.move(60)
    api("PATCH", f"{ISSUES}/comments/{first['id']}", {"body": "old, edited"})
    bodies = [each["body"] for each in api.list(f"{ISSUES}/comments?since=2026-09-16T09:01:00Z")]
    assert bodies == ["old, edited", "young"]
    assert [each["number"] for each in api.list(f"{ISSUES}?since=2026-09-16T09:02:00Z")] == [1]
    assert api.list(f"{ISSUES}?since=2026-09-16T09:02:01Z") == []


def test_the_listing_filters_and_sorts(github: GitHub, api: Api, clock: HandClock) -> None:
    clock.move(1)
    github.add_issue(REPO, "Second", author="eve", labels=["bug", "question"])
    clock.move(1)
    github.add_issue(REPO, "A change", author="eve", pull_request=True)
    github.as_user("alice").close(REPO, 1)

    def numbers(query: str) -> list[object]:
        return [each["number"] for each in api.list(f"{ISSUES}{query}")]

    assert numbers("") == [3, 2]
    assert numbers("?state=all&sort=created&direction=asc") == [1, 2, 3]
    assert numbers("?state=closed") == [1]
    assert numbers("?labels=bug,Question") == [2]
    assert numbers("?creator=eve") == [3, 2]
    assert numbers("?state=all&sort=updated") == [3, 1, 2]
    assert [("pull_request" in each) for each in api.list(ISSUES)] == [True, False]


def test_pages_are_linked_by_repository_id(github: GitHub, api: Api) -> None:
    for index in range(6):
        github.add_issue(REPO, f"Issue {index}")
    path, seen, pages = f"{ISSUES}?per_page=3&direction=asc", [], 0
    while path:
        answer = api("GET", path)
        found = answer.json()
        assert isinstance(found, list)
        seen += [each["number"] for each in found]
        pages += 1
        links = {
            match[2]: match[1]
            for match in re.finditer(r'<([^>]+)>; rel="(\w+)"', answer.headers["link"])
        }
        path = links.get("next", "").removeprefix(github.base_url)
        assert not path or path.startswith(f"/repositories/{REPO_ID}/issues?per_page=3")
    assert (seen, pages) == ([1, 2, 3, 4, 5, 6, 7], 3)
    assert set(links) == {"prev", "first"}


def test_a_page_has_a_hundred_at_most(github: GitHub, api: Api) -> None:
    for index in range(105):
        github.add_issue(REPO, f"Issue {index}")
    assert len(api.list(f"{ISSUES}?per_page=500")) == 100
    assert len(api.list(ISSUES)) == 30
    assert api.list(f"{ISSUES}?page=99") == []


def test_a_conditional_request_costs_nothing(github: GitHub, api: Api) -> None:
    first = api("GET", ISSUES)
    tag, left = first.headers["etag"], int(first.headers["x-ratelimit-remaining"])
    again = api("GET", ISSUES, if_none_match=tag)
    assert (again.status, again.body) == (304, b"")
    assert int(again.headers["x-ratelimit-remaining"]) == left
    github.as_user("eve").comment(REPO, 1, "x")
    changed = api("GET", ISSUES, if_none_match=tag)
    assert changed.status == 200
    assert int(changed.headers["x-ratelimit-remaining"]) == left - 1


def test_a_reaction_is_given_once(github: GitHub, api: Api) -> None:
    first = api("POST", f"{ISSUES}/1/reactions", {"content": "eyes"})
    again = api("POST", f"{ISSUES}/1/reactions", {"content": "eyes"})
    assert (first.status, again.status) == (201, 200)
    assert first.json() == again.json()
    as_user(github, "eve")("POST", f"{ISSUES}/1/reactions", {"content": "eyes"})
    counts = api.json("GET", f"{ISSUES}/1")["reactions"]
    assert isinstance(counts, dict)
    assert (counts["eyes"], counts["total_count"]) == (2, 2)
    assert logins(api.list(f"{ISSUES}/1/reactions")) == ["retriage[bot]", "eve"]
    mine = first.json()
    assert isinstance(mine, dict)
    assert api("DELETE", f"{ISSUES}/1/reactions/{mine['id']}").status == 204
    assert logins(api.list(f"{ISSUES}/1/reactions")) == ["eve"]


def test_events_tell_who_did_what(github: GitHub, api: Api) -> None:
    api("POST", f"{ISSUES}/1/labels", ["bug"])
    github.as_user("alice").unlabel(REPO, 1, "bug")
    told = api.list(f"{ISSUES}/1/events")
    assert [(each["event"], each["label"]) for each in told] == [
        ("labeled", {"name": "bug", "color": "d73a4a"}),
        ("unlabeled", {"name": "bug", "color": "d73a4a"}),
    ]
    by_app = [each["performed_via_github_app"] is not None for each in told]
    assert by_app == [True, False]
    everywhere = api.list(f"{ISSUES}/events")
    assert [each["id"] for each in everywhere] == [each["id"] for each in reversed(told)]


def test_comments_of_the_repository_are_in_the_order_asked_for(github: GitHub, api: Api) -> None:
    github.add_issue(REPO, "Another")
    ids = [github.as_user("eve").comment(REPO, 1 + n % 2, f"{n}") for n in range(4)]
    assert [each["id"] for each in api.list(f"{ISSUES}/comments")] == ids
    down = api.list(f"{ISSUES}/comments?sort=created&direction=desc")
    assert [each["id"] for each in down] == ids[::-1]
    up = api.list(f"{ISSUES}/comments?sort=created&direction=asc&per_page=2&page=2")
    assert [each["id"] for each in up] == ids[2:]


def test_files_are_base64_and_committed(github: GitHub, api: Api) -> None:
    path = f"/repos/{REPO}/contents/.github/retriage.yml"
    assert api("GET", path).status == 404
    before = api.list(f"/repos/{REPO}/commits")
    sha = github.put_file(REPO, ".github/retriage.yml", "jobs: {}\n# 分類\n", author="alice")
    file = api.json("GET", path)
    assert base64.b64decode(str(file["content"])).decode() == "jobs: {}\n# 分類\n"
    assert api("GET", path, accept="application/vnd.github.raw+json").body.endswith(
        "分類\n".encode()
    )
    commits = api.list(f"/repos/{REPO}/commits?path=.github")
    assert [each["sha"] for each in commits] == [sha]
    assert api("GET", f"{path}?ref={before[0]['sha']}").status == 404
    tip = api.json("GET", f"/repos/{REPO}/branches/main")["commit"]
    assert isinstance(tip, dict)
    assert tip["sha"] == sha
    assert api.json("GET", f"/repos/{REPO}/commits/{sha[:10]}")["sha"] == sha
    assert api("GET", f"/repos/{REPO}/commits/0000000").status == 422
    assert api("GET", f"/repos/{REPO}/branches/no/such").status == 404


def test_the_organizations_own_repository_has_files_too(github: GitHub, api: Api) -> None:
    github.add_repository("acme/.github")
    github.put_file("acme/.github", ".github/retriage.yml", "jobs: {}\n")
    assert api("GET", "/repos/acme/.github/contents/.github/retriage.yml").status == 200


def test_unknown_addresses_are_404(api: Api) -> None:
    in_repository = ("/nothing", "/issues/99", "/issues/abc", "/issues/comments/1", "/labels/none")
    paths = [f"/repos/{REPO}{each}" for each in in_repository]
    for path in (*paths, "/nothing", "/repos/acme/none", "/repositories/1", "/users/nobody"):
        answer = api("GET", path)
        assert answer.status == 404, path
        assert b'"message":"Not Found"' in answer.body
