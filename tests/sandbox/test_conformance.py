"""Every answer parses with githubkit's typed models, which GitHub's own description generates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from githubkit import AppAuthStrategy, AppInstallationAuthStrategy, Response, TokenAuthStrategy
from githubkit import GitHub as Client
from githubkit.exception import RequestFailed
from githubkit.webhooks import parse

from sandbox.github import GitHub
from sandbox.github.endpoints import ROUTES
from sandbox.github.routing import Router
from sandbox.github.server import GitHubServer
from tests.sandbox.github_world import PRIVATE_KEY, REPO, make_world

OWNER, NAME = REPO.split("/")
AsApp = Client[AppAuthStrategy]
AsInstallation = Client[AppInstallationAuthStrategy]
AsUser = Client[TokenAuthStrategy]


def parsed(answer: Response[Any, Any]) -> Any:
    """The typed models (whose lists no type checker can follow)."""
    return answer.parsed_data


@pytest.fixture(scope="module")
def github() -> Iterator[GitHub]:
    world = GitHub()
    world.add_organization("acme", members=["mia"])
    world.add_repository(REPO, id=1296269)
    world.add_repository("acme/web")
    world.put_file(REPO, ".github/retriage.yml", "jobs: {}\n")
    world.add_collaborator(REPO, "alice", "maintain")
    world.add_app("retriage", 42, private_key=PRIVATE_KEY)
    world.install("retriage", "acme", id=5001)
    for index in range(4):
        world.add_issue(REPO, f"Issue {index}", "Text", author="bob", labels=["bug"])
    world.add_issue(REPO, "A change", None, author="mia", pull_request=True)
    world.as_user("alice").comment(REPO, 1, "Seen.")
    with GitHubServer(world):
        yield world


@pytest.fixture
def app(github: GitHub) -> AsApp:
    return Client(AppAuthStrategy(42, PRIVATE_KEY), base_url=github.base_url)


@pytest.fixture
def client(app: AsApp) -> AsInstallation:
    return app.with_auth(app.auth.as_installation(5001))


@pytest.fixture
def person(github: GitHub) -> AsUser:
    return Client(TokenAuthStrategy(github.add_token("alice")), base_url=github.base_url)


def test_app_and_installations(app: AsApp, client: AsInstallation) -> None:
    found = app.rest.apps.get_authenticated().parsed_data
    assert found is not None
    assert found.slug == "retriage"
    assert [each.id for each in app.rest.apps.list_installations().parsed_data] == [5001]
    assert app.rest.apps.get_installation(5001).parsed_data.app_slug == "retriage"
    assert app.rest.apps.get_repo_installation(OWNER, NAME).parsed_data.id == 5001
    assert app.rest.apps.get_org_installation(OWNER).parsed_data.id == 5001
    assert app.rest.apps.get_user_installation(OWNER).parsed_data.id == 5001
    made = app.rest.apps.create_installation_access_token(
        5001, data={"repositories": [NAME], "permissions": {"issues": "write"}}
    ).parsed_data
    assert made.token.startswith("ghs_")
    reached = client.rest.apps.list_repos_accessible_to_installation().parsed_data
    assert [each.full_name for each in reached.repositories] == [REPO, "acme/web"]
    narrowed = Client(made.token, base_url=str(client.config.base_url))
    assert narrowed.rest.apps.list_repos_accessible_to_installation().parsed_data.total_count == 1
    narrowed.rest.apps.revoke_installation_access_token()
    with pytest.raises(RequestFailed):
        narrowed.rest.apps.list_repos_accessible_to_installation()


def test_accounts_and_limits(client: AsInstallation, person: AsUser) -> None:
    assert client.rest.users.get_by_username("retriage[bot]").parsed_data.type == "Bot"
    assert person.rest.users.get_authenticated().parsed_data.login == "alice"
    assert client.rest.rate_limit.get().parsed_data.resources.core.limit == 5000
    assert client.request("GET", "/").status_code == 200


def test_repository(client: AsInstallation) -> None:
    repos = client.rest.repos
    found = repos.get(OWNER, NAME).parsed_data
    assert found.id == 1296269
    by_id = client.request("GET", "/repositories/1296269", response_model=type(found))
    assert by_id.parsed_data == found
    allowed = repos.get_collaborator_permission_level(OWNER, NAME, "alice").parsed_data
    assert (allowed.permission, allowed.role_name) == ("write", "maintain")
    commits = repos.list_commits(OWNER, NAME).parsed_data
    assert len(commits) == 2
    assert repos.get_commit(OWNER, NAME, commits[0].sha).parsed_data.files
    assert repos.get_branch(OWNER, NAME, "main").parsed_data.commit.sha == commits[0].sha
    file = repos.get_content(OWNER, NAME, ".github/retriage.yml").parsed_data
    assert not isinstance(file, list)
    assert file.type == "file"
    folder = repos.get_content(OWNER, NAME, "").parsed_data
    assert isinstance(folder, list)
    assert {each.name for each in folder} == {".github", "README.md"}


def test_labels(client: AsInstallation) -> None:
    issues = client.rest.issues
    made = issues.create_label(OWNER, NAME, name="area: api", color="ff0000").parsed_data
    assert issues.get_label(OWNER, NAME, "area: api").parsed_data == made
    assert issues.update_label(OWNER, NAME, "area: api", new_name="web").parsed_data.id == made.id
    assert "web" in [each.name for each in parsed(issues.list_labels_for_repo(OWNER, NAME))]
    assert issues.add_labels(OWNER, NAME, 2, labels=["web", "new one"]).parsed_data
    assert len(issues.list_labels_on_issue(OWNER, NAME, 2).parsed_data) == 3
    assert len(issues.remove_label(OWNER, NAME, 2, "web").parsed_data) == 2
    assert len(issues.set_labels(OWNER, NAME, 2, labels=["question"]).parsed_data) == 1
    issues.remove_all_labels(OWNER, NAME, 2)
    issues.delete_label(OWNER, NAME, "web")


def test_issues(client: AsInstallation) -> None:
    issues = client.rest.issues
    made = issues.create(OWNER, NAME, title="By the bot", body="…", labels=["bug"]).parsed_data
    assert made.user is not None
    assert made.user.type == "Bot"
    assert made.performed_via_github_app
    changed = issues.update(
        OWNER, NAME, made.number, title="Renamed", state="closed", state_reason="not_planned"
    ).parsed_data
    assert (changed.state, changed.state_reason) == ("closed", "not_planned")
    assert issues.update(OWNER, NAME, made.number, state="open", labels=[]).parsed_data.id
    issues.lock(OWNER, NAME, made.number, lock_reason="resolved")
    assert issues.get(OWNER, NAME, made.number).parsed_data.active_lock_reason == "resolved"
    issues.unlock(OWNER, NAME, made.number)
    listed = parsed(issues.list_for_repo(OWNER, NAME, state="all", creator="retriage[bot]"))
    assert [each.number for each in listed] == [made.number]
    pulls = [e for e in parsed(issues.list_for_repo(OWNER, NAME)) if e.pull_request]
    assert len(pulls) == 1


def test_comments_and_reactions(client: AsInstallation) -> None:
    issues, reactions = client.rest.issues, client.rest.reactions
    made = issues.create_comment(OWNER, NAME, 3, body="Hello").parsed_data
    assert issues.get_comment(OWNER, NAME, made.id).parsed_data == made
    assert issues.update_comment(OWNER, NAME, made.id, body="Hello!").parsed_data.body == "Hello!"
    assert len(issues.list_comments(OWNER, NAME, 3).parsed_data) == 1
    assert len(issues.list_comments_for_repo(OWNER, NAME).parsed_data) == 2
    on_comment = reactions.create_for_issue_comment(OWNER, NAME, made.id, content="eyes")
    assert on_comment.status_code == 201
    again = reactions.create_for_issue_comment(OWNER, NAME, made.id, content="eyes")
    assert again.status_code == 200
    assert again.parsed_data == on_comment.parsed_data
    assert reactions.list_for_issue_comment(OWNER, NAME, made.id).parsed_data
    reactions.delete_for_issue_comment(OWNER, NAME, made.id, again.parsed_data.id)
    on_issue = reactions.create_for_issue(OWNER, NAME, 3, content="+1").parsed_data
    assert reactions.list_for_issue(OWNER, NAME, 3).parsed_data == [on_issue]
    reactions.delete_for_issue(OWNER, NAME, 3, on_issue.id)
    issues.delete_comment(OWNER, NAME, made.id)


def test_events(github: GitHub, client: AsInstallation) -> None:
    alice, issues = github.as_user("alice"), client.rest.issues
    alice.label(REPO, 4, "question")
    alice.unlabel(REPO, 4, "bug")
    alice.edit_issue(REPO, 4, title="Another title")
    alice.lock(REPO, 4, "spam")
    alice.unlock(REPO, 4)
    alice.close(REPO, 4)
    alice.reopen(REPO, 4)
    alice.comment(REPO, 4, "There.")
    words = "labeled labeled unlabeled renamed locked unlocked closed reopened".split()
    # GitHub's description of an issue's own list leaves out what it does send: closed, reopened
    # and unlocked. So each is parsed by itself, as an event of the repository.
    listed: Any = issues.list_events(OWNER, NAME, 4).json()
    found = [client.rest.issues.get_event(OWNER, NAME, each["id"]).parsed_data for each in listed]
    assert [each.event for each in found] == words
    named = [each for each in listed if each["event"] in ("labeled", "unlabeled", "renamed")]
    assert all(each["label" if "label" in each["event"] else "rename"] for each in named)
    github.add_issue(REPO, "Labelled only", labels=["bug"])
    typed = parsed(issues.list_events(OWNER, NAME, github.issues(REPO)[-1].number))
    assert [type(each).__name__ for each in typed] == ["LabeledIssueEvent"]
    told = parsed(issues.list_events_for_timeline(OWNER, NAME, 4))
    assert sorted(each.event for each in told if each.event) == sorted([*words, "commented"])
    everywhere = parsed(issues.list_events_for_repo(OWNER, NAME))
    assert [each.event for each in everywhere[:2]] == ["labeled", "reopened"]
    assert issues.get_event(OWNER, NAME, everywhere[0].id).parsed_data == everywhere[0]
    github.add_issue("acme/web", "Belongs elsewhere")
    moved = alice.transfer("acme/web", 1, REPO)
    of_moved: Any = issues.list_events(OWNER, NAME, moved).json()
    assert [each["event"] for each in of_moved] == ["transferred"]


def test_errors_parse_too(client: AsInstallation) -> None:
    """The typed error models as well, with GitHub's three fields."""
    issues = client.rest.issues
    for ask, status in (
        (lambda: issues.create_comment(OWNER, NAME, 1, body=" "), 422),
        (lambda: issues.get(OWNER, NAME, 999), 404),
        (lambda: issues.create(OWNER, NAME, title=""), 422),
    ):
        with pytest.raises(RequestFailed) as caught:
            ask()
        answer = caught.value.response
        assert answer.status_code == status
        told = answer.json()
        assert {"message", "documentation_url", "status"} <= set(told)
        assert told["status"] == str(status)


