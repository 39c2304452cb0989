"""A folder stands for the repository that it was cloned from, and nothing of it is executed."""

import subprocess
from pathlib import Path

import pytest

from cli.clones import named
from cli.failures import CommandError
from tests.cli.terminal import REPOSITORY, World

GITHUB = "https://api.github.com"
ENTERPRISE = "https://ghe.example.com/api/v3"
RESIDENT = "https://api.octo.ghe.com"
SANDBOX = "http://127.0.0.1:8300"


def git(folder: Path, *words: str) -> None:
    """Git itself, away from the settings of this machine."""
    settings = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *words], cwd=folder, env=settings, check=True, capture_output=True)


def clone(folder: Path, origin: str | None) -> Path:
    """A folder as ``git clone`` leaves it, without files."""
    folder.mkdir()
    git(folder, "init", "--quiet")
    if origin is not None:
        git(folder, "remote", "add", "origin", origin)
    return folder


@pytest.mark.parametrize(
    ("text", "api_url"),
    [
        ("acme/api", GITHUB),
        ("acme/api.git", GITHUB),
        ("acme/api/", SANDBOX),
        ("https://github.com/acme/api", GITHUB),
        ("https://github.com:443/acme/api.git/", GITHUB),
        ("https://alice:secret@GitHub.com/acme/api.git", GITHUB),
        ("git@github.com:acme/api.git", GITHUB),
        ("github.com:acme/api", GITHUB),
        ("ssh://git@ssh.github.com:443/acme/api.git", GITHUB),
        ("https://ghe.example.com/acme/api", ENTERPRISE),
        ("ssh://git@ghe.example.com:2222/acme/api.git", ENTERPRISE),
        ("git@octo.ghe.com:acme/api.git", RESIDENT),
        ("http://127.0.0.1:8300/acme/api.git", SANDBOX),
        ("git@127.0.0.1:acme/api.git", SANDBOX),
    ],
)
def test_the_ways_to_name_a_repository(tmp_path: Path, text: str, api_url: str) -> None:
    """On the command line; an address also as the origin of a clone."""
    assert named(text, api_url) == "acme/api"
    if ":" in text:
        assert named(str(clone(tmp_path / "api", text)), api_url) == "acme/api"


@pytest.mark.parametrize(
    ("text", "api_url", "said"),
    [
        ("acme", GITHUB, "'acme' is no repository: write OWNER/REPO"),
        ("", GITHUB, "'' is no repository"),
        ("acme/api/issues", GITHUB, "is no repository"),
        ("https://github.com/acme/api/issues", GITHUB, "is no repository"),
        ("https://gitlab.com/acme/api", GITHUB, "the address is on gitlab.com, and GITHUB_API_URL"),
        ("https://github.com:8443/acme/api", GITHUB, "the address is on github.com:8443"),
        ("https://github.com/acme/api", ENTERPRISE, f"and GITHUB_API_URL is {ENTERPRISE}: set"),
        ("https://127.0.0.1:99999/acme/api", SANDBOX, "is no repository"),
        ("a\x1bb", GITHUB, "'ab' is no repository"),
    ],
)
def test_what_names_none(text: str, api_url: str, said: str) -> None:
    """One line with the way out."""
    with pytest.raises(CommandError) as refused:
        named(text, api_url)
    (line,) = refused.value.lines
    assert said in line


def test_folders_that_are_no_clone_of_it(tmp_path: Path) -> None:
    """Each says what is wrong with it; a password in an origin is not shown."""
    bare = clone(tmp_path / "bare", None)
    broken = clone(tmp_path / "broken", "https://github.com/acme/api")
    (broken / ".git/config").write_text("[remote\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    lost = tmp_path / "lost"
    lost.mkdir()
    (lost / ".git").write_text("gitdir: /nowhere\n")
    other = clone(tmp_path / "other", "https://alice:secret@gitlab.com/acme/api.git")
    near = clone(tmp_path / "near", "/srv/git/api.git")
    deep = clone(tmp_path / "deep", "https://github.com/acme")
    huge = clone(tmp_path / "huge", "https://github.com/acme/api")
    (huge / ".git/config").write_text("#" * 200_000)
    for folder, said in (
        (tmp_path / "nothing", "is no folder"),
        (tmp_path / "file", "is no folder"),
        (tmp_path / "empty", "is no git clone, or not the top of one"),
        (lost, "is no git clone"),
        (huge, "is no git clone"),
        (bare, "has no origin: write OWNER/REPO instead"),
        (broken, "git cannot read its settings"),
        (other, "its origin is on gitlab.com, and GITHUB_API_URL is https://api.github.com"),
        (near, "its origin is no address on a server"),
        (deep, "its origin names no repository"),
    ):
        with pytest.raises(CommandError) as refused:
            named(str(folder), GITHUB)
        (line,) = refused.value.lines
        assert line.startswith(str(folder))
        assert said in line
        assert "secret" not in line


def test_a_linked_work_tree(tmp_path: Path) -> None:
    """Its settings are those of its clone."""
    whole = clone(tmp_path / "whole", "git@github.com:acme/api.git")
    author = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    git(whole, *author, "commit", "--quiet", "--allow-empty", "--message", "one")
    git(whole, "worktree", "add", "--quiet", "../linked")
    assert named(str(tmp_path / "linked"), GITHUB) == "acme/api"


def test_a_hostile_clone_runs_nothing(tmp_path: Path) -> None:
    """Neither a program that its settings name, nor a file that they include, has a say."""
    folder, ran = clone(tmp_path / "api", "https://github.com/acme/api"), tmp_path / "ran"
    (tmp_path / "included").write_text('[remote "origin"]\n\turl = https://github.com/evil/evil\n')
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    with (folder / ".git/config").open("a") as config:
        config.write(f"[include]\n\tpath = {tmp_path}/included\n")
        config.write(f"[core]\n\tfsmonitor = {program}\n\tpager = {program}\n")
        config.write(f"\tsshCommand = {program}\n\thooksPath = {tmp_path}\n")
        config.write(f"[alias]\n\tconfig = !{program}\n[credential]\n\thelper = {program}\n")
    assert named(str(folder), GITHUB) == "acme/api"
    assert not ran.exists()


def test_a_clone_and_its_repository_are_one_run(here: World) -> None:
    """From within the folder too; what lies in it makes no difference."""
    url = here.terminal.settings["GITHUB_API_URL"]
    folder = clone(here.terminal.folder / "api", f"{url}/{REPOSITORY}.git")
    (folder / "evil.py").write_text("eval(input())\n")
    first = here.terminal.type("run", "./api", "--mode", "observe", "--json")
    assert first.code == 0, first.err
    assert first.json["run"]["repository"] == REPOSITORY
    again = here.terminal.type("run", REPOSITORY, "--mode", "observe", "--json")
    assert again.json["outcome"] == "reused"
    assert again.json["dedupe_key"] == first.json["dedupe_key"]
    wrong = here.terminal.type("run", "./data", "--mode", "observe")
    assert (wrong.code, wrong.out) == (2, "")
    assert wrong.err == (
        "data is no git clone, or not the top of one: write OWNER/REPO, or clone it first\n"
    )
