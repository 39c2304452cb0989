"""Checkouts: what is in them, that they are fetched once, and how they fail."""

import asyncio
import http.server
import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from tests.worker.checkout_world import (
    PACKS,
    REPOSITORY,
    REPOSITORY_ID,
    World,
    content,
    slow_git,
    until,
    world,
)
from worker.checkout.adapter import GitCheckouts
from worker.checkout.bounds import Bounds
from worker.checkout.download import git_url, repository_url
from worker.ports import CheckoutFailed, Place
from worker.wiring import _InstallationTokens


async def test_the_files_of_a_commit(tmp_path: Path) -> None:
    """Those of the commit that was asked for, not of the head; nothing else, and no git."""
    async with world(tmp_path) as here:
        old = here.github.put_file(REPOSITORY, "src/deep/a.py", "print('é')\n")
        here.github.put_file(REPOSITORY, "src/deep/a.py", "print(2)\n")
        async with here.checkouts().at(here.place, old) as checkout:
            assert checkout.commit == old
            assert tuple(checkout.files) == ("README.md", "src/deep/a.py")
            assert checkout.left_out == {}
            assert content(checkout.root) == {
                "README.md": b"# api\n",
                "src/deep/a.py": "print('é')\n".encode(),
            }
            assert checkout.bytes == sum(map(len, content(checkout.root).values()))
            assert checkout.root == checkout.root.resolve()
        assert not here.left_over()
        assert not [path for path in content(here.folder) if "pack" in path or "git" in path]


async def test_a_tree_is_read_only(tmp_path: Path) -> None:
    """Nobody may write, and nothing may be run; only the owner may read."""
    async with world(tmp_path) as here:
        here.github.put_file(REPOSITORY, "bin/run.sh", "#!/bin/sh\n")
        checkout = await here.taken()
        modes = {
            str(path.relative_to(checkout.root)): stat.S_IMODE(path.stat().st_mode)
            for path in [checkout.root, *checkout.root.rglob("*")]
        }
        assert modes == {".": 0o500, "bin": 0o500, "bin/run.sh": 0o400, "README.md": 0o400}
        assert stat.S_IMODE(here.shelf.stat().st_mode) == 0o700


async def test_the_same_commit_is_fetched_once(tmp_path: Path) -> None:
    """By whichever worker; the log of the sandbox counts. Another commit is fetched."""
    async with world(tmp_path) as here:
        first = await here.taken()
        again = await here.taken()
        assert again == first
        assert here.fetches() == 1
        assert len(here.github.requests("GET", f"{REPOSITORY}.git/info/refs")) == 1
        here.github.put_file(REPOSITORY, "new.py", "")
        other = await here.taken()
        assert here.fetches() == 2
        assert other.root == first.root
        assert tuple(other.files) == ("README.md", "new.py")
        assert not here.left_over()


@pytest.mark.parametrize("found", [False, True])
async def test_a_tree_in_use_stays(tmp_path: Path, found: bool) -> None:
    """Whoever uses it, has made it or found it. Another commit gets a place of its own meanwhile;
    afterwards the first place again."""
    async with world(tmp_path) as here:
        old = here.head
        if found:
            await here.taken(old)
        async with here.checkouts().at(here.place, old) as used:
            before = content(used.root)
            new = here.github.put_file(REPOSITORY, "new.py", "")
            async with here.checkouts().at(here.place, new) as other:
                assert other.root != used.root
                assert tuple(other.files) == ("README.md", "new.py")
                async with here.checkouts().at(here.place, old) as shared:
                    assert shared == used
            assert content(used.root) == before
        newest = here.github.put_file(REPOSITORY, "newest.py", "")
        assert (await here.taken(newest)).root == used.root


