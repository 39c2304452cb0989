"""How values stand in Redis: text as UTF-8, moments as whole milliseconds, models as JSON."""

import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from ledger.errors import LedgerCorruptError

Model = TypeVar("Model", bound=BaseModel)


def text(value: bytes | str | None) -> str:
    """A reply as text; nothing is the empty text."""
    if value is None:
        return ""
    return value.decode() if isinstance(value, bytes) else value


def texts(fields: Mapping[bytes, bytes]) -> dict[str, str]:
    """A hash as text."""
    return {text(name): text(value) for name, value in fields.items()}


def paired(flat: list[bytes]) -> dict[str, str]:
    """A hash as a script returns it: names and values in turn."""
    return {text(name): text(value) for name, value in zip(flat[::2], flat[1::2], strict=True)}


def stamp(moment: datetime) -> int:
    """A moment in milliseconds since 1970."""
    return round(moment.timestamp() * 1000)


def moment(stamp: str | bytes | float) -> datetime:
    """Milliseconds since 1970 as an aware moment, UTC."""
    return datetime.fromtimestamp(float(stamp) / 1000, UTC)


def moment_or_none(stamp: str) -> datetime | None:
    """The same, where nothing and zero mean never."""
    return moment(stamp) if stamp not in ("", "0") else None


def packed(model: BaseModel) -> bytes:
    """A large model, compact."""
    return zlib.compress(model.model_dump_json().encode())


def unpacked(kind: type[Model], blob: bytes | str) -> Model:
    """Read ``packed`` back. Raises LedgerCorruptError."""
    try:
        return parsed(kind, zlib.decompress(blob.encode() if isinstance(blob, str) else blob))
    except zlib.error as error:
        raise LedgerCorruptError(f"a stored {kind.__name__} cannot be unpacked") from error


def parsed(kind: type[Model], json: bytes | str) -> Model:
    """Read a model's JSON. Raises LedgerCorruptError."""
    try:
        return kind.model_validate_json(json)
    except ValidationError as error:
        raise LedgerCorruptError(f"a stored {kind.__name__} cannot be read: {error}") from error
