"""``worker.ports.Checkouts`` on a folder of this machine."""

import asyncio
import os
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Protocol

import httpx

from worker.checkout.bounds import RETRYABLE, Bounds, Reason, Stopped
from worker.checkout.child import NO_SPACE, PACK, SLOT, Work
from worker.checkout.download import Source, download, git_url, repository_url
from worker.checkout.slots import Lock, Shelf, Slot, remove, shelf_of, sweep_idle
from worker.checkout.unpacking import unpack
from worker.ports import Checkout, CheckoutFailed, Place

POLL_SECONDS: Final = 0.05
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")


class Tokens(Protocol):
    """Gives what git asks GitHub with."""

    async def token(self, installation: str) -> str:
        """A token of the installation. Raises CheckoutFailed."""

    def refused(self, installation: str, token: str) -> bool:
        """GitHub refused this one. True where the next is another."""


class GitCheckouts:
    """Fetches a commit once for each repository and machine; see ``worker.checkout``.

    ``folder`` is made where it is missing; workers of one machine share it. ``transport`` replaces
    the network, for a GitHub in the same process.
    """

    def __init__(
        self,
        folder: Path,
        tokens: Tokens,
        *,
        api_url: str,
        bounds: Bounds | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._folder = folder.expanduser().resolve()
        self._tokens = tokens
        self._base = git_url(api_url)
        self._bounds = bounds or Bounds()
        self._transport = transport

    @asynccontextmanager
    async def at(self, place: Place, commit: str) -> AsyncIterator[Checkout]:
        """The tree, for as long as the block lasts. Raises CheckoutFailed."""
        try:
            slot, checkout = await self._held(place, commit)
        except Stopped as stopped:
            raise _failed(stopped) from None
        except OSError as error:
            raise _failed(_of_disk(error)) from None
        try:
            yield checkout
        finally:
            slot.lock.close()

    async def _held(self, place: Place, commit: str) -> tuple[Slot, Checkout]:
        if not commit:
            raise Stopped(Reason.EMPTY, "the repository is empty")
        if not _COMMIT.fullmatch(commit):
            raise Stopped(Reason.COMMIT_GONE, "this is no whole commit id")
        shelf = shelf_of(self._folder, place.id)
        lock = await self._locked(shelf)
        try:
            shelf.mark_used()
            return shelf.find(commit) or await self._made(shelf, lock, place, commit)
        finally:
            lock.close()

    async def _locked(self, shelf: Shelf) -> Lock:
        """The repository's lock: one fetch at a time, and whoever waited finds its tree."""
        clock = asyncio.get_running_loop().time
        until = clock() + self._bounds.wait_seconds
        while (lock := shelf.lock()) is None:
            if clock() >= until:
                detail = "another worker fetches this repository, and does not come to an end"
                raise Stopped(Reason.BUSY, detail)
            await asyncio.sleep(POLL_SECONDS)
        return lock

    async def _made(
        self, shelf: Shelf, lock: Lock, place: Place, commit: str
    ) -> tuple[Slot, Checkout]:
        git = shutil.which("git")
        if git is None:
            raise Stopped(Reason.NO_GIT, "there is no git on this machine")
        shelf.sweep()
        await asyncio.to_thread(sweep_idle, self._folder)
        slot = shelf.free()
        if slot is None:
            raise Stopped(Reason.BUSY, "every tree of this repository is in use")
        workshop = shelf.workshop()
        try:
            async with asyncio.timeout(self._bounds.wall_seconds):
                await self._fetched(place, commit, workshop / PACK)
                work = Work(git, str(workshop), commit, self._bounds, os.getpid())
                await unpack(work, lock.file)
            slot.put(workshop / SLOT)
            checkout = slot.checkout(commit)
            if checkout is None:
                raise Stopped(Reason.BROKEN, "the tree is not as it was written")
            slot.lock.share()
            return slot, checkout
        except TimeoutError:
            slot.lock.close()
            detail = f"the fetch took more than {self._bounds.wall_seconds:g} seconds"
            raise Stopped(Reason.TIMEOUT, detail) from None
        except BaseException:
            slot.lock.close()
            raise
        finally:
            await asyncio.shield(asyncio.to_thread(remove, workshop))

    async def _fetched(self, place: Place, commit: str, pack: Path) -> None:
        """The pack; once more where the token had been taken back meanwhile."""
        url = repository_url(self._base, place.full_name)
        token = await self._tokens.token(place.installation)
        try:
            await download(Source(url, token), commit, pack, self._bounds, self._transport)
        except Stopped as stopped:
            if stopped.reason is not Reason.UNAUTHORISED:
                raise
            if not self._tokens.refused(place.installation, token):
                raise
            fresh = Source(url, await self._tokens.token(place.installation))
            await download(fresh, commit, pack, self._bounds, self._transport)


def _of_disk(error: OSError) -> Stopped:
    if error.errno in NO_SPACE:
        return Stopped(Reason.DISK_FULL, "the disk of the checkout folder is full")
    words = error.strerror or type(error).__name__
    return Stopped(Reason.NO_FOLDER, f"the checkout folder cannot be used: {words}")


def _failed(stopped: Stopped) -> CheckoutFailed:
    retryable = stopped.reason in RETRYABLE
    return CheckoutFailed(stopped.reason.value, stopped.detail, retryable=retryable)
