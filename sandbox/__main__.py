"""Runs the sandbox in the foreground: a GitHub and a model API on loopback, until a signal."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from sandbox import issues_csv
from sandbox.github import GitHub
from sandbox.github.server import GitHubServer
from sandbox.model.server import ModelServer


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    github = GitHub(seed=options.seed)
    try:
        lines = _build(github, options)
    except (OSError, ValueError) as problem:
        sys.stderr.write(f"sandbox: {problem}\n")
        return 2
    done = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: done.set())
    with ExitStack() as stack:
        try:
            server = stack.enter_context(GitHubServer(github, host=options.host, port=options.port))
            lines["GITHUB_API_URL"] = server.url
            if options.model_port is not None:
                model = stack.enter_context(ModelServer(port=options.model_port, host=options.host))
                lines["ANTHROPIC_BASE_URL"] = model.url
        except OSError as problem:
            sys.stderr.write(f"sandbox: {problem}\n")
            return 2
        for name, value in lines.items():
            sys.stdout.write(f"{name}={value}\n")
        sys.stdout.flush()
        done.wait()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sandbox",
        description="A GitHub and a model API on this machine, for trying things out. Prints the "
        "settings to use them with, then serves until it is stopped.",
    )
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    add("--port", type=int, default=8300, help="port of the GitHub, 0 for any (%(default)s)")
    add("--model-port", type=int, default=None, help="port of the model API, 0 for any (off)")
    add("--issues", type=Path, default=issues_csv.DEMO, help="CSV repo,created_at,label,title,body")
    add("--repo", help="take only this repository's issues")
    add("--limit", type=int, help="take at most so many issues")
    add("--app", default="retriage", help="slug of the App (default: %(default)s)")
    add("--app-id", type=int, default=42, help="id of the App (default: %(default)s)")
    add("--key", type=Path, default=Path("sandbox.pem"), help="App's private key; made if missing")
    add("--webhook-url", help="where the App's webhooks go")
    add("--webhook-secret", default="sandbox", help="what they are signed with (%(default)s)")
    add("--seed", type=int, help="makes ids and dice repeat from run to run")
    return parser


def _build(github: GitHub, options: argparse.Namespace) -> dict[str, str]:
    """Fills the world; gives the settings to print."""
    rows = issues_csv.load(options.issues, options.repo, options.limit)
    if not rows:
        raise ValueError(f"no issues in {options.issues}")
    repositories = sorted({row.repo for row in rows})
    owners = sorted({repo.split("/")[0] for repo in repositories})
    for owner in owners:
        github.add_organization(owner)
    github.fill(rows)
    key = github.add_app(
        options.app,
        options.app_id,
        private_key=options.key.read_text("ascii") if options.key.exists() else None,
        webhook_url=options.webhook_url,
        webhook_secret=options.webhook_secret,
    )
    if not options.key.exists():
        options.key.touch(mode=0o600)
        options.key.write_text(key, "ascii")
    for owner in owners:
        github.install(options.app, owner)
    return {
        "APP_ID": str(options.app_id),
        "PRIVATE_KEY_PATH": str(options.key.resolve()),
        "WEBHOOK_SECRET": options.webhook_secret,
        "REPOSITORIES": ",".join(repositories),
    }


if __name__ == "__main__":
    sys.exit(main())
