"""The ways in: a signed webhook, the cron address, and a person at the command line."""

import json
from dataclasses import dataclass
from typing import Any

import httpx

from cli.demo.stage import APP
from cli.demo.watching import Watch, wanted
from ledger.records import RepositoryRecord
from sandbox.github.webhooks import Delivery
from triage.identifiers import JobKey

HTTP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Entrance:
    """The receiver, reached as GitHub and a scheduler reach it."""

    watch: Watch
    receiver: str

    async def delivered(self, event: str, action: str, holding: bytes = b"") -> Delivery:
        """The newest delivery of an event whose body holds something, once it was answered."""

        async def look() -> Delivery | None:
            for each in reversed(self.watch.stage.github.webhooks.deliveries):
                fits = (each.event, each.action) == (event, action) and holding in each.body
                if fits and each.delivered_at is not None:
                    return each
            return None

        return await self.watch.until(look, f"an answer to the webhook {event}.{action}")

    async def known(self, repository: str) -> RepositoryRecord:
        """The repository as the ledger knows it, once a worker has put it there."""

        async def look() -> RepositoryRecord | None:
            found = await self.watch.ledger.repositories.named(repository)
            return found if found is not None and found.active else None

        return await self.watch.until(look, f"the record of {repository}")

    async def ring(
        self, repository: str, *, job: JobKey = JobKey.DAILY, window: str | None = None
    ) -> None:
        """``POST /cron/{job}`` for one repository, with the secret."""
        secret = self.watch.stage.settings["CRON_SECRET"]
        async with httpx.AsyncClient(trust_env=False, timeout=HTTP_SECONDS) as client:
            answer = await client.post(
                f"{self.receiver}/cron/{job}",
                params={"repository": repository} | ({"window": window} if window else {}),
                headers={"Authorization": f"Bearer {secret}"},
            )
        wanted(answer.status_code == 202, f"/cron answered {answer.status_code}: {answer.text}")


async def opened(watch: Watch) -> Entrance:
    """Wait until every process is ready, and tell GitHub where the receiver is."""
    line = await watch.told("receiver", "LISTENING")
    receiver = line.rpartition("address=")[2].split()[0]
    for process in watch.stage.named("clock"):
        await watch.told(process.name, "CLOCK-STARTED")
    for process in watch.stage.named("worker"):
        await watch.told(process.name, "WORKER-STARTED")
    secret = watch.stage.settings["WEBHOOK_SECRET"]
    watch.stage.github.set_hook(APP, f"{receiver}/api/github/webhooks", secret)
    return Entrance(watch, receiver)


async def by_hand(
    watch: Watch, repository: str, window: str, *, job: JobKey = JobKey.DAILY
) -> dict[str, Any]:
    """``retriage run`` of one window: what it answers, and its exit code."""
    arguments = ("run", repository, "--job", job, "--window", window, "--json")
    process = watch.stage.once(f"by-hand-{len(watch.stage.started)}", *arguments)

    async def ended() -> int | None:
        return process.code

    code = await watch.until(ended, f"the end of retriage {' '.join(arguments)}")
    said = process.out.read_text(encoding="utf-8")
    why = " / ".join(process.lines()[-3:])
    wanted(said.startswith("{"), f"retriage run ended with {code} and no answer: {why}")
    return {**json.loads(said), "code": code}
