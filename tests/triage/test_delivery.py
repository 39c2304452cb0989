"""What each webhook asks for, and that no JSON makes the reading fail."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triage.asks import (
    Ask,
    Command,
    DeletedComment,
    Installed,
    Opened,
    Removed,
    RemovedLabel,
    Repository,
    RepositoryChanged,
    SeenEffect,
    Verb,
    parse_ask,
)
from triage.delivery import ARGUMENT_LIMIT, MOST_ARGUMENTS, Ignored, interpret, meaning
from triage.marker import MarkerKeys, stamp

KEYS = MarkerKeys.parse("k1:" + "ab" * 16)
OTHER_KEYS = MarkerKeys.parse("k1:" + "cd" * 16)
BOT = {"id": 9000, "login": "retriage[bot]", "type": "Bot"}
ADA = {"id": 7, "login": "ada", "type": "User"}
EFFECT = "e" * 64
RUN = "daily-issue-triage:R42:2026-09-16:p3f2a91c0"
OWN_TEXT = stamp("**Triage: `bug`.**", effect_key=EFFECT, run=RUN, keys=KEYS)

Payload = dict[str, Any]


def payload(action: str, sender: Mapping[str, Any] = ADA, **parts: Any) -> Payload:
    """A delivery as GitHub shapes it, with nothing that is not read."""
    return {
        "action": action,
        "sender": dict(sender),
        "repository": {"id": 42, "full_name": "acme/api"},
        "installation": {"id": 5},
        "issue": {
            "id": 4201,
            "number": 1,
            "user": ADA,
            "html_url": "https://github.example/acme/api/issues/1",
            "updated_at": "2026-09-16T01:00:00Z",
            "body": "It crashes",
        },
        **parts,
    }


def comment(body: str, author: Mapping[str, Any] = ADA) -> Payload:
    """A comment in a payload."""
    return {
        "id": 77,
        "user": dict(author),
        "body": body,
        "html_url": "https://github.example/acme/api/issues/1#issuecomment-77",
        "updated_at": "2026-09-16T01:02:03Z",
    }


def ask(event: str, data: Payload, keys: MarkerKeys = KEYS) -> tuple[Ask, ...] | Ignored:
    """Interpret as the receiver does, where the bot is user 9000."""
    return interpret(event, data, bot_ids=frozenset({9000}), keys=keys)


def reason(event: str, data: Payload, keys: MarkerKeys = KEYS) -> str:
    """Why a delivery is ignored."""
    outcome = ask(event, data, keys)
    assert isinstance(outcome, Ignored)
    return outcome.reason


# --- Commands -----------------------------------------------------------------------------------


def test_a_command_names_the_issue_the_comment_and_who_asked() -> None:
    """/retriage at the start of a comment on an issue."""
    assert ask("issue_comment", payload("created", comment=comment("/retriage"))) == (
        Command(
            repository_id=42,
            repository="acme/api",
            installation="5",
            issue=1,
            issue_id=4201,
            comment_id=77,
            login="ada",
            user_id=7,
            is_author=True,
        ),
    )


@pytest.mark.parametrize(
    ("body", "arguments", "verb"),
    [
        ("/retriage", (), Verb.AGAIN),
        ("/retriage  ", (), Verb.AGAIN),
        ("/retriage\r\n\r\nthe title changed", (), Verb.AGAIN),
        ("/retriage --force", ("--force",), Verb.FORCE),
        ("/retriage\t--force\nplease", ("--force",), Verb.FORCE),
        ("/retriage undo", ("undo",), Verb.UNKNOWN),
        ("/retriage resolve 12 there", ("resolve", "12", "there"), Verb.UNKNOWN),
        ("/retriage " + "x" * 500, ("x" * ARGUMENT_LIMIT,), Verb.UNKNOWN),
        ("/retriage " + "x " * 500, ("x",) * MOST_ARGUMENTS, Verb.UNKNOWN),
    ],
)
def test_the_first_line_holds_the_arguments(
    body: str, arguments: tuple[str, ...], verb: Verb
) -> None:
    """An unknown word is still a command, so that it can be refused where it was said."""
    outcome = ask("issue_comment", payload("created", comment=comment(body)))
    assert isinstance(outcome, tuple)
    (command,) = outcome
    assert isinstance(command, Command)
    assert command.arguments == arguments
    assert command.verb is verb


@pytest.mark.parametrize(
    "body",
    [
        "",
        "/retriager",
        "/retriage-now",
        "/retriage.",
        "/Retriage",
        " /retriage",
        "\n/retriage",
        "please /retriage",
        "> /retriage",
        "```\n/retriage\n```",
        "`/retriage`",
        "    /retriage",
        "\u200b/retriage",
        "<!-- -->/retriage",
    ],
)
def test_anywhere_else_it_is_text(body: str) -> None:
    """Quotes, code, other words and other places are no commands."""
    assert reason("issue_comment", payload("created", comment=comment(body))) == (
        "a comment without a command"
    )


def test_a_command_by_somebody_else_is_not_the_authors() -> None:
    """Who opened the issue is told by user id."""
    other = {"id": 8, "login": "ada", "type": "User"}
    outcome = ask("issue_comment", payload("created", other, comment=comment("/retriage", other)))
    assert isinstance(outcome, tuple)
    (command,) = outcome
    assert isinstance(command, Command)
    assert not command.is_author


def test_no_commands_on_pull_requests() -> None:
    """GitHub sends comments on pull requests as issue comments."""
    data = payload("created", comment=comment("/retriage"))
    data["issue"]["pull_request"] = {"url": "https://github.example/acme/api/pulls/1"}
    assert reason("issue_comment", data) == "a command on a pull request"


@pytest.mark.parametrize(
    "sender", [{"id": 8, "login": "ada", "type": "Bot"}, {"id": 8, "login": "renovate[bot]"}]
)
def test_bots_give_no_commands(sender: Payload) -> None:
    """Told by GitHub's type, never by the login; no type, no command."""
    data = payload("created", sender, comment=comment("/retriage", sender))
    assert reason("issue_comment", data) == "a command by a bot"


