"""The issues of a file in one window: its requests and sessions; then the same window again."""

from dataclasses import dataclass

from cli.demo import scene
from cli.demo.stage import BOT, Stage
from cli.demo.telling import Row, Tale, counted
from cli.demo.watching import Watch, wanted, writes
from cli.demo.ways_in import Entrance, by_hand
from triage.contract import RunRecord, Status

FEWEST_OF_A_SESSION = 20
"""Issues of one session of the model, where there are as many."""

ASKED_AGAIN = 1
"""Sessions more, for issues whose text gives instructions."""


def most_requests(issues: int) -> int:
    """Requests to GitHub for a window of so many issues, all told: two writes each are the floor,
    and reading them back in pages of a hundred must not cost much more."""
    return 2 * issues + 4 * -(-issues // 100) + 15


@dataclass
class Backlog:
    """``issues`` of the repository ``name``, in one window."""

    watch: Watch
    entrance: Entrance
    tale: Tale
    name: str
    issues: int

    @property
    def stage(self) -> Stage:
        """What it is played on."""
        return self.watch.stage

    async def play(self) -> None:
        """All of it. Raises StepError."""
        with self.tale.step("a signed webhook: the App is installed, the receiver takes it"):
            await self._install()
        with self.tale.step(f"a window of {counted(self.issues, 'issue')}, by cron"):
            run = await self._window()
            self._count(run)
        with self.tale.step("the same window again, by hand: reused, nothing written"):
            await self._again(run)
        with self.tale.step("no duplicate, no incident"):
            await self._sum()
        with self.tale.step("the requests and sessions that it took are within their bounds"):
            self._within("github_requests", "requests to GitHub")
            self._within("agent_sessions", "sessions of the model")

    async def _install(self) -> None:
        scene.install(self.stage.github, [self.name])
        delivery = await self.entrance.delivered("installation", "created")
        wanted(delivery.status == 202, f"the receiver answered {delivery.status}")
        await self.entrance.known(self.name)

    async def _window(self) -> RunRecord:
        await self.entrance.ring(self.name)
        run = await self.watch.settled(self.name, seconds=120 + 2 * self.issues)
        reason = f": {run.reason}" if run.reason else ""
        wanted(run.status is Status.COMPLETED, f"the run is {run.status}{reason}")
        return run

    def _count(self, run: RunRecord) -> None:
        requests = self.watch.requests()
        sessions = self.stage.model.counts["sessions"]
        most_sessions = max(1, self.issues // FEWEST_OF_A_SESSION) + ASKED_AGAIN
        made = writes(requests)
        shows = f"{counted(self.issues, 'issue')} in {counted(sessions, 'session')} of the model"
        self.tale.rows.append(Row(run, made, len(requests), shows))
        triaged = sum(
            len(self.watch.comments(self.name, issue.number)) == 1
            for issue in self.stage.github.issues(self.name)
            if issue.author != BOT and issue.labels
        )
        most = most_requests(self.issues)
        self.tale.counts |= {
            "issues": self.issues,
            "issues_triaged": triaged,
            "github_requests": len(requests),
            "github_requests_bound": most,
            "github_requests_per_issue": round(len(requests) / self.issues, 3),
            "agent_sessions": sessions,
            "agent_sessions_bound": most_sessions,
        }
        self.tale.proved(
            f"{counted(self.issues, 'issue')}, {len(requests)} requests to GitHub of {most} "
            f"allowed: {len(requests) / self.issues:.2f} per issue, {made} of them writes."
        )
        held = self.issues - triaged
        self.tale.proved(f"{triaged} labelled and commented, {held} held for a person.")
        self.tale.proved(f"{counted(sessions, 'session')} of the model, {most_sessions} allowed.")

    async def _again(self, run: RunRecord) -> None:
        mark = self.watch.mark()
        answer = await by_hand(self.watch, self.name, run.key.window)
        made = writes(self.watch.requests(after=mark))
        self.tale.counts["writes_again"] = made
        seen = f"{answer['outcome']}, exit code {answer['code']}, {made} writes"
        wanted((answer["outcome"], answer["code"], made) == ("reused", 0, 0), seen)
        wanted(not answer["drift"], f"GitHub differs: {answer['drift'][:3]}")
        self.tale.proved("The same window again: 0 writes.")

    async def _sum(self) -> None:
        duplicates, incidents = self.watch.duplicates(), await self.watch.incidents()
        self.tale.counts |= {"duplicates": duplicates, "incidents": incidents}
        found = f"{duplicates} duplicates, {incidents} incidents"
        wanted(found == "0 duplicates, 0 incidents", found)
        self.tale.proved("0 duplicates, 0 incidents, counted from GitHub's state and the ledger.")

    def _within(self, name: str, what: str) -> None:
        seen, most = self.tale.counts[name], self.tale.counts[f"{name}_bound"]
        wanted(seen <= most, f"{seen} {what}, {most} are allowed")