def test_every_route_was_walked(github: GitHub) -> None:
    """The tests above leave no endpoint out (they run first; alone, this one has nothing)."""
    router = Router(ROUTES)
    walked = {router.resolve(github, each.method, each.path).route for each in github.requests()}
    if len(github.requests()) < len(ROUTES):
        pytest.skip("run with the rest of the module")
    assert [each for each in ROUTES if each not in walked] == []


def test_webhook_payloads_parse() -> None:
    """Each payload parses with the typed model of its event."""
    github = make_world()
    github.set_hook("retriage", "memory:", "secret")
    alice = github.as_user("alice")
    number = github.add_issue(REPO, "It crashes", "On start.", labels=["bug"])
    alice.edit_issue(REPO, number, title="It hangs", body="Always.")
    alice.label(REPO, number, "question", "brand new")
    alice.unlabel(REPO, number, "bug")
    comment = alice.comment(REPO, number, "- [ ] agreed")
    alice.tick_box(REPO, comment=comment)
    alice.delete_comment(REPO, comment)
    alice.lock(REPO, number)
    alice.unlock(REPO, number)
    alice.close(REPO, number)
    alice.reopen(REPO, number)
    alice.transfer(REPO, number, "acme/web")
    alice.delete_issue("acme/web", 1)
    alice.delete_label(REPO, "brand new")
    alice.rename_repository(REPO, "interface")
    alice.archive_repository("acme/interface")
    alice.archive_repository("acme/interface", on=False)
    chosen = github.install("retriage", "zoe", [github.add_repository("zoe/one").full_name])
    github.add_repository("zoe/two")
    github.cover(chosen, add=["zoe/two"], remove=["zoe/one"])
    github.suspend(chosen)
    github.unsuspend(chosen)
    github.uninstall(chosen)
    github.webhooks.ping("retriage")
    sent = github.outbox.drain()
    kinds = {f"{each.event}.{each.action}".rstrip(".") for each in sent}
    assert kinds == set(
        "issues.opened issues.labeled issues.edited issues.unlabeled issues.locked issues.unlocked "
        "issues.closed issues.reopened issues.transferred issues.deleted label.created "
        "label.deleted issue_comment.created issue_comment.edited issue_comment.deleted "
        "repository.renamed repository.archived repository.unarchived installation.created "
        "installation_repositories.added installation_repositories.removed installation.suspend "
        "installation.unsuspend installation.deleted ping".split()
    )
    for each in sent:
        assert each.headers["X-GitHub-Event"] == each.event
        parse(each.event, each.body)


def test_pages_answer_html(github: GitHub) -> None:
    for path in ("/acme/api/issues", "/acme/api/issues/1", "/acme/api/issues?state=all"):
        answer = httpx.get(github.base_url + path)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/html")