def test_the_bot_itself_gives_no_commands() -> None:
    """Even where GitHub calls the account a user, as with a person's token."""
    own = {"id": 9000, "login": "triage-account", "type": "User"}
    data = payload("created", own, comment=comment("/retriage", own))
    assert reason("issue_comment", data) == "the bot's own, without a valid marker"


@pytest.mark.parametrize("action", ["edited", "pinned", ""])
def test_an_edited_comment_is_no_command(action: str) -> None:
    """Otherwise one comment would ask again and again."""
    data = payload(action, comment=comment("/retriage"))
    assert reason("issue_comment", data).endswith("only new and deleted comments count")


# --- What the bot did, and what people did to it ------------------------------------------------


def test_the_bots_own_comment_is_a_hit() -> None:
    """A valid marker and the bot's user id together: the effect is on GitHub."""
    data = payload("created", BOT, comment=comment(OWN_TEXT, BOT))
    outcome = ask("issue_comment", data)
    assert isinstance(outcome, tuple)
    (seen,) = outcome
    assert isinstance(seen, SeenEffect)
    assert (seen.effect_key, seen.run, seen.github_id) == (EFFECT, RUN, 77)
    assert seen.url == "https://github.example/acme/api/issues/1#issuecomment-77"
    assert len(seen.digest) == 64


def test_the_bots_own_issue_is_a_hit() -> None:
    """The summary."""
    data = payload("opened", BOT)
    data["issue"].update(user=BOT, body=OWN_TEXT)
    outcome = ask("issues", data)
    assert isinstance(outcome, tuple)
    (seen,) = outcome
    assert isinstance(seen, SeenEffect)
    assert (seen.github_id, seen.issue, seen.issue_id) == (4201, 1, 4201)


def test_a_pasted_marker_is_no_hit() -> None:
    """A person's comment with a valid marker is text."""
    data = payload("created", comment=comment(OWN_TEXT))
    assert reason("issue_comment", data) == "a comment without a command"


def test_a_forged_signature_is_no_hit() -> None:
    """What it is, the read-back decides."""
    data = payload("created", BOT, comment=comment(OWN_TEXT, BOT))
    assert reason("issue_comment", data, OTHER_KEYS) == "the bot's own, without a valid marker"


def test_a_deleted_comment_of_the_bot_is_told() -> None:
    """It is not to be posted again; the marker names the effect."""
    data = payload("deleted", comment=comment(OWN_TEXT, BOT))
    assert ask("issue_comment", data) == (
        DeletedComment(
            repository_id=42,
            repository="acme/api",
            installation="5",
            issue=1,
            issue_id=4201,
            comment_id=77,
            effect_key=EFFECT,
        ),
    )


def test_a_deleted_comment_without_a_marker_is_told_by_its_id() -> None:
    """Somebody may have edited the marker away first."""
    outcome = ask("issue_comment", payload("deleted", comment=comment("gone", BOT)))
    assert isinstance(outcome, tuple)
    assert isinstance(outcome[0], DeletedComment)
    assert outcome[0].effect_key == ""


@pytest.mark.parametrize(
    ("sender", "author", "why"),
    [
        (BOT, BOT, "the bot deleted its own comment"),
        (ADA, ADA, "a comment that was not the bot's was deleted"),
    ],
)
def test_other_deletions_are_nothing(sender: Payload, author: Payload, why: str) -> None:
    """Its own duplicates, and other people's comments."""
    assert reason("issue_comment", payload("deleted", sender, comment=comment("x", author))) == why


