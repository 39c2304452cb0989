"""A client of the model that has no boundary at all: it runs whatever tool the model calls.

It is what stands between a model and a machine when nothing does. Its Read, Glob and Grep answer in
the form of the real client's; its Bash knows ``env``, ``cat`` and nothing that changes anything.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Model = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""The Messages API: a request's body in, the message out."""

MOST_STEPS = 40


@dataclass(slots=True)
class NaiveClient:
    """One session. ``files`` are what is found outside ``root``, by absolute path."""

    model: Model
    root: Path
    schema: Mapping[str, Any]
    tools: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    system: str = ""
    messages: list[dict[str, Any]] = field(default_factory=list)
    calls: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    """How many tools each answer of the model called."""

    def ask(self, prompt: str) -> dict[str, Any]:
        """Send a prompt, run what the model calls, and give its answer."""
        self.messages.append({"role": "user", "content": prompt})
        for _ in range(MOST_STEPS):
            content = self.model(self._body())["content"]
            self.messages.append({"role": "assistant", "content": content})
            uses = [block for block in content if block["type"] == "tool_use"]
            assert uses, content
            self.steps.append(len(uses))
            results = [self._result(use) for use in uses]
            self.messages.append({"role": "user", "content": results})
            for use in uses:
                if use["name"] == "StructuredOutput":
                    return dict(use["input"])
        raise AssertionError(f"no answer in {MOST_STEPS} steps")

    def _body(self) -> dict[str, Any]:
        offered = [{"name": name, "input_schema": {}} for name in self.tools]
        return {
            "model": "claude-test",
            "system": self.system,
            "tools": [*offered, {"name": "StructuredOutput", "input_schema": self.schema}],
            "messages": self.messages,
        }

    def _result(self, use: Mapping[str, Any]) -> dict[str, Any]:
        given = use["input"]
        result = {"type": "tool_result", "tool_use_id": use["id"]}
        if use["name"] == "StructuredOutput":
            return {**result, "content": "Structured output provided successfully"}
        self.calls.append((use["name"], given))
        brought = self._run(use["name"], given)
        if brought is None:
            return {**result, "content": "It did not work.", "is_error": True}
        return {**result, "content": brought}

    def _run(self, tool: str, given: Mapping[str, Any]) -> str | None:
        match tool:
            case "Read":
                text = self._text(str(given["file_path"]))
                return None if text is None else _numbered(text)
            case "Glob":
                return "\n".join(self._names()) or "No files found"
            case "Grep":
                return self._grep(str(given["pattern"]))
            case "Bash":
                return self._bash(str(given["command"]))
            case _:
                return "Done."

    def _bash(self, command: str) -> str | None:
        if command.split()[:1] in (["env"], ["printenv"]):
            return self.files.get("/proc/self/environ", "")
        if cat := re.match(r"cat (\S+)", command):
            return self._text(cat[1])
        return "Done."

    def _grep(self, pattern: str) -> str:
        found = [name for name in self._names() if re.search(pattern, self._text(name) or "")]
        return "\n".join([f"Found {len(found)} files", *found]) if found else "No files found"

    def _text(self, name: str) -> str | None:
        if name in self.files:
            return self.files[name]
        path = self.root / name
        return path.read_text(errors="replace") if path.is_file() else None

    def _names(self) -> list[str]:
        paths = (path for path in self.root.rglob("*") if path.is_file())
        return sorted(str(path.relative_to(self.root)) for path in paths)


def _numbered(text: str) -> str:
    return "\n".join(f"{n}\t{line}" for n, line in enumerate(text.split("\n"), start=1))