async def test_places_are_bounded(tmp_path: Path) -> None:
    """Four commits at once, no more; those that are not needed any more are removed."""
    async with world(tmp_path) as here:
        commits = [here.github.put_file(REPOSITORY, f"{n}.py", "") for n in range(6)]
        blocks = [here.checkouts().at(here.place, commit) for commit in commits[:4]]
        used = [await block.__aenter__() for block in blocks]
        assert len({checkout.root for checkout in used}) == 4
        failed = await here.failure(commits[4])
        assert (failed.reason, failed.retryable) == ("busy", True)
        for block in blocks:
            await block.__aexit__(None, None, None)
        await here.taken(commits[5])
        kept = sorted(path.name for path in here.shelf.iterdir() if path.is_dir())
        assert kept == ["1", "2"]


async def test_two_at_once_share_one_fetch(tmp_path: Path) -> None:
    """Whoever comes second waits, and finds the tree of the first."""
    async with world(tmp_path) as here:
        trees = await asyncio.gather(*(here.taken() for _ in range(5)))
        assert len({tree.root for tree in trees}) == 1
        assert here.fetches() == 1


async def test_a_fetch_that_does_not_end_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    """Nor does it keep another repository waiting."""
    async with world(tmp_path) as here:
        here.github.add_repository("acme/other", id=7, private=True)
        here.github.fail(PACKS, "hang before applying", times=1)
        slow = asyncio.create_task(here.taken())
        await until(here.fetches)
        with pytest.raises(CheckoutFailed) as failure:
            await here.taken(wait_seconds=0.1)
        assert (failure.value.reason, failure.value.retryable) == ("busy", True)
        elsewhere = Place(7, "acme/other", here.installation)
        head = here.github.repository(7).commits[-1].sha
        async with here.checkouts().at(elsewhere, head) as other:
            assert tuple(other.files) == ("README.md",)
        here.github.land_late()
        assert tuple((await slow).files) == ("README.md",)


@pytest.mark.parametrize("harm", ["emptied", "removed", "no manifest", "half a manifest"])
async def test_a_tree_that_is_not_whole_is_made_anew(tmp_path: Path, harm: str) -> None:
    """As after a power cut, or a person's hand."""
    async with world(tmp_path) as here:
        checkout = await here.taken()
        file, manifest = checkout.root / "README.md", checkout.root.with_name("manifest.json")
        checkout.root.chmod(0o700)
        file.chmod(0o600)
        match harm:
            case "emptied":
                file.write_bytes(b"")
            case "removed":
                file.unlink()
            case "no manifest":
                manifest.unlink()
            case _:
                manifest.write_text(manifest.read_text()[:20])
        assert await here.taken() == checkout
        assert file.read_bytes() == b"# api\n"
        assert here.fetches() == 2


async def test_trees_of_repositories_that_nobody_asks_for_are_removed(tmp_path: Path) -> None:
    """After two weeks; a tree in use is left."""
    async with world(tmp_path) as here:
        for number, name in ((7, "acme/idle"), (8, "acme/used")):
            here.github.add_repository(name, id=number, private=True)
            head = here.github.repository(number).commits[-1].sha
            async with here.checkouts().at(Place(number, name, here.installation), head):
                pass
        used = here.checkouts().at(Place(8, "acme/used", here.installation), head)
        tree = await used.__aenter__()
        for number in (7, 8):
            os.utime(here.folder / f"R{number}" / "lock", (0, 0))
        await here.taken()
        assert not (here.folder / "R7" / "1").exists()
        assert tree.root.is_dir()
        await used.__aexit__(None, None, None)


@pytest.mark.parametrize(
    ("fault", "reason", "retryable"),
    [
        ("502", "unreachable", True),
        ("drop", "unreachable", True),
        ("401", "unauthorised", False),
        ("403 secondary", "limited", True),
        ("429", "limited", True),
    ],
)
@pytest.mark.parametrize("where", ["GET .*info/refs", PACKS])
async def test_refusals_of_github(
    tmp_path: Path, where: str, fault: str, reason: str, retryable: bool
) -> None:
    """Each has its word, and whose move is next; afterwards it works as if nothing had been."""
    async with world(tmp_path) as here:
        retry_after = {"retry_after": 60} if fault.startswith("4") and fault != "401" else {}
        here.github.fail(where, fault, times=2 if fault == "401" else 1, **retry_after)
        failed = await here.failure()
        assert (failed.reason, failed.retryable) == (reason, retryable)
        assert tuple((await here.taken()).files) == ("README.md",)


