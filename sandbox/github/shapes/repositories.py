"""Repositories, contents, commits and branches as JSON."""

from __future__ import annotations

import base64
import hashlib

from sandbox.github.shapes.accounts import node_id, permissions_of, user
from sandbox.github.state import Commit, Repository, Role
from sandbox.github.wire import Json

# How GitHub names the addresses under a repository: key without `_url` -> path template.
_ADDRESSES = {
    "archive": "{archive_format}{/ref}",
    "assignees": "assignees{/user}",
    "blobs": "git/blobs{/sha}",
    "branches": "branches{/branch}",
    "collaborators": "collaborators{/collaborator}",
    "comments": "comments{/number}",
    "commits": "commits{/sha}",
    "compare": "compare/{base}...{head}",
    "contents": "contents/{+path}",
    "contributors": "contributors",
    "deployments": "deployments",
    "downloads": "downloads",
    "events": "events",
    "forks": "forks",
    "git_commits": "git/commits{/sha}",
    "git_refs": "git/refs{/sha}",
    "git_tags": "git/tags{/sha}",
    "hooks": "hooks",
    "issue_comment": "issues/comments{/number}",
    "issue_events": "issues/events{/number}",
    "issues": "issues{/number}",
    "keys": "keys{/key_id}",
    "labels": "labels{/name}",
    "languages": "languages",
    "merges": "merges",
    "milestones": "milestones{/number}",
    "notifications": "notifications{?since,all,participating}",
    "pulls": "pulls{/number}",
    "releases": "releases{/id}",
    "stargazers": "stargazers",
    "statuses": "statuses/{sha}",
    "subscribers": "subscribers",
    "subscription": "subscription",
    "tags": "tags",
    "teams": "teams",
    "trees": "git/trees{/sha}",
}


def repository(subject: Repository, base: str, role: Role | None = None) -> Json:
    """A `repository`; with `role`, what the asker may do there."""
    url = f"{base}/repos/{subject.full_name}"
    page = f"{base}/{subject.full_name}"
    open_issues = sum(
        1
        for issue in subject.issues.values()
        if issue.history.latest is not None and issue.history.latest.state == "open"
    )
    content: Json = {
        "id": subject.id,
        "node_id": node_id("R", subject.id),
        "name": subject.name,
        "full_name": subject.full_name,
        "private": subject.private,
        "owner": user(subject.owner, base),
        "html_url": page,
        "description": subject.description,
        "fork": False,
        "url": url,
        **{f"{key}_url": f"{url}/{path}" for key, path in _ADDRESSES.items()},
        "created_at": subject.created_at,
        "updated_at": subject.updated_at,
        "pushed_at": subject.pushed_at,
        "git_url": f"{page}.git",
        "ssh_url": f"{page}.git",
        "clone_url": f"{page}.git",
        "svn_url": page,
        "homepage": None,
        "size": 1,
        "stargazers_count": 0,
        "watchers_count": 0,
        "language": None,
        "has_issues": subject.has_issues,
        "has_projects": False,
        "has_downloads": True,
        "has_wiki": False,
        "has_pages": False,
        "has_discussions": False,
        "forks_count": 0,
        "mirror_url": None,
        "archived": subject.archived,
        "disabled": False,
        "open_issues_count": open_issues,
        "license": None,
        "allow_forking": True,
        "is_template": False,
        "web_commit_signoff_required": False,
        "topics": [],
        "visibility": "private" if subject.private else "public",
        "forks": 0,
        "open_issues": open_issues,
        "watchers": 0,
        "default_branch": subject.default_branch,
        "custom_properties": {},
    }
    if role is not None:
        content["permissions"] = permissions_of(role)
    return content


def full_repository(subject: Repository, base: str, role: Role | None) -> Json:
    content = repository(subject, base, role)
    if subject.owner.type == "Organization":
        content["organization"] = user(subject.owner, base)
    return {
        **content,
        "temp_clone_token": None,
        "network_count": 0,
        "subscribers_count": 0,
    }


def blob_sha(text: str) -> str:
    data = text.encode(errors="surrogatepass")
    return hashlib.sha1(b"blob %d\x00" % len(data) + data).hexdigest()


def content_file(subject: Repository, path: str, text: str, ref: str, base: str) -> Json:
    """A `content-file`: base64 in lines of 60, as GitHub sends it."""
    encoded = base64.b64encode(text.encode(errors="surrogatepass")).decode("ascii")
    lines = "".join(encoded[i : i + 60] + "\n" for i in range(0, len(encoded), 60))
    return {
        **_entry(subject, "file", path, text, ref, base),
        "content": lines,
        "encoding": "base64",
    }


