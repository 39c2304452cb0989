"""How values stand in Redis: text as UTF-8, moments as whole milliseconds, models as JSON, large
and final ones packed."""

import lzma
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from ledger.errors import LedgerCorruptError

Model = TypeVar("Model", bound=BaseModel)

_XZ = b"\xfd7zXZ"
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 20}]


def text(value: bytes | str | None) -> str:
    """A reply as text; nothing is the empty text. What is no text survives, for ``raw``."""
    if value is None:
        return ""
    return value.decode(errors="surrogateescape") if isinstance(value, bytes) else value


def raw(value: str) -> bytes:
    """The bytes that ``text`` made this of."""
    return value.encode(errors="surrogateescape")


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


def packed_for_good(model: BaseModel) -> bytes:
    """The same for what is kept for long: a tenth to a fifth smaller, ten times as slow."""
    return lzma.compress(model.model_dump_json().encode(), check=lzma.CHECK_CRC32, filters=_FILTERS)


def unpacked(kind: type[Model], blob: bytes | str) -> Model:
    """Read ``packed`` or ``packed_for_good`` back. Raises LedgerCorruptError."""
    whole = blob.encode() if isinstance(blob, str) else blob
    try:
        json = lzma.decompress(whole) if whole.startswith(_XZ) else zlib.decompress(whole)
        return parsed(kind, json)
    except (zlib.error, lzma.LZMAError) as error:
        raise LedgerCorruptError(f"a stored {kind.__name__} cannot be unpacked") from error


def parsed(kind: type[Model], json: bytes | str) -> Model:
    """Read a model's JSON. Raises LedgerCorruptError."""
    try:
        return kind.model_validate_json(json)
    except ValidationError as error:
        raise LedgerCorruptError(f"a stored {kind.__name__} cannot be read: {error}") from error
