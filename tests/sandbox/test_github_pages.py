"""The pages for people: everything escaped, HTML comments hidden, no script needed."""

from __future__ import annotations

import pytest

from sandbox.github import GitHub, Request, Respond
from sandbox.github.pages import page
from tests.sandbox.github_world import REPO, make_world

NASTY = '<img src=x onerror="alert(1)"><script>alert(2)</script> @everyone'


@pytest.fixture
def github() -> GitHub:
    world = make_world()
    world.as_user("alice").create_label(REPO, "<b>bold</b>", '00"onx')
    world.add_issue(
        REPO,
        f"Title {NASTY}",
        f"Body {NASTY}\n<!-- hidden in the body -->\nafter",
        author="bob",
        labels=["bug", "<b>bold</b>"],
    )
    world.as_user("eve").comment(REPO, 1, f"<!-- marker -->\nComment {NASTY}\n<!-- open ended")
    return world


def show(github: GitHub, path: str, status: int = 200, query: str = "") -> str:
    answer = page(github, Request("GET", path, query))
    assert isinstance(answer, Respond)
    assert answer.status == status
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return answer.body.decode()


@pytest.mark.parametrize("path", [f"/{REPO}/issues/1", f"/{REPO}/issues"])
def test_everything_is_escaped(github: GitHub, path: str) -> None:
    text = show(github, path)
    assert "<img" not in text
    assert "<script" not in text
    assert "<b>bold" not in text
    assert '00"onx' not in text
    assert "&lt;img src=x onerror=&#34;alert(1)&#34;&gt;" in text
    assert "Title" in text
    assert "&lt;b&gt;bold&lt;/b&gt;" in text


def test_comments_in_html_are_hidden(github: GitHub) -> None:
    text = show(github, f"/{REPO}/issues/1")
    for hidden in ("hidden in the body", "marker", "open ended"):
        assert hidden not in text
    assert "after" in text
    assert "Comment" in text


def test_the_addresses_of_the_api_lead_here(github: GitHub) -> None:
    (comment,) = github.comments(REPO, 1)
    text = show(github, f"/{REPO}/issues/1")
    assert f'id="issuecomment-{comment.id}"' in text
    assert f'href="/{REPO}/issues/1"' in show(github, f"/{REPO}/issues")


def test_the_list_goes_by_state(github: GitHub) -> None:
    github.as_user("alice").close(REPO, 1)
    assert "Nothing here." in show(github, f"/{REPO}/issues")
    assert "Title" in show(github, f"/{REPO}/issues", query="state=closed")


def test_what_is_not_there(github: GitHub) -> None:
    show(github, "/acme/none/issues", 404)
    show(github, f"/{REPO}/issues/9", 404)
    github.add_issue(REPO, "Gone")
    github.as_user("alice").delete_issue(REPO, 2)
    show(github, f"/{REPO}/issues/2", 410)
    github.as_user("alice").transfer(REPO, 1, "acme/web")
    moved = page(github, Request("GET", f"/{REPO}/issues/1"))
    assert moved is not None
    assert (moved.status, moved.headers["location"]) == (301, "/acme/web/issues/1")


@pytest.mark.parametrize(
    "path", [f"/repos/{REPO}/issues", "/user", "/users/bob", "/app", "/app/installations", "/a/b/c"]
)
def test_the_api_is_not_a_page(github: GitHub, path: str) -> None:
    assert page(github, Request("GET", path)) is None
