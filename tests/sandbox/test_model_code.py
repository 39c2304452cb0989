"""The sandbox's model with a checkout: it names the component and the files of an issue."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from sandbox.model import ModelServer
from tests.sandbox.naive_client import NaiveClient

FIELDS: dict[str, object] = {"labels": {"items": {"enum": ["bug"]}}}
PLACES: dict[str, object] = {"component": {}, "files": {}}
READERS = ("Read", "Glob", "Grep")


def schema(fields: Mapping[str, object]) -> dict[str, object]:
    return {"properties": {"decisions": {"items": {"properties": fields}}}}


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in {
        "lib/parser.py": "def parse(): ...\n# the parser\n",
        "lib/lexer.py": "# feeds the parser\n",
        "web/server.py": "PORT = 80\n# the server\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def client(
    server: ModelServer, root: Path, fields: Mapping[str, object], tools: tuple[str, ...]
) -> NaiveClient:
    def model(body: Mapping[str, Any]) -> Mapping[str, Any]:
        return dict(httpx.post(f"{server.url}/v1/messages", json=body, timeout=5).json())

    return NaiveClient(model, root, schema(fields), tools)


def prompt(*titles: str) -> str:
    issues = [{"number": n, "title": title, "body": ""} for n, title in enumerate(titles, 1)]
    lines = [json.dumps(issue) for issue in issues]
    return "\n".join(["===== ISSUES n1 BEGIN =====", *lines, "===== ISSUES n1 END ====="])


def test_files_are_found_by_the_words_of_the_title(server: ModelServer, root: Path) -> None:
    """One turn of searches for all issues, one that looks into the best files, then the answer."""
    session = client(server, root, FIELDS | PLACES, READERS)
    titles = ("The parser crashes", "The server crashes on start", "Nowhere to be found")
    first, second, third = session.ask(prompt(*titles))["decisions"]
    assert session.steps == [3, 2, 1]
    assert (first["component"], first["files"]) == ("lib", ["lib/parser.py", "lib/lexer.py"])
    assert (second["component"], second["files"]) == ("web", ["web/server.py"])
    assert (third["component"], third["files"]) == ("", [])
    assert first["labels"] == ["bug"]


def test_nothing_is_looked_up_unless_it_is_asked_for(server: ModelServer, root: Path) -> None:
    """Tools alone do not make it read, and the answer has no more fields than the schema."""
    session = client(server, root, FIELDS, READERS)
    (decision,) = session.ask(prompt("The parser crashes"))["decisions"]
    assert session.calls == []
    assert "component" not in decision


def test_without_tools_the_place_is_unknown(server: ModelServer, root: Path) -> None:
    """The form is kept."""
    session = client(server, root, FIELDS | PLACES, ())
    (decision,) = session.ask(prompt("The parser crashes"))["decisions"]
    assert session.calls == []
    assert (decision["component"], decision["files"]) == ("", [])
