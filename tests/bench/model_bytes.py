"""Bytes to and from the model per issue: in batches, and with a session for each issue.

The same issues are asked about both ways, side by side, by the real SDK with its CLI. The bytes are
those that the scripted model's server received and sent for ``/v1/messages``: the CLI's own prompt
and the schema of the answer are in them, once a session.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import anyio

from sandbox import issues_csv
from sandbox.model.server import ModelServer
from tests.bench import Options
from tests.bench.stage import LONG_AGO, made_up_issues
from worker.agent import ClaudeAgent
from worker.ports import AgentRequest, IssueText

LABELS: Final = {"bug": "It does not work", "enhancement": "Something new", "question": "Asks how"}


def measure(options: Options) -> dict[str, object]:
    """The demo's 24 issues, and 40 short ones."""
    demo = [(row.title, row.body) for row in issues_csv.load(issues_csv.DEMO)]
    sets = {"demo": demo[:2] if options.quick else demo}
    if not options.quick:
        sets["short"] = made_up_issues(40)
    with ModelServer() as model:
        return {name: anyio.run(_both_ways, model, issues) for name, issues in sets.items()}


async def _both_ways(model: ModelServer, issues: Sequence[tuple[str, str]]) -> dict[str, object]:
    agent = ClaudeAgent(model=None, api_key="any", base_url=model.url)
    texts = [
        IssueText(number, title, body, "reporter", (), datetime.fromisoformat(LONG_AGO))
        for number, (title, body) in enumerate(issues, 1)
    ]
    batched = await _asked(model, agent, agent.batches(texts))
    alone = await _asked(model, agent, [(text,) for text in texts])
    ratio = alone["bytes_in_per_issue"] / batched["bytes_in_per_issue"]
    return {
        "issues": len(texts),
        "characters_of_issues": sum(len(text.title) + len(text.body) for text in texts),
        "in_batches": batched,
        "one_session_each": alone,
        "times_as_many_bytes_in": round(ratio, 2),
    }


async def _asked(
    model: ModelServer, agent: ClaudeAgent, sessions: Sequence[tuple[IssueText, ...]]
) -> dict[str, int]:
    model.reset()
    decided = 0
    for issues in sessions:
        answer = await agent.decide(
            AgentRequest("acme/api", issues, LABELS, (tuple(LABELS),), None, 40, 2.0)
        )
        decided += len(answer.decisions)
    counts = model.counts
    return {
        "sessions": counts["sessions"],
        "decisions": decided,
        "bytes_in_per_issue": round(counts["bytes_in"] / decided),
        "bytes_out_per_issue": round(counts["bytes_out"] / decided),
    }
