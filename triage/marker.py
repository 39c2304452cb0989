"""Signed markers: how a body on GitHub proves which effect it is.

A marker is a hidden HTML comment on the first line of what the bot writes. It names the effect key,
the run and the digest of the intended body, and carries an HMAC-SHA256 over them.

Invariant: a marker is trusted only with a valid signature *and* an author that is or was the bot;
this module checks the first, its callers the second.
"""

import hashlib
import hmac
import re
from dataclasses import dataclass, field
from enum import StrEnum

BODY_LIMIT = 60_000
"""Characters of a body that the bot writes; GitHub refuses more than 65,536 (measured)."""

_ROOM = BODY_LIMIT - 500
"""What is left of a body beside the longest marker."""

_CUT = "\n\n(cut: too long for GitHub)"

_LINE = re.compile(
    r"<!-- retriage v1 kid=(?P<kid>[\w.-]{1,32}) effect=(?P<effect>[0-9a-f]{64}) "
    r"run=(?P<run>[\w.:-]{1,200}) body=(?P<digest>[0-9a-f]{64}) sig=(?P<sig>[0-9a-f]{64}) -->"
)
_TICKED = re.compile(r"^([^\S\n]*[-*+] )\[[xX]\]", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MarkerKey:
    """One signing key: its id and its secret bytes."""

    kid: str
    secret: bytes = field(repr=False)


class MalformedMarkerKeyError(ValueError):
    """MARKER_KEYS cannot be read."""


@dataclass(frozen=True, slots=True)
class MarkerKeys:
    """Signing keys, newest first: the first one signs, all of them verify."""

    keys: tuple[MarkerKey, ...]

    @classmethod
    def parse(cls, text: str) -> "MarkerKeys":
        """Read ``kid:hex[,kid:hex…]``. Raises MalformedMarkerKeyError, which quotes nothing: what
        stands before a colon may be a secret that was put in the wrong place."""
        keys: list[MarkerKey] = []
        parts = filter(None, (piece.strip() for piece in text.split(",")))
        for count, part in enumerate(parts, start=1):
            kid, _, secret = part.partition(":")
            if not re.fullmatch(r"[\w.-]{1,32}", kid):
                raise MalformedMarkerKeyError(
                    f"the id of key {count} must be 1 to 32 letters, digits, '.', '_', '-'"
                )
            if not re.fullmatch(r"([0-9a-fA-F]{2}){16,}", secret):
                raise MalformedMarkerKeyError(
                    f"the secret of key {count} must be at least 32 hex digits, an even number"
                )
            keys.append(MarkerKey(kid, bytes.fromhex(secret)))
        if not keys:
            raise MalformedMarkerKeyError("at least one kid:hex is needed")
        if len({key.kid for key in keys}) != len(keys):
            raise MalformedMarkerKeyError("a key id stands there twice")
        return cls(tuple(keys))


@dataclass(frozen=True, slots=True)
class Marker:
    """What a marker says."""

    effect_key: str
    run: str
    digest: str


class Signature(StrEnum):
    """What the first line of a body proves."""

    NONE = "none"
    VALID = "valid"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class Reading:
    """A body as read: its marker if it has one, and whether the rest is what the marker says."""

    signature: Signature
    marker: Marker | None = None
    body_digest: str = ""

    @property
    def edited_by_person(self) -> bool:
        """True where a valid marker stands above a body that it does not describe."""
        return (
            self.signature is Signature.VALID
            and self.marker is not None
            and self.marker.digest != self.body_digest
        )


UNMARKED = Reading(Signature.NONE)


def body_digest(body: str) -> str:
    """The SHA-256, in hex, of a body without its marker, with all task boxes unticked.

    Line ends and trailing white space do not count: GitHub's editor changes them.
    """
    lines = [line.rstrip() for line in body.replace("\r\n", "\n").split("\n")]
    text = _TICKED.sub(r"\1[ ]", "\n".join(lines).strip())
    return hashlib.sha256(text.encode()).hexdigest()


def cut(body: str) -> str:
    """A body that fits under its marker, and says so where it was cut. Cutting twice is cutting
    once: whoever compares digests cuts first."""
    return body if len(body) <= _ROOM else body[: _ROOM - len(_CUT)].rstrip() + _CUT


def stamp(body: str, *, effect_key: str, run: str, keys: MarkerKeys) -> str:
    """The body under its signed marker, at most BODY_LIMIT characters with the marker whole."""
    text = cut(body)
    marker = Marker(effect_key, run, body_digest(text))
    key = keys.keys[0]
    return (
        f"<!-- retriage v1 kid={key.kid} effect={marker.effect_key} run={marker.run} "
        f"body={marker.digest} sig={_sign(key, marker)} -->\n{text}"
    )


def read(body: str | None, keys: MarkerKeys) -> Reading:
    """What the first line of a body proves. A marker anywhere else is text."""
    first, _, rest = (body or "").replace("\r\n", "\n").partition("\n")
    found = _LINE.fullmatch(first.strip())
    if found is None:
        return UNMARKED
    marker = Marker(found["effect"], found["run"], found["digest"])
    key = next((key for key in keys.keys if key.kid == found["kid"]), None)
    if key is None or not hmac.compare_digest(_sign(key, marker), found["sig"]):
        return Reading(Signature.INVALID, marker, body_digest(rest))
    return Reading(Signature.VALID, marker, body_digest(rest))


def unmarked(body: str) -> str:
    """The body without its marker line."""
    first, _, rest = body.replace("\r\n", "\n").partition("\n")
    return rest if _LINE.fullmatch(first.strip()) else body


def intended_digest(stamped: str) -> str:
    """The digest that a stamped body's marker names. Raises ValueError where it bears none."""
    found = _LINE.match(stamped)
    if found is None:
        raise ValueError("the body bears no marker")
    return found["digest"]


def _sign(key: MarkerKey, marker: Marker) -> str:
    text = "\n".join(["retriage v1", key.kid, marker.effect_key, marker.run, marker.digest])
    return hmac.new(key.secret, text.encode(), hashlib.sha256).hexdigest()
