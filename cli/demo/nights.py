"""The nightly review, four nights of one repository: a baseline, a session that goes on elsewhere,
a session that forgets, and a new beginning."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from cli.demo import scene
from cli.demo.processes import stop
from cli.demo.stage import BOT, Stage
from cli.demo.telling import Row, Tale
from cli.demo.watching import Watch, wanted, writes
from cli.demo.ways_in import Entrance, by_hand
from sandbox.github import GitHub
from sandbox.model import Misbehaviour
from triage.contract import RunRecord, Status
from triage.findings import ColdFor, Finding, FindingState, Review, Start
from triage.identifiers import JobKey

NAME: Final = "acme/shop"
NIGHTS: Final = 4

_POLICY = """\
jobs:
  nightly-repo-review:
    schedule: {every: daily, at: "%s", timezone: UTC}
    mode: comment
    memory: resume
"""

_PLANTED: Final[Mapping[str, str]] = {
    "shop/prices.py": "def price(rule):\n    return eval(rule)\n",
    "shop/orders.py": "def orders(db, user):\n"
    '    return db.execute(f"select * from orders where user = {user}")\n',
    "shop/mail.py": "def send(smtp, mail):\n    try:\n        smtp.send(mail)\n"
    "    except Exception:\n        pass\n",
    "README.md": "# Shop\n",
}
_FIX: Final = {
    "shop/orders.py": "def orders(db, user):\n"
    '    return db.execute("select * from orders where user = ?", [user])\n'
}
_ADDED: Final = {
    "shop/stock.py": "def total(items):\n    total = 0\n"
    "    for index in range(len(items) + 1):\n        total += items[index]\n    return total\n"
}


def build(github: GitHub) -> None:
    """One repository with three planted faults."""
    github.add_repository(NAME)
    github.put_file(NAME, ".github/retriage.yml", _POLICY % f"{scene.due_at():%H:%M}")
    _push(github, _PLANTED)


def _push(github: GitHub, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        github.put_file(NAME, path, text)


@dataclass
class Nights:
    """The steps, in order."""

    watch: Watch
    entrance: Entrance
    tale: Tale

    @property
    def stage(self) -> Stage:
        """What it is played on."""
        return self.watch.stage

    async def play(self) -> None:
        """All of it. Raises StepError."""
        with self.tale.step("a signed webhook: the App is installed, the receiver takes it"):
            scene.install(self.stage.github, [NAME])
            await self.entrance.known(NAME)
        with self.tale.step("the first night: a cold review finds what was planted"):
            first = await self._baseline()
        with self.tale.step("one fault is fixed, a new file comes; another worker takes over"):
            await self._another_worker()
        with self.tale.step("the second night: the session goes on there, one resolved, one new"):
            second = await self._resumed()
        with self.tale.step("the same night again, by hand: nothing asked, nothing written"):
            await self._again(second)
        with self.tale.step("the third night: the session has forgotten, and that is seen"):
            await self._broken()
        with self.tale.step("the fourth night: a new session begins, the findings keep their ids"):
            await self._cold_again(first)
        with self.tale.step("one issue, no duplicate, no incident"):
            await self._sum()

    # --- The steps ------------------------------------------------------------------------------

    async def _baseline(self) -> Review:
        run, review = await self._night(1)
        found = [finding.file for finding in review.of(FindingState.NEW)]
        planted = ["shop/mail.py", "shop/orders.py", "shop/prices.py"]
        wanted(sorted(found) == planted, f"it found faults in {found}")
        self._row(run, f"cold: {len(found)} planted faults found, verdict {review.verdict}")
        return review

    async def _another_worker(self) -> None:
        """The first worker's folders are of no use to the second."""
        [worker] = self.stage.named("worker")
        self.stage.lasting.discard(worker.name)
        stop([worker])
        _push(self.stage.github, {**_FIX, **_ADDED})
        folder = self.stage.folder.path / "elsewhere"
        for name in ("tmp", "home"):
            (folder / name).mkdir(parents=True)
        self.stage.start(
            "other-worker",
            "worker",
            TMPDIR=str(folder / "tmp"),
            HOME=str(folder / "home"),
            RETRIAGE_DATA_DIR=str(folder / "data"),
            RETRIAGE_CHECKOUT_DIR=str(folder / "checkouts"),
        )
        await self.watch.told("other-worker", "WORKER-STARTED")

    async def _resumed(self) -> RunRecord:
        run, review = await self._night(2)
        counts = {state: len(review.of(state)) for state in FindingState}
        seen = ", ".join(f"{count} {state}" for state, count in counts.items())
        wanted(seen == "1 new, 2 still there, 0 not seen this time, 1 resolved", f"it says {seen}")
        link = review.link
        wanted(link is not None and not link.broken, f"the link is {link}")
        line = await self.watch.told("other-worker", "RESUME-LINK ", "same_session=true")
        wanted("recalled_findings=3/3" in line, line)
        self._start(run, Start.RESUMED)
        self.tale.counts["resume_link"] = str(link)
        self.tale.counts["second_night"] = {str(state): count for state, count in counts.items()}
        self._row(run, f"resumed on another worker: {seen}")
        self.tale.proved(f"The second night knew the first: {link}.")
        return run

    async def _again(self, run: RunRecord) -> None:
        mark, before = self.watch.mark(), self.stage.model.counts["requests"]
        answer = await by_hand(self.watch, NAME, run.key.window, job=JobKey.REVIEW)
        made = writes(self.watch.requests(NAME, after=mark))
        asked = self.stage.model.counts["requests"] - before
        seen = (answer["outcome"], answer["code"], made, asked)
        wanted(seen == ("reused", 0, 0, 0), f"outcome, code, writes and questions are {seen}")
        self.tale.counts["writes_again"] = made
        self.tale.proved("The same night again: 0 writes, 0 requests to the model.")

    async def _broken(self) -> None:
        self.stage.model.misbehave(Misbehaviour.FORGET, sessions=1)
        run, review = await self._night(3)
        link = review.link
        wanted(link is not None and link.broken, f"the link is {link}")
        await self.watch.told("other-worker", "RESUME-LINK-BROKEN")
        await self.watch.told("other-worker", "SESSION-CLEARED")
        wanted("**Not continuous:**" in self._page(), "the issue does not say so")
        self._row(run, "RESUME-LINK-BROKEN: not continuous, said on the issue; session cleared")
        self.tale.proved("A session that forgets is seen, said, and given up.")

    async def _cold_again(self, first: Review) -> None:
        run, review = await self._night(4)
        self._start(run, Start.COLD, ColdFor.BROKEN)
        kept = _ids(first.findings) & _ids(review.of(FindingState.STILL))
        wanted(len(kept) == 2, f"{len(kept)} of the first night's findings have their ids")
        self._row(run, "cold again: the findings have the ids of the first night")

    async def _sum(self) -> None:
        self.tale.counts |= {
            "duplicates": self.watch.duplicates(),
            "incidents": await self.watch.incidents(),
            "agent_sessions": self.stage.model.counts["sessions"],
            "issues": len(self._pages()),
        }
        counts = self.tale.counts
        found = f"{counts['issues']} issue, {counts['duplicates']} duplicates, " + (
            f"{counts['incidents']} incidents"
        )
        wanted(found == "1 issue, 0 duplicates, 0 incidents", found)
        self.tale.proved("One issue for four nights, edited in place; no duplicate, no incident.")

    # --- Parts ----------------------------------------------------------------------------------

    async def _night(self, number: int) -> tuple[RunRecord, Review]:
        """A window, by cron, oldest first; its run and what it found."""
        window = f"{scene.due_at() - timedelta(days=NIGHTS - number):%Y-%m-%d}"
        await self.entrance.ring(NAME, job=JobKey.REVIEW, window=window)
        run = await self.watch.settled(NAME, window)
        reason = f": {run.reason}" if run.reason else ""
        wanted(run.status is Status.COMPLETED, f"the run is {run.status}{reason}")
        plan = await self.watch.ledger.runs.plan(run.inputs.dedupe_key)
        if plan is None or plan.review is None:
            wanted(holds=False, why="the run has no review")
            raise AssertionError
        return run, plan.review

    def _start(self, run: RunRecord, start: Start, why: ColdFor | None = None) -> None:
        taken = run.snapshot_summary.review if run.snapshot_summary is not None else None
        seen = (taken.start, taken.why) if taken is not None else None
        wanted(seen == (start, why), f"it started {seen}")

    def _pages(self) -> list[str]:
        return [each.body for each in self.stage.github.issues(NAME) if each.author == BOT]

    def _page(self) -> str:
        return "".join(self._pages())

    def _row(self, run: RunRecord, shows: str) -> None:
        requests = self.watch.requests(NAME)
        before = sum(row.requests for row in self.tale.rows)
        wrote = sum(row.writes for row in self.tale.rows)
        made = Row(run, writes(requests) - wrote, len(requests) - before, shows)
        self.tale.rows.append(made)


def _ids(findings: tuple[Finding, ...]) -> set[str]:
    return {finding.id for finding in findings}
