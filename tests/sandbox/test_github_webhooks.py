"""Webhooks: who is told what, signed, in an outbox that can be emptied by hand."""

from __future__ import annotations

import hashlib
import hmac
import json

import pytest

from sandbox.github import GitHub
from tests.sandbox.github_world import REPO, REPO_ID, Api, as_app, make_world

SECRET = "It's a Secret to Everybody"


@pytest.fixture
def github() -> GitHub:
    world = make_world()
    world.set_hook("retriage", "http://127.0.0.1:1/hook", SECRET)
    return world


@pytest.fixture
def api(github: GitHub) -> Api:
    return as_app(github)


def by_hand(algorithm: str, body: bytes) -> str:
    """An HMAC without the hmac of the code under test: RFC 2104, step by step."""
    block = SECRET.encode().ljust(64, b"\0")
    inner = hashlib.new(algorithm, bytes(b ^ 0x36 for b in block) + body).digest()
    return hashlib.new(algorithm, bytes(b ^ 0x5C for b in block) + inner).hexdigest()


def test_they_are_signed(github: GitHub) -> None:
    github.add_issue(REPO, "It crashes 分類", "On start.")
    (sent,) = github.outbox.drain()
    assert sent.headers["X-Hub-Signature-256"] == "sha256=" + by_hand("sha256", sent.body)
    assert sent.headers["X-Hub-Signature"] == "sha1=" + by_hand("sha1", sent.body)
    assert by_hand("sha256", b"x") == hmac.new(SECRET.encode(), b"x", "sha256").hexdigest()
    assert sent.headers["X-GitHub-Event"] == "issues"
    assert sent.headers["X-GitHub-Delivery"] == sent.guid
    assert sent.headers["X-GitHub-Hook-Installation-Target-ID"] == "42"
    assert sent.headers["X-GitHub-Hook-Installation-Target-Type"] == "integration"


def test_the_payload_shows_the_state_of_that_moment(github: GitHub, api: Api) -> None:
    github.add_issue(REPO, "It crashes", "On start.", author="bob")
    comment = api.json("POST", f"/repos/{REPO}/issues/1/comments", {"body": "x"})
    github.as_user("alice").edit_comment(REPO, int(str(comment["id"])), "y")
    github.as_user("alice").delete_comment(REPO, int(str(comment["id"])))
    _, created, edited, deleted = (json.loads(each.body) for each in github.outbox.drain())
    assert created["action"] == "created"
    assert created["comment"] == comment
    assert created["sender"]["login"] == "retriage[bot]"
    assert created["issue"]["comments"] == 1
    assert created["repository"]["id"] == REPO_ID
    assert created["organization"]["login"] == "acme"
    assert created["installation"]["id"] == 5001
    assert edited["changes"] == {"body": {"from": "x"}}
    assert edited["comment"]["body"] == deleted["comment"]["body"] == "y"
    assert deleted["sender"]["login"] == "alice"


def test_a_ticked_box_is_an_edit_that_names_the_text_before(github: GitHub) -> None:
    before = "- [ ] close this <!-- a -->\n- [ ] post it again <!-- b -->"
    github.add_issue(REPO, "Summary", before)
    github.outbox.drain()
    github.as_user("alice").tick_box(REPO, 1, box="post it again")
    (sent,) = github.outbox.drain()
    told = json.loads(sent.body)
    assert (sent.event, told["action"]) == ("issues", "edited")
    assert told["changes"] == {"body": {"from": before}}
    assert told["issue"]["body"] == before.replace("- [ ] post", "- [x] post")
    assert told["sender"]["type"] == "User"


def test_a_transfer_tells_where_it_went(github: GitHub) -> None:
    github.add_issue(REPO, "It crashes")
    github.outbox.drain()
    github.as_user("alice").transfer(REPO, 1, "acme/web")
    left, arrived = (json.loads(each.body) for each in github.outbox.drain())
    assert (left["action"], left["issue"]["number"]) == ("transferred", 1)
    assert left["changes"]["new_repository"]["full_name"] == "acme/web"
    assert left["changes"]["new_issue"]["id"] == arrived["issue"]["id"]
    assert arrived["repository"]["full_name"] == "acme/web"


def test_only_what_is_subscribed_and_covered_is_told(github: GitHub) -> None:
    github.add_repository("zoe/own")
    github.add_issue("zoe/own", "Elsewhere")
    github.as_user("alice").create_label(REPO, "new")
    github.apps[42].events.remove("label")
    github.as_user("alice").create_label(REPO, "newer")
    assert [each.event for each in github.outbox.drain()] == ["label"]
    github.suspend(5001)
    github.add_issue(REPO, "It crashes")
    assert [each.action for each in github.outbox.drain()] == ["suspend"]


def test_reading_and_repeating_tell_nothing(github: GitHub, api: Api) -> None:
    github.add_issue(REPO, "It crashes", labels=["bug"])
    github.outbox.drain()
    api("GET", f"/repos/{REPO}/issues/1")
    api("POST", f"/repos/{REPO}/issues/1/labels", ["bug"])
    api("POST", f"/repos/{REPO}/issues/1/reactions", {"content": "eyes"})
    api("PATCH", f"/repos/{REPO}/issues/1", {"title": "It crashes"})
    assert len(github.outbox) == 0


def test_a_redelivery_keeps_its_guid(github: GitHub) -> None:
    github.add_issue(REPO, "It crashes")
    (first,) = github.outbox.drain()
    again = github.webhooks.redeliver(first.guid)
    assert github.outbox.drain() == [again]
    assert (again.guid, again.body, again.headers) == (first.guid, first.body, first.headers)
    assert again.redelivery
    with pytest.raises(LookupError):
        github.webhooks.redeliver("nothing")


def test_without_a_hook_nothing_is_queued() -> None:
    github = make_world()
    github.add_issue(REPO, "It crashes")
    assert len(github.outbox) == 0


def test_they_can_be_held(github: GitHub) -> None:
    github.outbox.held = True
    github.add_issue(REPO, "It crashes")
    assert github.outbox.take() is None
    github.outbox.held = False
    assert github.outbox.take() is not None
    assert github.outbox.take() is None
