"""Files at the default branch or at a commit."""

from __future__ import annotations

from sandbox.github.call import Call
from sandbox.github.routing import Route
from sandbox.github.shapes import repositories as shape
from sandbox.github.wire import ApiError, Respond, not_found, respond_json


def get_contents(call: Call) -> Respond:
    """A file (base64, or itself when `raw` is accepted) or the entries of a folder."""
    repository = call.repository
    path = call.params["path"].strip("/")
    ref = call.query.get("ref") or repository.default_branch
    commit = shape.find_commit(repository, ref)
    if commit is None:
        raise ApiError(404, f"No commit found for the ref {ref}")
    text = commit.files.get(path)
    if text is None:
        entries = shape.content_directory(repository, path, ref, call.base)
        if not entries:
            raise not_found()
        return respond_json(200, entries)
    if "raw" in call.request.header("accept"):
        headers = {"content-type": "application/vnd.github.raw; charset=utf-8"}
        return Respond(200, headers, text.encode(errors="surrogatepass"))
    return respond_json(200, shape.content_file(repository, path, text, ref, call.base))


ROUTES = [Route("GET", "contents/{path*}", get_contents, "contents", in_repository=True)]