async def test_a_token_that_was_taken_back_is_got_anew(tmp_path: Path) -> None:
    """Once."""
    async with world(tmp_path) as here:
        await here.authority.header(here.installation)
        here.github.tokens.clear()
        assert tuple((await here.taken()).files) == ("README.md",)
        asked = here.github.requests("GET", f"{REPOSITORY}.git/info/refs")
        assert [each.status for each in asked] == [401, 200]


async def test_what_the_app_may_not_read(tmp_path: Path) -> None:
    """Another's repository, one that it lost, one without the permission, a former name."""
    async with world(tmp_path) as here:
        app = here.github.app("retriage")
        app.permissions.pop("contents")
        here.github.installations[int(here.installation)].permissions.pop("contents")
        failed = await here.failure()
        assert (failed.reason, failed.retryable) == ("forbidden", False)
        here.github.as_user("acme").rename_repository(REPOSITORY, "core")
        here.github.installations[int(here.installation)].permissions["contents"] = "read"
        here.authority.evict(here.installation, await here.authority.header(here.installation))
        failed = await here.failure()
        assert (failed.reason, failed.retryable) == ("moved", True)
        here.github.installations[int(here.installation)].repository_ids = set()
        failed = await here.failure()
        assert (failed.reason, failed.retryable) == ("not-found", False)
        here.github.suspend(int(here.installation))
        failed = await here.failure()
        assert (failed.reason, failed.retryable) == ("forbidden", False)
        here.authority.evict(here.installation, await here.authority.header(here.installation))
        failed = await here.failure()
        assert (failed.reason, failed.retryable) == ("no-token", False)


@pytest.mark.parametrize(
    ("commit", "reason"),
    [
        ("0" * 39 + "1", "commit-gone"),
        ("main", "commit-gone"),
        ("--all", "commit-gone"),
        ("", "empty"),
    ],
)
async def test_commits_that_are_none(tmp_path: Path, commit: str, reason: str) -> None:
    """What is no id is not asked for."""
    async with world(tmp_path) as here:
        with pytest.raises(CheckoutFailed) as failure:
            async with here.checkouts().at(here.place, commit):
                pass
        assert (failure.value.reason, failure.value.retryable) == (reason, False)
        assert here.fetches() == (1 if commit.startswith("0") else 0)


async def test_a_former_commit_stays_when_a_fetch_fails(tmp_path: Path) -> None:
    """The tree that is there is replaced by a whole one, or not at all."""
    async with world(tmp_path) as here:
        old = here.head
        await here.taken()
        here.github.put_file(REPOSITORY, "new.py", "")
        here.github.fail(PACKS, "apply then drop")
        assert (await here.failure()).reason == "unreachable"
        await here.taken(old)
        assert here.fetches() == 2


async def test_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One clear line; a tree that is there needs none."""
    async with world(tmp_path) as here:
        await here.taken()
        old = here.head
        here.github.put_file(REPOSITORY, "new.py", "")
        monkeypatch.setenv("PATH", str(tmp_path))
        failed = await here.failure()
        assert str(failed) == "no-git: there is no git on this machine"
        assert not failed.retryable
        assert tuple((await here.taken(old)).files) == ("README.md",)


async def test_a_git_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says is in the message, on one line; a full disk has its own word."""
    real = shutil.which("git") or ""
    async with world(tmp_path) as here:
        for number, (deed, reason, words) in enumerate(
            (
                ("printf 'fatal: no\\nway' >&2; exit 9", "broken", "ended with 9: fatal: no way"),
                ("echo 'No space left on device' >&2; exit 1", "disk-full", "full"),
                ("kill -XFSZ $$", "too-large", "larger"),
                ("kill -XCPU $$", "timeout", "processor"),
            )
        ):
            path = slow_git(tmp_path / str(number), "ls-tree", real, deed)
            with monkeypatch.context() as patch:
                patch.setenv("PATH", path)
                failed = await here.failure()
            assert failed.reason == reason
            assert words in failed.detail
            assert failed.retryable is (reason != "too-large")
        await here.taken()