def test_a_label_that_a_person_removed() -> None:
    """It stays removed; the worker knows whether the bot had added it."""
    data = payload("unlabeled", label={"name": "bug"})
    outcome = ask("issues", data)
    assert isinstance(outcome, tuple)
    assert outcome == (
        RemovedLabel(
            repository_id=42,
            repository="acme/api",
            installation="5",
            issue=1,
            issue_id=4201,
            label="bug",
        ),
    )
    assert reason("issues", payload("unlabeled", BOT, label={"name": "bug"})) == (
        "the bot removed its own label"
    )
    assert reason("issues", payload("unlabeled")) == "the payload lacks label.name"


def test_an_opened_issue() -> None:
    """By a person; the policy says whether it starts anything."""
    outcome = ask("issues", payload("opened"))
    assert isinstance(outcome, tuple)
    (opened,) = outcome
    assert isinstance(opened, Opened)
    assert (opened.issue, opened.issue_id, opened.login, opened.user_id) == (1, 4201, "ada", 7)
    bot = {"id": 8, "login": "x", "type": "Bot"}
    assert reason("issues", payload("opened", bot)) == (
        "an issue opened by a bot is left to the schedule"
    )


# --- Installations and repositories -------------------------------------------------------------

NAMED = [{"id": 42, "full_name": "acme/api", "private": False}]
REPOSITORIES = (Repository(id=42, full_name="acme/api"),)


@pytest.mark.parametrize("action", ["created", "unsuspend", "new_permissions_accepted"])
def test_installed(action: str) -> None:
    """With the repositories that the delivery names, if any."""
    data = {"action": action, "installation": {"id": 5}, "repositories": NAMED}
    assert ask("installation", data) == (Installed(installation="5", repositories=REPOSITORIES),)
    del data["repositories"]
    assert ask("installation", data) == (Installed(installation="5"),)


@pytest.mark.parametrize("action", ["deleted", "suspend"])
def test_uninstalled(action: str) -> None:
    """The whole installation."""
    data = {"action": action, "installation": {"id": 5}}
    assert ask("installation", data) == (Removed(installation="5", whole=True),)


def test_a_changed_selection() -> None:
    """One delivery may add and remove."""
    data = {
        "action": "added",
        "installation": {"id": 5},
        "repositories_added": NAMED,
        "repositories_removed": [{"id": 43, "full_name": "acme/web"}, "odd", {"id": "44"}],
    }
    assert ask("installation_repositories", data) == (
        Removed(
            installation="5",
            whole=False,
            repositories=(Repository(id=43, full_name="acme/web"),),
        ),
        Installed(installation="5", repositories=REPOSITORIES),
    )
    assert reason("installation_repositories", {"action": "added", "installation": {"id": 5}}) == (
        "no repository is named"
    )


@pytest.mark.parametrize("change", ["renamed", "transferred", "archived", "unarchived", "deleted"])
def test_a_changed_repository(change: str) -> None:
    """Its id stays, the rest is read again."""
    assert ask("repository", payload(change)) == (
        RepositoryChanged(repository_id=42, repository="acme/api", installation="5", change=change),
    )


@pytest.mark.parametrize(
    ("event", "action", "why"),
    [
        ("ping", "", "ping"),
        ("label", "edited", "edited: labels are read again before each write"),
        ("label", "deleted", "deleted: labels are read again before each write"),
        ("issues", "labeled", "labeled: issues are read again before each write"),
        ("repository", "edited", "edited: nothing here depends on it"),
        ("push", "", "an event that is not listened to"),
        ("\u202eevil", "x", "an event that is not listened to"),
    ],
)
def test_everything_else_is_ignored_for_a_reason(event: str, action: str, why: str) -> None:
    """Said in the answer and in the log."""
    assert reason(event, payload(action)) == why


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("comment.id", True),
        ("comment.id", "77"),
        ("comment.id", -1),
        ("comment.id", 2**64),
        ("sender.login", ""),
        ("repository.full_name", "not a name"),
        ("issue.number", None),
    ],
)
def test_what_is_missing_is_named(path: str, value: object) -> None:
    """A field of another shape is as good as none."""
    data = payload("created", comment=comment("/retriage"))
    outer, inner = path.split(".")
    data[outer][inner] = value
    assert reason("issue_comment", data) == f"the payload lacks {path}"


# --- Meaning, transport, robustness -------------------------------------------------------------


def test_the_same_thing_has_the_same_meaning() -> None:
    """Two hooks send one comment under two delivery ids; an edit or another comment differs."""
    data = payload("created", comment=comment("/retriage"))
    again = json.loads(json.dumps({**data, "hook": "another"}))
    other = payload("created", comment={**comment("/retriage"), "id": 78})
    assert meaning("issue_comment", data) == meaning("issue_comment", again) is not None
    assert meaning("issue_comment", data) != meaning("issue_comment", other)
    assert meaning("issue_comment", data) != meaning("issue_comment", {**data, "action": "deleted"})


