"""What goes wrong in the story, and exactly where: real faults, each in a repository of its own."""

import asyncio
import os
import re
from dataclasses import dataclass, field
from threading import Event

from cli.demo import scene
from cli.demo.watching import Watch
from sandbox.github.faults import Struck

HOLD_SECONDS = 2.5
"""How long GitHub keeps the first comment waiting for the second worker: less than a request may
take."""

KILL_SECONDS = 3.0

_SIGNED = re.compile(r"\bsig=[0-9a-f]{64}")


@dataclass
class Mishaps:
    """``second_refused`` lets go of the comments; ``killed`` is the name of the worker that
    died. ``loop`` is where the sandbox's threads find the ledger."""

    watch: Watch
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    second_refused: Event = field(default_factory=Event)
    killed: str = ""

    def arm(self) -> None:
        """They wait for the first comment in their repositories."""
        fail = self.watch.stage.github.fail
        fail(_comment_in(scene.MAIN), "call before applying", call=self._hold, times=None)
        fail(_comment_in(scene.KILLED), "call after applying", call=self._kill)
        fail(_comment_in(scene.UNSEEN), "502")
        fail(_comment_in(scene.TAMPERED), "act after applying", act=self._tamper)

    def _hold(self, _struck: Struck) -> None:
        self.second_refused.wait(HOLD_SECONDS)

    def _kill(self, _struck: Struck) -> None:
        """GitHub has the comment, and answers only when its sender is dead."""
        if self.loop.is_running():  # the story may have failed before
            asyncio.run_coroutine_threadsafe(self._kill_sender(), self.loop).result(KILL_SECONDS)

    async def _kill_sender(self) -> None:
        """The lease tells the work horse, and its session the worker; both get SIGKILL."""
        run = await self.watch.run(scene.KILLED)
        if run is None:
            return
        view = await self.watch.ledger.leases.view(run.inputs.dedupe_key)
        work_horse = int(view.lease.owner.rpartition("-")[2])
        self.killed = self.watch.stage.kill(os.getsid(work_horse), work_horse).name

    def _tamper(self, struck: Struck) -> None:
        """Somebody changes the signature of the bot's comment."""
        person = self.watch.stage.github.as_user(scene.MAINTAINER)
        number = int(struck.path.split("/")[-2])
        for comment in self.watch.comments(scene.TAMPERED, number):
            forged = _SIGNED.sub(f"sig={'0' * 64}", comment.body)
            person.edit_comment(scene.TAMPERED, comment.id, forged)


def _comment_in(repository: str) -> str:
    """A comment that is posted there."""
    return rf"POST ^/repos/{re.escape(repository)}/issues/\d+/comments$"