async def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    """A file in its place."""
    (tmp_path / "checkouts").write_text("")
    async with world(tmp_path) as here:
        with pytest.raises(CheckoutFailed) as failure:
            await here.taken()
    assert (failure.value.reason, failure.value.retryable) == ("no-folder", False)


async def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    """Nobody listens; or something listens that is no git server."""
    async with world(tmp_path) as here:
        tokens = _InstallationTokens(here.authority)
        for url, reason in (("http://127.0.0.1:9", "unreachable"), (here.url, "not-found")):
            checkouts = GitCheckouts(tmp_path / "x", tokens, api_url=f"{url}/_", bounds=Bounds())
            with pytest.raises(CheckoutFailed) as failure:
                async with checkouts.at(here.place, here.head):
                    pass
            assert failure.value.reason == reason


class Cut(http.server.BaseHTTPRequestHandler):
    """A git server whose answer ends in the midst of the pack, as if that were its end."""

    def do_GET(self) -> None:
        self._say(b"000eversion 2\n0013fetch=shallow\n0000")

    def do_POST(self) -> None:
        self._say(b"000dpackfile\n0009\x01PACK")

    def _say(self, body: bytes) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...


async def test_an_answer_that_ends_too_early(tmp_path: Path) -> None:
    """Half a pack is not given to git: the network is to blame, and it is tried again."""
    async with world(tmp_path) as here:
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Cut) as server:
            serving = asyncio.create_task(asyncio.to_thread(server.serve_forever, 0.01))
            here.url = f"http://127.0.0.1:{server.server_port}"
            failed = await here.failure()
            server.shutdown()
            await serving
        assert (failed.reason, failed.retryable) == ("unreachable", True)
        assert "too early" in failed.detail


@pytest.mark.parametrize(
    ("api_url", "of_git"),
    [
        ("https://api.github.com", "https://github.com/acme/a%20b.git"),
        ("https://api.github.com/", "https://github.com/acme/a%20b.git"),
        ("https://api.acme.ghe.com", "https://acme.ghe.com/acme/a%20b.git"),
        ("https://api.example.com", "https://api.example.com/acme/a%20b.git"),
        ("https://git.example.com/api/v3", "https://git.example.com/acme/a%20b.git"),
        ("https://git.example.com:8443/api/v3/", "https://git.example.com:8443/acme/a%20b.git"),
        ("http://127.0.0.1:8300", "http://127.0.0.1:8300/acme/a%20b.git"),
        ("http://[::1]:8300", "http://[::1]:8300/acme/a%20b.git"),
    ],
)
def test_where_git_is_asked(api_url: str, of_git: str) -> None:
    """GitHub's own address, an Enterprise Server's, the sandbox's."""
    assert repository_url(git_url(api_url), "acme/a b") == of_git


def test_manifest_is_beside_the_tree_and_not_in_it(tmp_path: Path) -> None:
    """The agent reads under the root; the manifest is not there."""

    async def made() -> tuple[World, Path]:
        async with world(tmp_path) as here:
            return here, (await here.taken()).root

    here, root = asyncio.run(made())
    manifest = json.loads(root.with_name("manifest.json").read_text())
    assert manifest["commit"] == here.head
    assert root.parent.parent.name == f"R{REPOSITORY_ID}"
