"""The sandbox's model as a reviewer and as a watcher: it reads, finds, remembers, and forgets."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from sandbox.model import Misbehaviour, ModelServer
from sandbox.model.faults import RULES, faults_in
from tests.sandbox.naive_client import NaiveClient

FIELDS: dict[str, object] = {"review_id": {}, "verdict": {}, "findings": {}}
RECALL: dict[str, object] = {"previous_review_id": {}, "previous_finding_ids": {}, "resolved": {}}
FIRST = {"properties": FIELDS}
FOLLOW_UP = {"properties": FIELDS | RECALL}
READERS = ("Read", "Glob", "Grep")

SHAPES = {
    "eval": "def run(text):\n    return eval(text)\n",
    "sql": 'def find(name):\n    return db.execute(f"SELECT * FROM people WHERE name = {name}")\n',
    "password": 'DATABASE_PASSWORD = "correct-horse"\n',
    "shell": 'os.system("rm " + name)\n',
    "swallowed": "try:\n    send()\nexcept:\n    pass\n",
    "off-by-one": "for n in range(len(rows) + 1):\n    show(rows[n])\n",
    "default": "def add(row, rows=[]):\n    rows.append(row)\n",
    "none": "if row == None:\n    raise KeyError\n",
    "todo": "# TODO: remove before release\ndebug = True\n",
}
SOUND = """\
def run(text, rows=None):
    if rows is None:
        rows = []
    for n in range(len(rows)):
        db.execute("SELECT * FROM people WHERE name = ?", (rows[n],))
    try:
        return literal_eval(text)
    except ValueError:
        return os.environ["DATABASE_PASSWORD"]
