"""What a JSON Schema says of a document: as much of the standard as the policy's schema uses."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

TYPES: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}
WORDS = {
    *("$ref", "$defs", "$schema", "anyOf", "type", "enum", "const"),
    *("properties", "required", "additionalProperties", "propertyNames"),
    *(
        "minProperties",
        "maxProperties",
        "items",
        "minItems",
        "maxItems",
        "pattern",
        "minLength",
        "maxLength",
    ),
    *("minimum", "maximum", "exclusiveMinimum", "title", "description", "default"),
}


def problems(schema: Mapping[str, Any], value: Any, where: str = "") -> list[str]:
    """Each thing that is wrong, as ``path: word of the schema``."""
    return list(_check(schema, value, where, schema.get("$defs", {})))


def _check(
    schema: Mapping[str, Any], value: Any, where: str, defs: Mapping[str, Any]
) -> Iterator[str]:
    assert schema.keys() <= WORDS, schema.keys() - WORDS
    if "$ref" in schema:
        yield from _check(defs[schema["$ref"].removeprefix("#/$defs/")], value, where, defs)
    branches = schema.get("anyOf", ())
    if branches and all(list(_check(branch, value, where, defs)) for branch in branches):
        yield f"{where}: anyOf"
    named = schema.get("type")
    if named and not _is(value, named):
        yield f"{where}: type"
        return
    yield from (f"{where}: {word}" for word in _bounds(schema, value))
    if isinstance(value, list):
        for n, item in enumerate(value):
            yield from _check(schema.get("items", {}), item, f"{where}.{n}", defs)
    if isinstance(value, dict):
        yield from _members(schema, value, where, defs)


def _is(value: Any, named: str) -> bool:
    return isinstance(value, TYPES[named]) and isinstance(value, bool) is (named == "boolean")


def _bounds(schema: Mapping[str, Any], value: Any) -> Iterator[str]:
    size = len(value) if isinstance(value, (str, dict, list)) else 0
    broken: dict[str, Callable[[Any], bool]] = {
        "enum": lambda limit: value not in limit,
        "const": lambda limit: value != limit,
        "pattern": lambda limit: re.search(limit, str(value)) is None,
        "minLength": lambda limit: size < limit,
        "maxLength": lambda limit: size > limit,
        "minItems": lambda limit: size < limit,
        "maxItems": lambda limit: size > limit,
        "minProperties": lambda limit: size < limit,
        "maxProperties": lambda limit: size > limit,
        "minimum": lambda limit: value < limit,
        "maximum": lambda limit: value > limit,
        "exclusiveMinimum": lambda limit: value <= limit,
    }
    return (word for word, breaks in broken.items() if word in schema and breaks(schema[word]))


def _members(
    schema: Mapping[str, Any], value: Mapping[str, Any], where: str, defs: Mapping[str, Any]
) -> Iterator[str]:
    missing = [name for name in schema.get("required", ()) if name not in value]
    yield from (f"{where}.{name}: required" for name in missing)
    for name, item in value.items():
        path = f"{where}.{name}"
        yield from _check(schema.get("propertyNames", {}), name, path, defs)
        others = schema.get("additionalProperties", {})
        known = schema.get("properties", {}).get(name, others)
        if known is False:
            yield f"{path}: additionalProperties"
        elif known is not True:
            yield from _check(known, item, path, defs)