def test_some_deliveries_have_no_meaning_beyond_their_id() -> None:
    """An App may be suspended twice within a second; asking twice is harmless."""
    assert meaning("installation", {"action": "suspend", "installation": {"id": 5}}) is None
    assert meaning("issue_comment", payload("created", comment={"id": 77})) is None
    assert meaning("ping", {}) is None


def test_asks_travel_as_json() -> None:
    """Through the queue and back."""
    removed = Removed(installation="5", whole=False, repositories=REPOSITORIES)
    outcomes = [
        ask("issue_comment", payload("created", comment=comment("/retriage --force"))),
        ask("issue_comment", payload("created", BOT, comment=comment(OWN_TEXT, BOT))),
        ask("issue_comment", payload("deleted", comment=comment(OWN_TEXT, BOT))),
        ask("issues", payload("unlabeled", label={"name": "bug"})),
        ask("issues", payload("opened")),
        ask("repository", payload("renamed")),
        (Installed(installation="5", repositories=REPOSITORIES), removed),
    ]
    for outcome in outcomes:
        assert isinstance(outcome, tuple)
        for item in outcome:
            assert parse_ask(json.loads(json.dumps(item.model_dump(mode="json")))) == item


def test_half_a_surrogate_does_not_travel() -> None:
    """JSON can name what no encoding can write."""
    outcome = ask("issues", payload("unlabeled", label={"name": json.loads('"b\\ud800g"')}))
    assert isinstance(outcome, tuple)
    assert outcome[0].model_dump_json()
    assert isinstance(outcome[0], RemovedLabel)
    assert outcome[0].label == "b?g"


EVENTS = st.sampled_from(
    [
        "issues",
        "issue_comment",
        "installation",
        "installation_repositories",
        "repository",
        "label",
        "ping",
        "push",
    ]
)
ACTIONS = st.sampled_from(
    ["created", "deleted", "opened", "unlabeled", "added", "removed", "renamed", "suspend", "x"]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(EVENTS | st.text(max_size=20), JSON)
def test_no_json_raises(event: str, data: Any) -> None:
    """Not even what is no object."""
    assert isinstance(ask(event, data), (tuple, Ignored))
    assert isinstance(meaning(event, data), (str, type(None)))


@settings(max_examples=300)
@given(EVENTS, ACTIONS, st.data())
def test_no_damaged_delivery_raises(event: str, action: str, draw: st.DataObject) -> None:
    """A well-formed delivery with anything in any one place."""
    data = payload(
        action,
        draw.draw(st.sampled_from([ADA, BOT])),
        comment=comment(draw.draw(st.sampled_from(["/retriage", OWN_TEXT, "x"])), BOT),
        label={"name": "bug"},
        repositories=NAMED,
        repositories_added=NAMED,
    )
    outer = draw.draw(st.sampled_from(sorted(data)))
    if isinstance(data[outer], dict) and draw.draw(st.booleans()):
        data[outer][draw.draw(st.sampled_from(sorted(data[outer])))] = draw.draw(JSON)
    else:
        data[outer] = draw.draw(JSON)
    outcome = ask(event, data)
    assert isinstance(outcome, (tuple, Ignored))
    for item in outcome if isinstance(outcome, tuple) else ():
        assert parse_ask(json.loads(item.model_dump_json())) == item


# --- GitHub's own examples ----------------------------------------------------------------------

EXAMPLES = Path(
    os.environ.get("RETRIAGE_WEBHOOK_EXAMPLES")
    or Path(__file__).parents[3] / "shared" / "data" / "webhooks"
)


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason="no example deliveries beside the repository")
def test_githubs_examples_are_taken_or_ignored_for_a_reason() -> None:
    """Each of them, by its file name ``event.action.n.json``."""
    taken: dict[str, int] = {}
    for file in sorted(EXAMPLES.glob("*.json")):
        event = file.name.split(".", 1)[0]
        data = json.loads(file.read_text("utf-8"))
        outcome = ask(event, data)
        if isinstance(outcome, Ignored):
            assert outcome.reason
            assert not outcome.reason.startswith("the payload lacks"), file.name
        else:
            name = f"{event}.{data['action']}"
            taken[name] = taken.get(name, 0) + 1
    assert taken == {
        "installation.created": 2,
        "installation.deleted": 2,
        "installation.new_permissions_accepted": 1,
        "installation.suspend": 1,
        "installation.unsuspend": 1,
        "installation_repositories.added": 2,
        "installation_repositories.removed": 1,
        "issues.opened": 4,
        "issues.unlabeled": 2,
        "repository.renamed": 1,
        "repository.transferred": 3,
    }
