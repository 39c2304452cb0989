"""The prompts and schemas in real sessions: the client takes them, the model works by them."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sandbox.model import ModelServer
from triage.plan import VERDICT_LIMIT
from worker import prompt, review_prompt, watch_prompt
from worker.agent import ClaudeAgent
from worker.ports import AgentRequest, IssueText
from worker.ports.agent import SessionAnswer, SessionRequest

READERS = ("Read", "Glob", "Grep")
CODE = {
    "src/run.py": "def run(text):\n    return eval(text)\n",
    "src/parser.py": "# the parser\nif row == None:\n    raise KeyError\n",
    "docs/an odd näme.md": "# Nothing\n",
}


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def root(tmp_path: Path) -> Path:
    checkout = tmp_path.resolve() / "checkout"
    for name, text in CODE.items():
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text(text)
    return checkout


def agent(model: ModelServer, tmp_path: Path) -> ClaudeAgent:
    folder = tmp_path / "sessions"
    folder.mkdir()
    return ClaudeAgent(model=None, api_key="k", base_url=model.url, folder=folder)


def ask(
    model: ModelServer,
    tmp_path: Path,
    system: str,
    text: str,
    schema: Mapping[str, object],
    root: Path | None = None,
) -> SessionAnswer:
    tools = READERS if root else ()
    request = SessionRequest(system, text, schema, 20, 1.0, tools, root)
    return asyncio.run(agent(model, tmp_path).ask(request))


def tree() -> review_prompt.Tree:
    return review_prompt.Tree("acme/api", "c" * 40, sorted(CODE), {})


def test_first_review(model: ModelServer, tmp_path: Path, root: Path) -> None:
    """Both faults are found, with nothing denied."""
    answer = ask(
        model,
        tmp_path,
        review_prompt.COLD_SYSTEM_PROMPT,
        review_prompt.first(tree(), "n1"),
        review_prompt.schema(follow_up=False),
        root,
    )
    assert answer.output["verdict"] == "concerns"
    assert json.dumps(answer.output).count('"file"') == 2
    assert answer.denials == ()


def test_review_with_the_last_findings(model: ModelServer, tmp_path: Path, root: Path) -> None:
    """What is gone is resolved, what is there keeps its id, what is new has its own."""
    known = [
        review_prompt.Known("a", "src/run.py", 9, "high", "Input is evaluated as code."),
        review_prompt.Known("b", "src/gone.py", 1, "low", "Compares with None."),
    ]
    last = review_prompt.LastReview("r-1", known)
    output = ask(
        model,
        tmp_path,
        review_prompt.FINDINGS_SYSTEM_PROMPT,
        review_prompt.with_findings(tree(), last, "n1"),
        review_prompt.schema(follow_up=True),
        root,
    ).output
    assert (output["previous_review_id"], output["previous_finding_ids"]) == ("r-1", ["a", "b"])
    assert output["resolved"] == ["b"]
    findings = output["findings"]
    assert isinstance(findings, list)
    assert findings[0]["id"] == "a"
    assert len(findings) == 2


def test_review_that_is_to_resume_nothing(model: ModelServer, tmp_path: Path, root: Path) -> None:
    """The schema takes the honest answer of a session that holds no review."""
    output = ask(
        model,
        tmp_path,
        review_prompt.RESUMED_SYSTEM_PROMPT,
        review_prompt.resumed(tree(), "n1"),
        review_prompt.schema(follow_up=True),
        root,
    ).output
    assert (output["previous_review_id"], output["previous_finding_ids"]) == ("", [])


def test_watch(model: ModelServer, tmp_path: Path) -> None:
    """One change for each resource, without any tool."""
    changes = [
        watch_prompt.Changed("feed", "https://f.example", ("1.1",), ("1.1", "1.2: Security fix.")),
        watch_prompt.Changed("page", "https://p.example", "Port 80.", "Port 8080."),
    ]
    output = ask(
        model,
        tmp_path,
        watch_prompt.SYSTEM_PROMPT,
        watch_prompt.render(changes, "en", "n1"),
        watch_prompt.schema(["feed", "page"]),
    ).output
    assert output["changes"] == [
        {"name": "feed", "summary": "New: 1.2: Security fix.", "importance": "high"},
        {"name": "page", "summary": "New: Port 8080.", "importance": "low"},
    ]


def test_triage_with_code(model: ModelServer, tmp_path: Path, root: Path) -> None:
    """The component and the files are those of the checkout."""
    moment = datetime(2026, 9, 16, tzinfo=UTC)
    issue = IssueText(7, "The parser crashes", "It does.", "octocat", (), moment)
    labels = {"bug": "Something that should work does not"}
    request = AgentRequest("acme/api", (issue,), labels, (), None, 6, 1.0, root)
    (decision,) = asyncio.run(agent(model, tmp_path).decide(request)).decisions
    assert (decision["component"], decision["files"]) == ("src", ["src/parser.py"])
    assert len(str(decision["verdict"])) <= VERDICT_LIMIT
    assert prompt.CODE_SYSTEM_PROMPT in json.dumps(
        model.requests[-1].body["system"], ensure_ascii=False
    ).replace("\\n", "\n").replace('\\"', '"')