def content_directory(subject: Repository, path: str, ref: str, base: str) -> list[Json]:
    """The entries of a folder; empty if there is none of that name."""
    prefix = f"{path}/" if path else ""
    entries: dict[str, Json] = {}
    for name, text in sorted(commit_files(subject, ref).items()):
        if not name.startswith(prefix):
            continue
        head, _, rest = name.removeprefix(prefix).partition("/")
        if rest:
            entries.setdefault(head, _entry(subject, "dir", prefix + head, "", ref, base))
        else:
            entries[head] = _entry(subject, "file", name, text, ref, base)
    return list(entries.values())


def _entry(subject: Repository, kind: str, path: str, text: str, ref: str, base: str) -> Json:
    sha = blob_sha(text)
    url = f"{base}/repos/{subject.full_name}/contents/{path}?ref={ref}"
    git_url = f"{base}/repos/{subject.full_name}/git/{'blobs' if kind == 'file' else 'trees'}/{sha}"
    page = f"{base}/{subject.full_name}/blob/{ref}/{path}"
    return {
        "name": path.rsplit("/", 1)[-1],
        "path": path,
        "sha": sha,
        "size": len(text.encode(errors="surrogatepass")),
        "url": url,
        "html_url": page,
        "git_url": git_url,
        "download_url": f"{base}/{subject.full_name}/raw/{ref}/{path}" if kind == "file" else None,
        "type": kind,
        "_links": {"self": url, "git": git_url, "html": page},
    }


def find_commit(subject: Repository, ref: str) -> Commit | None:
    """By branch name, HEAD, whole or abbreviated (from 7 characters) sha."""
    if not subject.commits:
        return None
    if ref in ("", "HEAD", subject.default_branch, f"heads/{subject.default_branch}"):
        return subject.commits[-1]
    if len(ref) < 7:
        return None
    return next((each for each in subject.commits if each.sha.startswith(ref)), None)


def commit_files(subject: Repository, ref: str) -> dict[str, str]:
    found = find_commit(subject, ref)
    return {} if found is None else found.files


def commit(subject: Commit, repository: Repository, base: str, *, detailed: bool = False) -> Json:
    url = f"{base}/repos/{repository.full_name}"
    author = user(subject.author, base)
    person: Json = {
        "name": subject.author.name,
        "email": f"{subject.author.id}+{subject.author.login}@users.noreply.sandbox.invalid",
        "date": subject.at,
    }
    content: Json = {
        "sha": subject.sha,
        "node_id": node_id("C", int(subject.sha[:8], 16)),
        "commit": {
            "author": person,
            "committer": person,
            "message": subject.message,
            "tree": {"sha": subject.tree, "url": f"{url}/git/trees/{subject.tree}"},
            "url": f"{url}/git/commits/{subject.sha}",
            "comment_count": 0,
            "verification": {
                "verified": False,
                "reason": "unsigned",
                "signature": None,
                "payload": None,
                "verified_at": None,
            },
        },
        "url": f"{url}/commits/{subject.sha}",
        "html_url": f"{base}/{repository.full_name}/commit/{subject.sha}",
        "comments_url": f"{url}/commits/{subject.sha}/comments",
        "author": author,
        "committer": author,
        "parents": [
            {
                "sha": sha,
                "url": f"{url}/commits/{sha}",
                "html_url": f"{base}/{repository.full_name}/commit/{sha}",
            }
            for sha in subject.parents
        ],
    }
    if detailed:
        files = [_changed_file(subject, repository, path, base) for path in subject.changed]
        content["stats"] = {"total": len(files), "additions": len(files), "deletions": 0}
        content["files"] = files
    return content


def _changed_file(subject: Commit, repository: Repository, path: str, base: str) -> Json:
    page = f"{base}/{repository.full_name}"
    text = subject.files.get(path)
    return {
        "sha": blob_sha(text or ""),
        "filename": path,
        "status": "removed" if text is None else "modified" if subject.parents else "added",
        "additions": 1,
        "deletions": 0,
        "changes": 1,
        "blob_url": f"{page}/blob/{subject.sha}/{path}",
        "raw_url": f"{page}/raw/{subject.sha}/{path}",
        "contents_url": f"{base}/repos/{repository.full_name}/contents/{path}?ref={subject.sha}",
    }


def branch(repository: Repository, tip: Commit, base: str) -> Json:
    """A `branch-with-protection`."""
    name = repository.default_branch
    url = f"{base}/repos/{repository.full_name}/branches/{name}"
    return {
        "name": name,
        "commit": commit(tip, repository, base),
        "_links": {"self": url, "html": f"{base}/{repository.full_name}/tree/{name}"},
        "protected": False,
        "protection": {
            "enabled": False,
            "required_status_checks": {
                "enforcement_level": "off",
                "contexts": [],
                "checks": [],
            },
        },
        "protection_url": f"{url}/protection",
    }
