"""Users, Apps and installations as JSON."""

from __future__ import annotations

import base64
from functools import lru_cache
from urllib.parse import quote

from sandbox.github.state import Account, App, Installation, Repository, Role, Token
from sandbox.github.wire import Json


def node_id(kind: str, number: int) -> str:
    return f"{kind}_" + base64.urlsafe_b64encode(f"{kind}:{number}".encode()).decode().rstrip("=")


@lru_cache(maxsize=4096)
def user(account: Account, base: str) -> Json:
    """A `simple-user`. Shared between answers: never change it, copy it."""
    login = quote(account.login)
    api = f"{base}/users/{login}"
    is_bot = account.type == "Bot"
    page = f"{base}/apps/{login.removesuffix('%5Bbot%5D')}" if is_bot else f"{base}/{login}"
    return {
        "login": account.login,
        "id": account.id,
        "node_id": node_id({"Bot": "BOT", "Organization": "O"}.get(account.type, "U"), account.id),
        "avatar_url": f"{base}/_sandbox/avatars/{account.id}",
        "gravatar_id": "",
        "url": api,
        "html_url": page,
        "followers_url": f"{api}/followers",
        "following_url": f"{api}/following{{/other_user}}",
        "gists_url": f"{api}/gists{{/gist_id}}",
        "starred_url": f"{api}/starred{{/owner}}{{/repo}}",
        "subscriptions_url": f"{api}/subscriptions",
        "organizations_url": f"{api}/orgs",
        "repos_url": f"{api}/repos",
        "events_url": f"{api}/events{{/privacy}}",
        "received_events_url": f"{api}/received_events",
        "type": account.type,
        "user_view_type": "public",
        "site_admin": False,
    }


def profile(account: Account, base: str, *, public_repos: int) -> Json:
    """A `public-user`."""
    return {
        **user(account, base),
        "name": account.name,
        "company": None,
        "blog": "",
        "location": None,
        "email": None,
        "hireable": None,
        "bio": None,
        "twitter_username": None,
        "public_repos": public_repos,
        "public_gists": 0,
        "followers": 0,
        "following": 0,
        "created_at": account.created_at,
        "updated_at": account.created_at,
    }


def private_profile(account: Account, base: str, *, public_repos: int) -> Json:
    """A `private-user`: what `GET /user` says to the user."""
    return {
        **profile(account, base, public_repos=public_repos),
        "user_view_type": "private",
        "private_gists": 0,
        "total_private_repos": 0,
        "owned_private_repos": 0,
        "disk_usage": 0,
        "collaborators": 0,
        "two_factor_authentication": True,
    }


def app(subject: App, base: str) -> Json:
    """An `integration`."""
    return {
        "id": subject.id,
        "client_id": subject.client_id,
        "slug": subject.slug,
        "node_id": node_id("A", subject.id),
        "owner": user(subject.owner, base),
        "name": subject.name,
        "description": "",
        "external_url": f"{base}/apps/{subject.slug}",
        "html_url": f"{base}/apps/{subject.slug}",
        "created_at": subject.created_at,
        "updated_at": subject.created_at,
        "permissions": dict(subject.permissions),
        "events": list(subject.events),
    }


def installation(subject: Installation, base: str) -> Json:
    by = subject.suspended_by
    return {
        "id": subject.id,
        "client_id": subject.app.client_id,
        "account": user(subject.account, base),
        "repository_selection": "all" if subject.repository_ids is None else "selected",
        "access_tokens_url": f"{base}/app/installations/{subject.id}/access_tokens",
        "repositories_url": f"{base}/installation/repositories",
        "html_url": f"{base}/settings/installations/{subject.id}",
        "app_id": subject.app.id,
        "app_slug": subject.app.slug,
        "target_id": subject.account.id,
        "target_type": subject.account.type,
        "permissions": dict(subject.permissions),
        "events": list(subject.events),
        "created_at": subject.created_at,
        "updated_at": subject.updated_at,
        "single_file_name": None,
        "has_multiple_single_files": False,
        "single_file_paths": [],
        "suspended_by": None if by is None else user(by, base),
        "suspended_at": subject.suspended_at,
    }


def token(subject: Token, expires_at: str, repositories: list[Json] | None) -> Json:
    content: Json = {
        "token": subject.value,
        "expires_at": expires_at,
        "permissions": dict(subject.permissions),
        "repository_selection": "all" if subject.repository_ids is None else "selected",
    }
    if repositories is not None:
        content["repositories"] = repositories
    return content


def permissions_of(role: Role) -> Json:
    return {
        "admin": role >= Role.ADMIN,
        "maintain": role >= Role.MAINTAIN,
        "push": role >= Role.WRITE,
        "triage": role >= Role.TRIAGE,
        "pull": role >= Role.READ,
    }


def collaborator_permission(account: Account, role: Role, base: str) -> Json:
    legacy = {Role.TRIAGE: Role.READ, Role.MAINTAIN: Role.WRITE}.get(role, role)
    name = role.name.lower()
    return {
        "permission": legacy.name.lower(),
        "user": {
            **user(account, base),
            "permissions": permissions_of(role),
            "role_name": name,
        },
        "role_name": name,
    }


def owner_summary(repository: Repository) -> Json:
    """How an `installation` webhook names a repository."""
    return {
        "id": repository.id,
        "node_id": node_id("R", repository.id),
        "name": repository.name,
        "full_name": repository.full_name,
        "private": repository.private,
    }
