"""Deliveries of ``issues.opened`` as GitHub sends them, each of another issue under its own id."""

import hashlib
import hmac
import json
from typing import Any, Final
from uuid import UUID

PATH: Final = "/api/github/webhooks"
EVENT: Final = "issues"

_API: Final = "https://api.github.example"
_WEB: Final = "https://github.example"
_ANY_ISSUE: Final = 8_000_000_000_000_000_007
"""Stands for the issue's id until a delivery is made of the template."""

_OF_USER: Final = (
    "followers following{/other_user} gists{/gist_id} starred{/owner}{/repo} subscriptions orgs "
    "repos events{/privacy} received_events"
).split()
_OF_REPOSITORY: Final = (
    "forks keys{/key_id} collaborators{/collaborator} teams hooks issues/events{/number} events "
    "assignees{/user} branches{/branch} tags git/blobs{/sha} git/tags{/sha} git/refs{/sha} "
    "git/trees{/sha} statuses/{sha} languages stargazers contributors subscribers subscription "
    "commits{/sha} git/commits{/sha} comments{/number} issues/comments{/number} contents/{+path} "
    "compare/{base}...{head} merges {archive_format}{/ref} downloads issues{/number} "
    "pulls{/number} milestones{/number} notifications{?since,all,participating} labels{/name} "
    "releases{/id} deployments"
).split()
_TEXT: Final = (
    "### What happened\n\nThe client loses its connection to the server after about a minute "
    "without traffic, and does not come back by itself.\n\n### Steps\n\n1. Start the server with "
    "the default settings\n2. Connect a client, and leave it alone\n3. Send a message after two "
    "minutes\n\n### Expected\n\nThe message arrives, or the client says why it does not.\n"
)


def guid(number: int) -> str:
    """The delivery's id."""
    return str(UUID(int=number))


def requests(first: int, count: int, secret: str) -> list[bytes]:
    """Whole HTTP requests, signed, numbered from ``first`` on."""
    template = json.dumps(_payload(), separators=(",", ":")).encode()
    before, _, after = template.partition(str(_ANY_ISSUE).encode())
    bodies = (
        (number, b"%b%d%b" % (before, number, after)) for number in range(first, first + count)
    )
    return [_request(number, body, secret.encode()) for number, body in bodies]


def _request(number: int, body: bytes, secret: bytes) -> bytes:
    signature = hmac.digest(secret, body, hashlib.sha256).hex()
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        "Accept: */*\r\nUser-Agent: GitHub-Hookshot/1\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        f"X-GitHub-Delivery: {guid(number)}\r\nX-GitHub-Event: {EVENT}\r\n"
        "X-GitHub-Hook-ID: 42\r\nX-GitHub-Hook-Installation-Target-ID: 7\r\n"
        "X-GitHub-Hook-Installation-Target-Type: integration\r\n"
        f"X-Hub-Signature-256: sha256={signature}\r\n\r\n"
    )
    return head.encode() + body


def _payload() -> dict[str, Any]:
    owner, ada = _user("acme", 41, "Organization"), _user("ada", 7, "User")
    return {
        "action": "opened",
        "issue": _issue(ada),
        "repository": _repository(owner),
        "organization": {
            "login": "acme",
            "id": 41,
            "node_id": "O_kgDOacme",
            "url": f"{_API}/orgs/acme",
            **_addresses(f"{_API}/orgs/acme", ["repos", "events", "hooks", "issues"]),
            "avatar_url": f"{_WEB}/avatars/u/41?v=4",
            "description": "What everybody buys",
        },
        "sender": ada,
        "installation": {"id": 5, "node_id": "MDIzOkludGVncmF0aW9uSW5zdGFsbGF0aW9uNQ=="},
    }


def _user(login: str, number: int, kind: str) -> dict[str, Any]:
    address = f"{_API}/users/{login}"
    return {
        "login": login,
        "id": number,
        "node_id": f"U_kgDO{login}",
        "avatar_url": f"{_WEB}/avatars/u/{number}?v=4",
        "gravatar_id": "",
        "url": address,
        "html_url": f"{_WEB}/{login}",
        **_addresses(address, _OF_USER),
        "type": kind,
        "user_view_type": "public",
        "site_admin": False,
    }


def _issue(author: dict[str, Any]) -> dict[str, Any]:
    address = f"{_API}/repos/acme/api/issues/1"
    return {
        "url": address,
        "repository_url": f"{_API}/repos/acme/api",
        **_addresses(address, ["labels{/name}", "comments", "events", "timeline"]),
        "html_url": f"{_WEB}/acme/api/issues/1",
        "id": _ANY_ISSUE,
        "node_id": "I_kwDOacme",
        "number": 1,
        "title": "The client does not come back after a minute without traffic",
        "user": author,
        "labels": [],
        "state": "open",
        "locked": False,
        "assignee": None,
        "assignees": [],
        "milestone": None,
        "comments": 0,
        "created_at": "2026-09-16T01:02:03Z",
        "updated_at": "2026-09-16T01:02:03Z",
        "closed_at": None,
        "author_association": "NONE",
        "type": None,
        "active_lock_reason": None,
        "sub_issues_summary": {"total": 0, "completed": 0, "percent_completed": 0},
        "body": _TEXT,
        "reactions": {
            "url": f"{address}/reactions",
            **dict.fromkeys(["total_count", "+1", "-1", "laugh", "hooray", "heart", "eyes"], 0),
        },
        "performed_via_github_app": None,
        "state_reason": None,
    }


def _repository(owner: dict[str, Any]) -> dict[str, Any]:
    address = f"{_API}/repos/acme/api"
    return {
        "id": 42,
        "node_id": "R_kgDOacme",
        "name": "api",
        "full_name": "acme/api",
        "private": False,
        "owner": owner,
        "html_url": f"{_WEB}/acme/api",
        "description": "What the clients talk to",
        "fork": False,
        "url": address,
        **_addresses(address, _OF_REPOSITORY),
        "created_at": "2020-01-02T03:04:05Z",
        "updated_at": "2026-09-15T01:02:03Z",
        "pushed_at": "2026-09-15T01:02:03Z",
        "clone_url": f"{_WEB}/acme/api.git",
        "homepage": None,
        "size": 4321,
        "stargazers_count": 765,
        "watchers_count": 765,
        "language": "Python",
        **dict.fromkeys(["has_issues", "has_projects", "has_downloads", "has_wiki"], True),
        "has_pages": False,
        "has_discussions": False,
        "forks_count": 87,
        "archived": False,
        "disabled": False,
        "open_issues_count": 65,
        "license": {"key": "mit", "name": "MIT License", "spdx_id": "MIT"},
        "allow_forking": True,
        "is_template": False,
        "topics": ["server", "client"],
        "visibility": "public",
        "forks": 87,
        "open_issues": 65,
        "watchers": 765,
        "default_branch": "main",
    }


def _addresses(base: str, names: list[str]) -> dict[str, str]:
    """As GitHub names them: ``events_url`` is the base, a slash, and ``events``."""
    return {
        f"{name.partition('{')[0].strip('/').replace('/', '_') or 'archive'}_url": f"{base}/{name}"
        for name in names
    }
