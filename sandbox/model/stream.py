"""The Messages API's form of an answer: one JSON object, or server-sent events."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

PIECE = 4_000
"""Characters of one delta."""


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of an answer: text, or the call of a tool (``input`` is then set)."""

    text: str = ""
    tool: str = ""
    input: Any = None


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of the model."""

    id: str
    model: str
    blocks: tuple[Block, ...]
    input_tokens: int
    output_tokens: int

    @property
    def stop_reason(self) -> str:
        """Why it ends."""
        return "tool_use" if any(block.tool for block in self.blocks) else "end_turn"


def message(answer: Answer) -> dict[str, Any]:
    """The answer as one object."""
    return {
        **_envelope(answer),
        "content": [
            {**_opening(answer, index), **_content(block)}
            for index, block in enumerate(answer.blocks)
        ],
        "stop_reason": answer.stop_reason,
        "usage": {"input_tokens": answer.input_tokens, "output_tokens": answer.output_tokens},
    }


def events(answer: Answer) -> Iterator[bytes]:
    """The answer as server-sent events."""
    yield event("message_start", message=_envelope(answer))
    for index, block in enumerate(answer.blocks):
        yield event("content_block_start", index=index, content_block=_opening(answer, index))
        for delta in _deltas(block):
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    yield event(
        "message_delta",
        delta={"stop_reason": answer.stop_reason, "stop_sequence": None},
        usage={"output_tokens": answer.output_tokens},
    )
    yield event("message_stop")


def event(kind: str, **fields: Any) -> bytes:
    """One server-sent event."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def _envelope(answer: Answer) -> dict[str, Any]:
    return {
        "id": answer.id,
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": answer.input_tokens, "output_tokens": 1},
    }


def _opening(answer: Answer, index: int) -> dict[str, Any]:
    block = answer.blocks[index]
    if not block.tool:
        return {"type": "text", "text": ""}
    name = f"toolu_{answer.id.removeprefix('msg_')}_{index}"
    return {"type": "tool_use", "id": name, "name": block.tool, "input": {}}


def _content(block: Block) -> dict[str, Any]:
    return {"input": block.input} if block.tool else {"text": block.text}


def _deltas(block: Block) -> Iterator[dict[str, str]]:
    kind, field, text = (
        ("input_json_delta", "partial_json", json.dumps(block.input))
        if block.tool
        else ("text_delta", "text", block.text)
    )
    for start in range(0, len(text), PIECE):
        yield {"type": kind, field: text[start : start + PIECE]}
