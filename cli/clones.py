"""Which repository is meant: ``OWNER/REPO``, its address, or a folder that is a clone of it.

Invariant: nothing of a folder is executed, and nothing of it is read but where it was cloned from.
What is reviewed is what GitHub has, never what lies in the folder. An address may hold a password:
it is never shown.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

from cli.failures import CommandError
from cli.terminal import clean

_FULL_NAME = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_FOLDER = re.compile(r"\.{1,2}|\.{0,2}/.*", re.DOTALL)
_SSH = re.compile(r"(?:[\w.-]+@)?(?P<host>[\w.-]+):(?!/)(?P<path>.+)", re.ASCII)
_PORTS = {"http": 80, "https": 443}
"""Only a web server's port says which server it is."""

_GIT_SECONDS = 10
_CONFIG_BYTES = 100_000


def named(text: str, api_url: str) -> str:
    """The ``OWNER/REPO`` that is meant; a folder begins with ``.`` or ``/``.

    Raises CommandError.
    """
    if _FOLDER.fullmatch(text):
        return _of_folder(Path(text), api_url)
    if _FULL_NAME.fullmatch(_bare(text)):
        return _bare(text)
    found = _address(text)
    if found is None or _FULL_NAME.fullmatch(found[1]) is None:
        raise CommandError(
            f"{clean(text)!r} is no repository: write OWNER/REPO, like acme/api, or the folder of "
            "a clone, like ./api"
        )
    host, name = found
    if host not in _hosts(api_url):
        raise CommandError(_elsewhere("the address", host, api_url))
    return name


def _of_folder(folder: Path, api_url: str) -> str:
    shown = clean(str(folder))
    origin = _origin(_config(folder), shown)
    found = _address(origin)
    if found is None:
        raise CommandError(
            f"{shown}: its origin is no address on a server: write OWNER/REPO instead"
        )
    host, name = found
    if host not in _hosts(api_url):
        raise CommandError(_elsewhere(f"{shown}: its origin", host, api_url))
    if _FULL_NAME.fullmatch(name) is None:
        raise CommandError(f"{shown}: its origin names no repository: write OWNER/REPO instead")
    return name


def _elsewhere(what: str, host: str, api_url: str) -> str:
    return (
        f"{what} is on {clean(host)}, and GITHUB_API_URL is {api_url}: set that, or write "
        "OWNER/REPO of a repository there"
    )


def _config(folder: Path) -> Path:
    """Where git keeps the settings of a clone; of a linked work tree, those of its clone."""
    shown = clean(str(folder))
    try:
        if not folder.is_dir():
            raise CommandError(f"{shown} is no folder: write OWNER/REPO, or the folder of a clone")
        git = folder / ".git"
        if git.is_file():
            told = git.read_text(encoding="utf-8", errors="replace")[:_CONFIG_BYTES]
            git = folder / told.removeprefix("gitdir:").strip()
            common = git / "commondir"
            if common.is_file():
                git /= common.read_text(encoding="utf-8", errors="replace")[:_CONFIG_BYTES].strip()
        config = git / "config"
        if config.is_file() and config.stat().st_size <= _CONFIG_BYTES:
            return config.resolve()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise CommandError(f"{shown} cannot be read: {why}") from error
    raise CommandError(
        f"{shown} is no git clone, or not the top of one: write OWNER/REPO, or clone it first"
    )


def _origin(config: Path, shown: str) -> str:
    """What git reads in that one file, away from the folder: no include, no hook, no other file."""
    git = shutil.which("git")
    if git is None:
        raise CommandError(f"{shown}: git is not installed: install it, or write OWNER/REPO")
    try:
        asked = subprocess.run(
            [git, "config", "--file", str(config), "--no-includes", "--get", "remote.origin.url"],
            cwd="/",
            env={
                "PATH": os.environ.get("PATH", os.defpath),
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_CONFIG_GLOBAL": os.devnull,
                "GIT_CEILING_DIRECTORIES": "/",
                "HOME": os.devnull,
                "LC_ALL": "C",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandError(
            f"{shown}: git does not say where it was cloned from: write OWNER/REPO instead"
        ) from error
    if asked.returncode == 1 or (asked.returncode == 0 and not asked.stdout.strip()):
        raise CommandError(f"{shown} has no origin: write OWNER/REPO instead")
    if asked.returncode != 0:
        raise CommandError(f"{shown}: git cannot read its settings: write OWNER/REPO instead")
    return asked.stdout.strip()


def _address(text: str) -> tuple[str, str] | None:
    """The server (``host`` or ``host:port``) and what is asked of it; None where there is none."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    if parts.scheme in ("http", "https", "ssh", "git", "git+ssh") and host:
        plain = port is None or port == _PORTS.get(parts.scheme, port)
        return (host if plain else f"{host}:{port}"), _bare(parts.path)
    ssh = _SSH.fullmatch(text)
    return (ssh["host"].lower(), _bare(ssh["path"])) if ssh is not None else None


def _bare(path: str) -> str:
    return path.strip("/").removesuffix(".git")


def _hosts(api_url: str) -> set[str]:
    """The names of the server that the API belongs to; that of the machine, by ssh."""
    from worker.checkout.download import git_url

    web = urlsplit(git_url(api_url))
    names = {web.netloc.lower(), (web.hostname or "").lower()}
    return names | {"ssh.github.com"} if "github.com" in names else names
