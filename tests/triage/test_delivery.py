"""What each webhook asks for."""

import pytest

from tests.triage.deliveries import (
    ADA,
    BOT,
    EFFECT,
    NAMED,
    OTHER_KEYS,
    OWN_TEXT,
    REPOSITORIES,
    RUN,
    Payload,
    ask,
    comment,
    payload,
    reason,
)
from triage.asks import (
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
)
from triage.delivery import ARGUMENT_LIMIT, MOST_ARGUMENTS

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
        ("/retriage resolve 12 there", ("resolve", "12", "there"), Verb.RESOLVE),
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
