"""Locked, archived, transferred, deleted, renamed: each answers in GitHub's way."""

from __future__ import annotations

import pytest

from sandbox.github import GitHub
from tests.sandbox.github_world import REPO, REPO_ID, Api, as_app, as_user, make_world

ISSUE = f"/repos/{REPO}/issues/1"
WRITES = [
    ("POST", f"{ISSUE}/comments", {"body": "x"}),
    ("POST", f"{ISSUE}/labels", {"labels": ["bug"]}),
    ("PATCH", ISSUE, {"title": "y"}),
    ("POST", f"{ISSUE}/reactions", {"content": "eyes"}),
]


@pytest.fixture
def github() -> GitHub:
    world = make_world()
    world.add_issue(REPO, "It crashes", "On start.", author="bob", labels=["bug", "question"])
    world.as_user("bob").comment(REPO, 1, "Anyone?")
    return world


@pytest.fixture
def api(github: GitHub) -> Api:
    return as_app(github)


def test_a_locked_issue_takes_no_comments(github: GitHub, api: Api) -> None:
    """From Apps and from those without the right to write; labels are still taken."""
    github.as_user("alice").lock(REPO, 1, "spam")
    for asker in (api, as_user(github, "bob")):
        answer = asker("POST", f"{ISSUE}/comments", {"body": "x"})
        assert answer.status == 403
        assert b"Unable to create comment because issue is locked." in answer.body
    assert as_user(github, "alice")("POST", f"{ISSUE}/comments", {"body": "x"}).status == 201
    assert api("POST", f"{ISSUE}/labels", ["enhancement"]).status == 200
    assert len(github.comments(REPO, 1)) == 2
    github.as_user("alice").unlock(REPO, 1)
    assert api("POST", f"{ISSUE}/comments", {"body": "x"}).status == 201


@pytest.mark.parametrize(("method", "path", "content"), WRITES)
def test_an_archived_repository_is_read_only(
    github: GitHub, api: Api, method: str, path: str, content: object
) -> None:
    github.as_user("alice").archive_repository(REPO)
    answer = api(method, path, content)
    assert answer.status == 403
    assert b"Repository was archived so is read-only." in answer.body
    assert api("GET", ISSUE).status == 200
    assert api.json("GET", f"/repos/{REPO}")["archived"] is True


@pytest.mark.parametrize(("method", "path", "content"), [*WRITES, ("GET", ISSUE, None)])
def test_a_transferred_issue_redirects_every_method(
    github: GitHub, api: Api, method: str, path: str, content: object
) -> None:
    number = github.as_user("alice").transfer(REPO, 1, "acme/web")
    answer = api(method, path, content)
    place = f"/repositories/{github.repository('acme/web').id}/issues/{number}"
    assert answer.status == 301
    assert answer.headers["location"] == github.base_url + place + path.removeprefix(ISSUE)
    assert github.issue("acme/web", number).title == "It crashes"
    assert len(github.comments("acme/web", number)) == 1
    assert all(each.number != 1 for each in github.issues(REPO))


def test_a_transfer_keeps_comments_and_known_labels(github: GitHub, api: Api) -> None:
    (comment,) = github.comments(REPO, 1)
    github.as_user("alice").delete_label("acme/web", "question")
    number = github.as_user("alice").transfer(REPO, 1, "acme/web")
    assert github.labels("acme/web", number) == ["bug"]
    assert github.comments("acme/web", number) == [comment]
    assert api("GET", f"/repos/acme/web/issues/comments/{comment.id}").status == 200
    assert api("GET", f"/repos/{REPO}/issues/comments/{comment.id}").status == 404


def test_a_transfer_out_of_sight_is_404(github: GitHub, api: Api) -> None:
    github.add_repository("zoe/hidden", private=True)
    github.as_user("alice").transfer(REPO, 1, "zoe/hidden")
    assert api("GET", ISSUE).status == 404


@pytest.mark.parametrize(("method", "path", "content"), [*WRITES, ("GET", ISSUE, None)])
def test_a_deleted_issue_is_410(
    github: GitHub, api: Api, method: str, path: str, content: object
) -> None:
    (comment,) = github.comments(REPO, 1)
    github.as_user("alice").delete_issue(REPO, 1)
    answer = api(method, path, content)
    assert answer.status == 410
    assert b"This issue was deleted" in answer.body
    assert api("GET", f"/repos/{REPO}/issues/comments/{comment.id}").status == 404
    assert api.list(f"/repos/{REPO}/issues?state=all") == []
    assert api.list(f"/repos/{REPO}/issues/comments") == []


def test_a_deleted_comment_is_404(github: GitHub, api: Api) -> None:
    made = api.json("POST", f"{ISSUE}/comments", {"body": "x"})
    path = f"/repos/{REPO}/issues/comments/{made['id']}"
    github.as_user("alice").delete_comment(REPO, int(str(made["id"])))
    for method, content in (("GET", None), ("PATCH", {"body": "y"}), ("DELETE", None)):
        assert api(method, path, content).status == 404


def test_a_renamed_repository_redirects(github: GitHub, api: Api) -> None:
    github.as_user("alice").rename_repository(REPO, "interface")
    for method, content in (("GET", None), ("POST", {"body": "x"})):
        answer = api(method, f"{ISSUE}/comments?per_page=5", content)
        place = f"/repositories/{REPO_ID}/issues/1/comments?per_page=5"
        assert (answer.status, answer.headers["location"]) == (301, github.base_url + place)
    assert api("GET", f"/repositories/{REPO_ID}/issues/1").status == 200
    assert api.json("GET", "/repos/acme/interface")["full_name"] == "acme/interface"
    assert len(github.comments("acme/interface", 1)) == 1


def test_a_deleted_repository_is_404(github: GitHub, api: Api) -> None:
    github.as_user("alice").delete_repository(REPO)
    assert api("GET", ISSUE).status == 404
    assert api("GET", f"/repositories/{REPO_ID}/issues/1").status == 404


def test_a_deleted_label_leaves_every_issue(github: GitHub, api: Api) -> None:
    github.as_user("alice").delete_label(REPO, "bug")
    assert github.labels(REPO, 1) == ["question"]
    assert api("GET", f"/repos/{REPO}/labels/bug").status == 404


def test_without_issues_there_are_none(github: GitHub, api: Api) -> None:
    github.repository(REPO).has_issues = False
    assert api("GET", f"/repos/{REPO}/issues").status == 410
    assert api("POST", f"/repos/{REPO}/issues", {"title": "x"}).status == 410
