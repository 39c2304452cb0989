"""The story: a window triaged, run again, asked for twice at once, cut off by a kill; a command.

And a run in each status. Each step fails the demo unless GitHub's own state shows what it should.
"""

from dataclasses import dataclass

from cli.demo import scene
from cli.demo.mishaps import Mishaps
from cli.demo.stage import BOT, Stage
from cli.demo.telling import Row, Tale
from cli.demo.watching import Watch, wanted, writes
from cli.demo.ways_in import Entrance, by_hand
from sandbox.github.seen import SeenIssue
from sandbox.model import Misbehaviour
from triage.contract import RunRecord, Status


@dataclass
class Story:
    """The steps, in order. ``mishaps`` are armed."""

    watch: Watch
    entrance: Entrance
    tale: Tale
    mishaps: Mishaps
    installation: int = 0

    @property
    def stage(self) -> Stage:
        """What it is played on."""
        return self.watch.stage

    async def play(self) -> None:
        """All of it. Raises StepError."""
        with self.tale.step("a signed webhook: the App is installed, the receiver takes it"):
            await self._install()
        with self.tale.step("cron and the clock ask for the same window: one run, a dozen issues"):
            first = await self._first_window()
        with self.tale.step("a worker is killed (SIGKILL) when GitHub has its comment"):
            await self._killed()
        with self.tale.step("the same window again, by hand: reused, nothing written"):
            await self._again(first)
        with self.tale.step("/retriage on an issue: its one comment is edited, once"):
            await self._command()
        with self.tale.step("a run in each of the other statuses"):
            await self._statuses()
        with self.tale.step("the window of the killed worker: taken over, completed"):
            await self._taken_over()
        with self.tale.step("no duplicate, no incident"):
            await self._sum(first)

    # --- The steps ------------------------------------------------------------------------------

    async def _install(self) -> None:
        self.installation = scene.install(self.stage.github, [scene.MAIN, scene.KILLED])
        delivery = await self.entrance.delivered("installation", "created")
        wanted(delivery.status == 202, f"the receiver answered {delivery.status}")
        await self.entrance.known(scene.MAIN)

    async def _first_window(self) -> RunRecord:
        await self.entrance.ring(scene.MAIN)
        await self._second_worker()
        run = await self.watch.settled(scene.MAIN)
        self._is(run, Status.COMPLETED)
        runs = await self._run_keys()
        wanted(len(runs) == 1, f"{len(runs)} runs of one window")
        plan = await self.watch.ledger.runs.plan(run.inputs.dedupe_key)
        held = {item.number for item in plan.held} if plan else set()
        issues = self._issues(scene.MAIN)
        for issue in issues:
            comments = len(self.watch.comments(scene.MAIN, issue.number))
            most = int(issue.number not in held)
            seen = f"issue {issue.number} has {comments} comments, labels {issue.labels}"
            wanted((comments, len(issue.labels)) == (most, most), seen)
        summaries = [each for each in self.stage.github.issues(scene.MAIN) if each.author == BOT]
        wanted(len(summaries) == 1, f"{len(summaries)} summary issues")
        done = f"{len(issues)} issues: {len(issues) - len(held)} labelled and commented"
        self._row(run, f"{done}, {len(held)} held; the summary issue")
        return run

    async def _second_worker(self) -> None:
        """Ask for the same run at the command line, while a worker executes it."""

        async def begun() -> RunRecord | None:
            return await self.watch.run(scene.MAIN)

        run = await self.watch.until(begun, f"a run of {scene.MAIN}")
        answer = await by_hand(self.watch, run.inputs.repository, run.key.window)
        self.mishaps.second_refused.set()
        wanted((answer["outcome"], answer["code"]) == ("refused", 99), f"it was {answer}")
        self.tale.counts["workers_refused"] = 1
        self.tale.proved("Two workers at once on one run: one wrote, one was refused.")

    async def _killed(self) -> None:
        async def look() -> str | None:
            return self.mishaps.killed or None

        await self.watch.until(look, f"the kill of the worker at {scene.KILLED}")

    async def _again(self, first: RunRecord) -> None:
        """Meanwhile the model refuses its key to another repository."""
        self.stage.model.misbehave(Misbehaviour.UNAUTHORIZED, sessions=1)
        self._cover(scene.UNASKED, scene.QUIET)
        self.tale.counts["writes_again"] = await self._reused(first)
        self.tale.proved("The same window again, by hand: 0 writes.")
        refused = await self.watch.settled(scene.UNASKED)
        self._is(refused, Status.FAILED_BEFORE_WRITE)
        self._row(refused, "the model refused its key (401): nothing was written")

    async def _reused(self, run: RunRecord) -> int:
        """The same window by hand; the writes that it made, which are none."""
        mark, repository = self.watch.mark(), run.inputs.repository
        answer = await by_hand(self.watch, repository, run.key.window)
        made = writes(self.watch.requests(repository, after=mark))
        seen = f"{answer['outcome']}, exit code {answer['code']}, {made} writes"
        wanted((answer["outcome"], answer["code"], made) == ("reused", 0, 0), seen)
        wanted(not answer["drift"], f"GitHub differs: {answer['drift'][:3]}")
        return made

    async def _command(self) -> None:
        """The reporter says more, so that the decision changes; then asks for it again."""
        github, issue = self.stage.github, self._question()
        self._cover(scene.UNSEEN, scene.TAMPERED)
        title = "Please add support for a timezone in `created_after`"
        github.as_user(scene.REPORTER).edit_issue(scene.MAIN, issue, title=title, body="A wish.")
        before = self.watch.comments(scene.MAIN, issue)
        mark = self.watch.mark()
        comment = github.as_user(scene.MAINTAINER).comment(scene.MAIN, issue, "/retriage")
        run = await self.watch.settled(scene.MAIN, f"comment-{comment}")
        self._is(run, Status.COMPLETED)
        after = self.watch.comments(scene.MAIN, issue)
        same = [each.id for each in before] == [each.id for each in after]
        wanted(same and len(after) == 1, f"{len(after)} comments of the bot, it had {len(before)}")
        wanted(before[0].body != after[0].body, "the comment was not edited")
        wanted(github.labels(scene.MAIN, issue) == ["enhancement"], "the label was not changed")
        reactions = await self._reactions(issue, comment)
        self._row(run, f"/retriage: {reactions}, the one comment edited in place", after=mark)
        await self._redelivered(comment)

    def _question(self) -> int:
        issues = self.stage.github.issues(scene.MAIN)
        return next(each.number for each in issues if "created_after" in each.title)

    async def _reactions(self, issue: int, comment: int) -> str:
        async def look() -> set[str] | None:
            comments = self.stage.github.comments(scene.MAIN, issue)
            own = next(each.reactions for each in comments if each.id == comment)
            given = {each.removesuffix(f" {BOT}") for each in own if each.endswith(f" {BOT}")}
            return given if given == {"eyes", "+1"} else None

        await self.watch.until(look, "👀 and 👍 on the command")
        return "👀 👍"

    async def _redelivered(self, comment: int) -> None:
        told = f'"id":{comment},'.encode()
        first = await self.entrance.delivered("issue_comment", "created", told)
        wanted(first.status == 202, f"the receiver answered {first.status}")
        mark, runs = self.watch.mark(), await self._run_keys()
        again = self.stage.github.webhooks.redeliver(first.guid)

        async def answered() -> int | None:
            return again.status

        status = await self.watch.until(answered, "an answer to the redelivery")
        made = writes(self.watch.requests(scene.MAIN, after=mark))
        wanted(status == 200 and made == 0, f"it was answered {status}, {made} writes followed")
        wanted(await self._run_keys() == runs, "a run was started")
        self.tale.proved("/retriage delivered twice: one run, one comment, edited in place.")

    async def _run_keys(self) -> set[str]:
        runs = await self.watch.ledger.runs.listed(repository=scene.MAIN)
        return {run.inputs.dedupe_key for run in runs}

    async def _statuses(self) -> None:
        for repository, status, shows in (
            (scene.QUIET, Status.NO_CHANGE, "people had sorted everything: nothing to write"),
            (
                scene.UNSEEN,
                Status.FAILED_AFTER_WRITE,
                "GitHub answered 502 to a comment: sent again only if five reads miss it",
            ),
            (
                scene.TAMPERED,
                Status.NEEDS_REVIEW,
                "somebody changed the signature of the bot's comment: a person decides",
            ),
        ):
            run = await self.watch.settled(repository)
            self._is(run, status)
            self._row(run, shows)

    async def _taken_over(self) -> None:
        """The lease has to lapse, and the lock delay to pass: the clock waits for that."""
        patience = 3 * (self.stage.bounds.lease + self.stage.bounds.lock_delay)
        run = await self.watch.settled(scene.KILLED, seconds=patience)
        self._is(run, Status.COMPLETED)
        wanted(len(run.attempts) > 1, "it was completed by the attempt that was to be killed")
        comments = [
            len(self.watch.comments(scene.KILLED, issue.number))
            for issue in self._issues(scene.KILLED)
        ]
        self.tale.counts["comments_after_kill"] = max(comments)
        wanted(set(comments) == {1}, f"its issues have {comments} comments")
        self._row(run, f"{self.mishaps.killed} was killed (SIGKILL) within it, another went on")
        await self._reused(run)
        self.tale.proved("Killed between the comment and its record, then again: 1 comment.")

    async def _sum(self, first: RunRecord) -> None:
        tale = self.tale
        tale.counts["duplicates"] = self.watch.duplicates()
        tale.counts["incidents"] = await self.watch.incidents()
        row = next(row for row in tale.rows if row.run.inputs == first.inputs)
        issues = len(self._issues(scene.MAIN))
        tale.counts["github_requests_per_issue"] = round(row.requests / issues, 2)
        tale.counts["github_requests"] = len(self.watch.requests())
        tale.counts["agent_sessions"] = self.stage.model.counts["sessions"]
        found = f"{tale.counts['duplicates']} duplicates, {tale.counts['incidents']} incidents"
        wanted(found == "0 duplicates, 0 incidents", found)
        tale.proved("0 duplicates, 0 incidents, counted from GitHub's state and from the ledger.")

    # --- Parts ----------------------------------------------------------------------------------

    def _issues(self, repository: str) -> list[SeenIssue]:
        """Those that people opened."""
        return [each for each in self.stage.github.issues(repository) if each.author != BOT]

    def _cover(self, *names: str) -> None:
        self.stage.github.cover(self.installation, add=names)

    def _is(self, run: RunRecord, status: Status) -> None:
        reason = f": {run.reason}" if run.reason else ""
        seen = f"{run.inputs.repository} is {run.status}, not {status}{reason}"
        wanted(run.status is status, seen)

    def _row(self, run: RunRecord, shows: str, *, after: int = 0) -> None:
        requests = self.watch.requests(run.inputs.repository, after=after)
        self.tale.rows.append(Row(run, writes(requests), len(requests), shows))
        self.tale.rows.sort(key=lambda row: scene.SHOWN.index(row.run.inputs.repository))