"""


@pytest.fixture(scope="module")
def running() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def server(running: ModelServer) -> ModelServer:
    running.reset()
    return running


def client(server: ModelServer, root: Path, schema: Mapping[str, Any] = FIRST) -> NaiveClient:
    def model(body: Mapping[str, Any]) -> Mapping[str, Any]:
        answer = httpx.post(f"{server.url}/v1/messages", json=body, timeout=5)
        return dict(answer.json())

    return NaiveClient(model, root, schema, READERS)


def prompt(root: Path, nonce: str, last: Mapping[str, Any] | None = None) -> str:
    """A prompt in the documented form."""
    known = [
        f"===== LAST REVIEW {nonce} BEGIN =====",
        json.dumps(last),
        f"===== LAST REVIEW {nonce} END =====",
    ]
    names = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    return "\n".join(
        [
            'Repository: "acme/api"',
            *(known if last else []),
            f"===== FILES {nonce} BEGIN =====",
            *(json.dumps(name) for name in names),
            f"===== FILES {nonce} END =====",
        ]
    )


def planted(root: Path, *names: str) -> Path:
    """A repository with one file for each fault that is named, and a sound one."""
    for name in names:
        (root / f"{name}.py").write_text(SHAPES[name])
    (root / "sound.py").write_text(SOUND)
    (root / "notes.md").write_text("\n".join(SHAPES.values()))
    return root


def places(answer: Mapping[str, Any]) -> dict[str, int]:
    return {finding["file"]: finding["line"] for finding in answer["findings"]}


def test_every_rule_has_its_shape_and_its_sound_twin() -> None:
    """Each shape is found by its own rule alone; sound code and prose hold none."""
    assert {rule.name for rule in RULES} == SHAPES.keys()
    for name, text in SHAPES.items():
        assert [fault.rule.name for fault in faults_in("a.py", text)] == [name]
    assert faults_in("a.py", SOUND) == []
    assert faults_in("a.md", "\n".join(SHAPES.values())) == []
    said = [words for rule in RULES for words in rule.words]
    assert len(set(said)) == len(said) == 3 * len(RULES)


def test_first_review_lists_reads_and_finds(server: ModelServer, tmp_path: Path) -> None:
    """Glob, then every file in few turns, then one finding for each fault that was planted."""
    session = client(server, planted(tmp_path, *SHAPES))
    answer = session.ask(prompt(tmp_path, "n1"))
    assert session.calls[0] == ("Glob", {"pattern": "**/*"})
    assert session.steps == [1, 10, 1, 1]
    assert places(answer) == {
        **{f"{name}.py": 1 for name in SHAPES},
        "eval.py": 2,
        "sql.py": 2,
        "swallowed.py": 3,
    }
    assert answer["verdict"] == "concerns"
    grave = [finding["severity"] for finding in answer["findings"]]
    assert grave == sorted(grave, key=["high", "medium", "low"].index)


def test_nothing_wrong_is_ok(server: ModelServer, tmp_path: Path) -> None:
    """A verdict without findings."""
    answer = client(server, planted(tmp_path)).ask(prompt(tmp_path, "n1"))
    assert (answer["verdict"], answer["findings"]) == ("ok", [])


def test_words_and_ids_vary_from_session_to_session(server: ModelServer, tmp_path: Path) -> None:
    """Two reviews of the same code agree on the places, and on hardly anything else."""
    planted(tmp_path, *SHAPES)
    first, second = (
        client(server, tmp_path).ask(prompt(tmp_path, nonce)) for nonce in ("n1", "n2")
    )
    assert places(first) == places(second)
    assert first["review_id"] != second["review_id"]
    for field in ("id", "summary"):
        assert {item[field] for item in first["findings"]} != {
            item[field] for item in second["findings"]
        }


def test_listing_that_is_cut_is_completed_from_the_prompt(
    server: ModelServer, tmp_path: Path
) -> None:
    """The reviewer reads a hundred files and no more, in eleven turns before its answer."""
    for n in range(120):
        (tmp_path / f"m{n:03}.py").write_text(SHAPES["none"])
    session = client(server, tmp_path)
    answer = session.ask(prompt(tmp_path, "n1"))
    assert session.steps == [1, *[10] * 10, 1]
    assert len(answer["findings"]) == 50


def again(session: NaiveClient, root: Path, nonce: str) -> dict[str, Any]:
    session.schema = FOLLOW_UP
    return session.ask(prompt(root, nonce))


def test_resumed_review_recalls_and_compares(server: ModelServer, tmp_path: Path) -> None:
    """One fixed, one moved by three lines, one new: each is what it is, and the link holds."""
    session = client(server, planted(tmp_path, "eval", "password", "none"))
    first = session.ask(prompt(tmp_path, "n1"))
    ids = {item["file"]: item["id"] for item in first["findings"]}
    (tmp_path / "eval.py").write_text("def run(text):\n    return int(text)\n")
    (tmp_path / "none.py").write_text(f"import a\n\n\n{SHAPES['none']}")
    (tmp_path / "todo.py").write_text(SHAPES["todo"])
    session.calls.clear()
    second = again(session, tmp_path, "n2")
    assert session.calls[0] == ("Glob", {"pattern": "**/*"})
    assert second["previous_review_id"] == first["review_id"]
    assert set(second["previous_finding_ids"]) == set(ids.values())
    assert second["resolved"] == [ids["eval.py"]]
    now = {item["file"]: item["id"] for item in second["findings"]}
    assert now.keys() == {"password.py", "none.py", "todo.py"}
    assert (now["password.py"], now["none.py"]) == (ids["password.py"], ids["none.py"])
    assert now["todo.py"] not in ids.values()
    assert places(second)["none.py"] == 4


def test_two_of_a_kind_in_one_file_are_told_apart(server: ModelServer, tmp_path: Path) -> None:
    """The one that is fixed is resolved, not its neighbour."""
    file = tmp_path / "a.py"
    file.write_text("x == None\n\n\n\n\n\ny == None\n")
    session = client(server, tmp_path)
    first = session.ask(prompt(tmp_path, "n1"))
    upper, lower = (item["id"] for item in first["findings"])
    file.write_text("x is None\n\n\n\n\ny == None\n")
    second = again(session, tmp_path, "n2")
    assert second["resolved"] == [upper]
    assert [item["id"] for item in second["findings"]] == [lower]


def test_conversation_that_lost_the_answer_cannot_be_recalled(
    server: ModelServer, tmp_path: Path
) -> None:
    """Without its former answer the reviewer has nothing to copy, and makes nothing up."""
    session = client(server, planted(tmp_path, "eval"))
    session.ask(prompt(tmp_path, "n1"))
    del session.messages[-2:]
    second = again(session, tmp_path, "n2")
    assert (second["previous_review_id"], second["previous_finding_ids"]) == ("", [])
    assert (second["resolved"], len(second["findings"])) == ([], 1)


def test_truncated_conversation_recalls_an_earlier_review(
    server: ModelServer, tmp_path: Path
) -> None:
    """What is copied is what the conversation holds: of three reviews, the first."""
    session = client(server, planted(tmp_path, "eval"))
    first = session.ask(prompt(tmp_path, "n1"))
    kept = len(session.messages)
    second = again(session, tmp_path, "n2")
    assert second["previous_review_id"] == first["review_id"]
    del session.messages[kept:]
    third = again(session, tmp_path, "n3")
    assert third["previous_review_id"] == first["review_id"] != second["review_id"]


def test_findings_of_the_prompt_are_compared_in_a_new_session(
    server: ModelServer, tmp_path: Path
) -> None:
    """Memory ``findings``: the last answer is fed back, whoever wrote its words."""
    planted(tmp_path, "eval")
    known = {"severity": "high", "line": 1}
    last = {
        "review_id": "r-17",
        "findings": [
            {"id": "a", "file": "eval.py", "summary": "Executes what it is given.", **known},
            {"id": "b", "file": "gone.py", "summary": "A credential stands in the code.", **known},
        ],
    }
    answer = client(server, tmp_path, FOLLOW_UP).ask(prompt(tmp_path, "n1", last))
    assert answer["previous_review_id"] == "r-17"
    assert answer["previous_finding_ids"] == ["a", "b"]
    assert answer["resolved"] == ["b"]
    assert [item["id"] for item in answer["findings"]] == ["a"]


@pytest.mark.parametrize(
    ("kind", "review_known", "recalled"),
    [
        (Misbehaviour.FORGET, False, 0),
        (Misbehaviour.MISREMEMBER, False, 0),
        (Misbehaviour.DROP_FINDING, True, 1),
        (Misbehaviour.RENAME_FINDINGS, True, 2),
    ],
)
def test_memory_goes_wrong_on_demand(
    server: ModelServer, tmp_path: Path, kind: Misbehaviour, review_known: bool, recalled: int
) -> None:
    """Nothing, wrong ids, one finding less, or other ids for the same findings."""
    session = client(server, planted(tmp_path, "eval", "none"))
    first = session.ask(prompt(tmp_path, "n1"))
    known = {item["id"] for item in first["findings"]}
    server.misbehave(kind)
    second = again(session, tmp_path, "n2")
    assert (second["previous_review_id"] == first["review_id"]) is review_known
    assert len(known & set(second["previous_finding_ids"])) == recalled
    assert places(second) == places(first)
    kept = known & {item["id"] for item in second["findings"]}
    assert len(kept) == (1 if kind is Misbehaviour.DROP_FINDING else 0)
    assert bool(second["previous_finding_ids"]) is (kind is not Misbehaviour.FORGET)


def test_answers_of_reviews_go_wrong_like_others(server: ModelServer, tmp_path: Path) -> None:
    """Markup in the words, or a form that the schema refuses."""
    planted(tmp_path, "eval")
    server.misbehave(Misbehaviour.MARKUP)
    answer = client(server, tmp_path).ask(prompt(tmp_path, "n1"))
    assert "@everyone" in answer["findings"][0]["summary"]
    server.reset()
    server.misbehave(Misbehaviour.OUTSIDE_SCHEMA)
    assert client(server, tmp_path).ask(prompt(tmp_path, "n1"))["findings"] == "none"


CHANGES: dict[str, object] = {"properties": {"changes": {}}}


def watched(*entries: Mapping[str, Any]) -> str:
    lines = [json.dumps({"address": "https://example.com", **entry}) for entry in entries]
    return "\n".join(["===== CHANGES n1 BEGIN =====", *lines, "===== CHANGES n1 END ====="])


def test_watcher_says_one_sentence_for_each_resource(server: ModelServer, tmp_path: Path) -> None:
    """From entries, from a difference, from two texts; without a link or a mention."""
    session = client(server, tmp_path, CHANGES)
    answer = session.ask(
        watched(
            {"name": "feed", "added": ["9.1.3: security fix, see @maintainer"], "removed": []},
            {"name": "page", "difference": "@@ -1 +1 @@\n-Port 80.\n+Port 8080. http://e.com"},
            {"name": "text", "old": "Version 1.2\nThe end.", "new": "The end."},
        )
    )
    assert answer["changes"] == [
        {
            "name": "feed",
            "summary": "New: 9.1.3: security fix, see maintainer.",
            "importance": "high",
        },
        {"name": "page", "summary": "New: Port 8080.", "importance": "low"},
        {"name": "text", "summary": "Gone: Version 1.2.", "importance": "medium"},
    ]
    assert session.calls == []
