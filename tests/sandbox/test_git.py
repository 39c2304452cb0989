"""Git over HTTP: the real git reads from the sandbox what the API shows of it."""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.github import GitHub
from sandbox.github.git_objects import EXECUTABLE, FOLDER, LINK, SUBMODULE, Entry
from sandbox.github.server import GitHubServer
from tests.sandbox.github_world import REPO, as_app, make_world


@pytest.fixture
def github() -> GitHub:
    return make_world(private=True)


@pytest.fixture
def server(github: GitHub) -> Iterator[GitHubServer]:
    with GitHubServer(github) as server:
        yield server


def git(*arguments: str, home: Path, token: str = "") -> subprocess.CompletedProcess[str]:
    """git, as a person has it, with a token where there is one."""
    pair = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    header = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "http.extraHeader",
        "GIT_CONFIG_VALUE_0": f"Authorization: Basic {pair}",
    }
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        **(header if token else {}),
    }
    return subprocess.run(
        ["git", *arguments], env=environment, cwd=home, capture_output=True, text=True, check=False
    )


def test_git_and_the_api_agree(github: GitHub, server: GitHubServer, tmp_path: Path) -> None:
    """Commits have the ids, parents, authors and texts that the API gives."""
    first = github.put_file(REPO, "src/a.py", "print('é')\n", author="alice", message="Say it")
    second = github.put_file(REPO, "src/a.py", None)
    api = as_app(github)
    address = f"{server.url}/{REPO}.git"
    cloned = git("clone", "--bare", address, "clone", home=tmp_path, token=api.token)
    assert cloned.returncode == 0, cloned.stderr
    log = git("-C", "clone", "log", "--format=%H %T %an %s", home=tmp_path).stdout.splitlines()
    told: Any = api("GET", f"/repos/{REPO}/commits").json()
    assert [line.split(" ")[:2] for line in log] == [
        [each["sha"], each["commit"]["tree"]["sha"]] for each in told
    ]
    assert [line.split(" ", 2)[2] for line in log] == [
        "acme Delete src/a.py",
        "alice Say it",
        "acme Initial commit",
    ]
    assert [line.split(" ")[0] for line in log][:2] == [second, first]
    head: Any = api("GET", f"/repos/{REPO}/branches/main").json()
    assert head["commit"]["sha"] == second
    assert git("-C", "clone", "show", f"{first}:src/a.py", home=tmp_path).stdout == "print('é')\n"
    assert git("-C", "clone", "fsck", "--strict", home=tmp_path).returncode == 0


def test_what_was_asked_is_in_the_log(github: GitHub, server: GitHubServer, tmp_path: Path) -> None:
    """A fetch changes nothing, so it counts as no write; faults strike it as any request."""
    token, address = as_app(github).token, f"{server.url}/{REPO}.git"
    assert git("clone", "--bare", address, "clone", home=tmp_path, token=token).returncode == 0
    asked = [(each.method, each.status, each.who) for each in github.requests(path=f"{REPO}.git")]
    assert asked[0] == ("GET", 200, "retriage[bot]")
    assert set(asked[1:]) == {("POST", 200, "retriage[bot]")}
    assert github.requests(path=f"{REPO}.git", applied=True) == []
    github.fail(f"GET {REPO}.git/info/refs", "502")
    again = git("ls-remote", address, home=tmp_path, token=token)
    assert "502" in again.stderr


@pytest.mark.parametrize(
    ("repository", "private", "with_token", "says"),
    [
        (REPO, True, True, None),
        (REPO, True, False, "could not read Username"),
        (REPO, False, False, None),
        ("acme/nothing", True, False, "could not read Username"),
        ("acme/nothing", True, True, "not found"),
        ("other/secret", True, True, "not found"),
    ],
)
def test_who_may_read(
    tmp_path: Path, repository: str, private: bool, with_token: bool, says: str | None
) -> None:
    """The token of an installation reads its own; nobody reads what is private, or learns that it
    is there."""
    github = make_world(private=private)
    github.add_repository("other/secret", private=True)
    token = as_app(github).token if with_token else ""
    with GitHubServer(github) as server:
        seen = git("ls-remote", f"{server.url}/{repository}.git", home=tmp_path, token=token)
    assert seen.returncode == (0 if says is None else 128)
    assert (says or "") in seen.stderr


def test_refusals(github: GitHub, server: GitHubServer, tmp_path: Path) -> None:
    """A token that is none, a permission that is missing, a push, an object that is not there."""
    address = f"{server.url}/{REPO}.git"
    refused = git("ls-remote", address, home=tmp_path, token="ghs_none")
    assert "could not read Username" in refused.stderr
    app = as_app(github)
    github.tokens[app.token].permissions.pop("contents")
    assert "403" in git("ls-remote", address, home=tmp_path, token=app.token).stderr
    github.tokens[app.token].permissions["contents"] = "read"
    assert git("clone", address, "clone", home=tmp_path, token=app.token).returncode == 0
    pushed = git("-C", "clone", "push", address, "main:other", home=tmp_path, token=app.token)
    assert "403" in pushed.stderr
    missing = git("-C", "clone", "fetch", address, "0" * 39 + "1", home=tmp_path, token=app.token)
    assert "not our ref" in missing.stderr


def test_a_former_name_redirects(github: GitHub, server: GitHubServer, tmp_path: Path) -> None:
    """To the name that the repository has now; git follows."""
    token = as_app(github).token
    github.as_user("acme").rename_repository(REPO, "core")
    seen = git("ls-remote", f"{server.url}/{REPO}.git", home=tmp_path, token=token)
    assert github.repository("acme/core").commits[-1].sha in seen.stdout
    assert [each.status for each in github.requests(path=f"{REPO}.git/info")] == [301]


def test_hostile_trees_are_served_as_they_are(
    github: GitHub, server: GitHubServer, tmp_path: Path
) -> None:
    """Whatever a pack can hold; new commits are added to what git was given before."""
    token, address = as_app(github).token, f"{server.url}/{REPO}.git"
    assert git("ls-remote", address, home=tmp_path, token=token).returncode == 0
    inner = Entry(b"", FOLDER)
    github.put_entries(
        REPO,
        {
            b"../up": Entry(b"1"),
            b".git/config": Entry(b"2"),
            b"link": Entry(b"/etc/passwd", LINK),
            b"sub": Entry(b"elsewhere", SUBMODULE),
            b"run": Entry(b"#!/bin/sh\n", EXECUTABLE),
            b"a": Entry(b"3"),
            b"a/b": Entry(b"4"),
            b"bytes\xff": Entry(b"\x00\xff"),
            b"empty": inner,
        },
    )
    sha = github.put_entries(REPO, {b"run": None})
    cloned = git("clone", "--bare", address, "clone", home=tmp_path, token=token)
    assert cloned.returncode == 0, cloned.stderr
    assert git("-C", "clone", "rev-parse", "HEAD", home=tmp_path).stdout.strip() == sha
    listed = git("-C", "clone", "ls-tree", "-r", "-t", "HEAD", home=tmp_path).stdout
    rows = {line.partition("\t")[2]: line.split(" ")[0] for line in listed.splitlines()}
    assert rows == {
        "..": "040000",
        "../up": "100644",
        ".git": "040000",
        ".git/config": "100644",
        "README.md": "100644",
        "a": "040000",
        "a/b": "100644",
        '"bytes\\377"': "100644",
        "empty": "040000",
        "link": "120000",
        "sub": "160000",
    }
