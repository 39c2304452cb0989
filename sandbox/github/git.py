"""Repositories as git serves them over HTTP: for reading, by the real ``git upload-pack``.

GitHub's answers: 401 asks for credentials where nobody may read; what the caller may not see is
not there; a former name redirects; pushing is refused.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from urllib.parse import quote, urlencode

from sandbox.github.auth import Kind
from sandbox.github.call import Call, can_read
from sandbox.github.routing import Route
from sandbox.github.wire import ApiError, Respond

SERVICE = "git-upload-pack"
ASK = {"www-authenticate": 'Basic realm="GitHub"'}


def advertise(call: Call) -> Respond:
    """``GET /OWNER/NAME.git/info/refs?service=git-upload-pack``."""
    folder = _readable(call, "/info/refs")
    if call.query.get("service") != SERVICE:
        raise ApiError(403, "Only git-upload-pack is served")
    refs = _upload_pack(call, folder, "--advertise-refs")
    head = f"# service={SERVICE}\n"
    body = b"%04x%s0000" % (len(head) + 4, head.encode()) + refs
    return Respond(200, {"content-type": f"application/x-{SERVICE}-advertisement"}, body)


def upload_pack(call: Call) -> Respond:
    """``POST /OWNER/NAME.git/git-upload-pack``."""
    folder = _readable(call, f"/{SERVICE}")
    sent = call.request.body
    if call.request.header("content-encoding") == "gzip":
        sent = gzip.decompress(sent)
    body = _upload_pack(call, folder, send=sent)
    return Respond(200, {"content-type": f"application/x-{SERVICE}-result"}, body)


def _readable(call: Call, rest: str) -> Path:
    """Where the repository is. Raises ApiError where the caller may not read it."""
    name, suffix = call.params["git"][:-4], call.params["git"][-4:]
    full_name = f"{call.params['owner']}/{name}"
    found = call.world.repositories.get(call.world.names.get(full_name.lower(), -1))
    if suffix != ".git":
        raise ApiError(404, "Not Found")
    if call.caller.kind is Kind.ANONYMOUS and (found is None or found.private):
        raise ApiError(401, "Repository not found.", headers=ASK)
    if found is None or not can_read(call.world, call.caller, found):
        raise ApiError(404, "Repository not found.")
    if found.private and not _may_read_contents(call):
        raise ApiError(403, "Write access to repository not granted.")
    if found.full_name.lower() != full_name.lower():
        place = f"{call.base}/{quote(found.full_name)}.git{rest}?{urlencode(call.query)}"
        raise ApiError(301, "Moved Permanently", headers={"location": place})
    return call.world.git.folder(found)


def _may_read_contents(call: Call) -> bool:
    token = call.caller.token
    return token is None or token.installation is None or "contents" in token.permissions


def _upload_pack(call: Call, folder: Path, *options: str, send: bytes = b"") -> bytes:
    command = ("upload-pack", "--stateless-rpc", *options, str(folder))
    return call.world.git.serve(*command, send=send, protocol=call.request.header("git-protocol"))


ROUTES = [
    Route("GET", "/{owner}/{git}/info/refs", advertise, free=True),
    Route("POST", f"/{{owner}}/{{git}}/{SERVICE}", upload_pack, free=True, reads=True),
]
