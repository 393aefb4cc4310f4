"""A small Kubernetes API server of the tests' own, for what a healthy one does not produce on demand: answers that
break off, watches that stall, repeat or expire, and clients that are told to come later.

Objects of any kind can be created, read, listed in pages, changed by merge patches, deleted and watched. What it does
by itself it does as a real API server: tests/real/kubernetes/test_fake_api.py runs the same cases over both. It has no
users, schemas or selectors.
"""

from __future__ import annotations

import asyncio
import base64
import json
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import unquote
from uuid import uuid4

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = "v1.36.3"
AGGREGATED, FIRST_AGGREGATED = "APIGroupDiscoveryList", 27
"""What a server answers that tells all its kinds at once, and its first minor version."""
FIRST_VERSION = 1000
TOO_OLD = "The resourceVersion for the provided watch is too old."
TOKEN_TOO_OLD = "The provided continue parameter is too old to display a consistent list result."
Object = dict[str, Any]


class Key(NamedTuple):
    """An object's place: `collection` is its kind's, such as `/apis/batch/v1/jobs`."""

    collection: str
    namespace: str
    name: str


class Event(NamedTuple):
    version: int
    kind: str
    key: Key
    object: Object


@dataclass
class Reply:
    """An answer instead of the server's own. `cut`: after so many bytes the connection ends, without a word. `hangs`:
    the answer never comes."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None
    hangs: bool = False

    @classmethod
    def come_later(cls, seconds: int) -> Reply:
        """What a busy API server says; its text is no JSON."""
        headers = {"Retry-After": str(seconds), "Content-Type": "text/plain; charset=utf-8"}
        return cls(429, b"Too many requests, please try again later.\n", headers)

    @classmethod
    def failure(cls, code: int, reason: str, message: str) -> Reply:
        """An API server's usual refusal."""
        return cls(code, json.dumps(failure(code, reason, message)).encode(), {"Content-Type": "application/json"})


class FakeApi:
    """`async with FakeApi() as api`: it serves at `api.address`, without TLS, until the block ends.

    requests: all that were received, as method and path with query; replies: answers by the beginning of these words,
    each given once, in order; broken: answers by the beginning of these words that are given again and again;
    repeats: how often each event of a watch is sent; kinds: the plural names, or kinds, that it serves by the version
    of their API group, such as `/apis/batch/v1`.
    """

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.replies: list[tuple[str, Reply]] = []
        self.broken: dict[str, Reply] = {}
        self.repeats = 1
        self.kinds: dict[str, tuple[str, ...]] = {}
        self.rules: list[Object] = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
        """What the user may do, in every namespace."""
        self.readable: tuple[str, ...] | None = None
        """The namespaces in which the user may list pods, an empty name for all; None: the next answers say so."""
        self.schemas: dict[str, Object] = {}
        """The OpenAPI documents that it publishes, by path."""
        self.version = VERSION
        self.stale: tuple[str, ...] = ()
        """Paths of groups of an extension server that does not answer: what it serves is left out."""
        self.unknown: tuple[str, ...] = ()
        self.behind: dict[str, FakeApi] = {}
        """Other servers by the paths of proxies to them."""
        self.address = ""
        self._objects: dict[Key, Object] = {}
        self._history: list[Event] = []
        self._version = FIRST_VERSION
        self._oldest = FIRST_VERSION
        self._watches: set[_Watch] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()

    async def __aenter__(self) -> Self:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0]
        self.address = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cut_watches()
        self._flowing.set()
        await self._runner.cleanup()

    # ── what a healthy server does not do ────────────────────────────────────────────────────────────────────────────

    def answer_next(self, request: str, reply: Reply) -> None:
        """Give this answer to the next request that begins so, such as `GET /api/v1/pods`, or with a space behind it
        that is this one."""
        self.replies.append((request, reply))

    def stall(self) -> None:
        """Send nothing more in watches, but keep them open."""
        self._flowing.clear()

    def go_on(self) -> None:
        self._flowing.set()

    def send_raw(self, line: bytes) -> None:
        """Write these bytes into all open watches."""
        for watch in self._watches:
            watch.raw.append(line)
            watch.woken.set()

    def send_bookmark(self, kind: str, version: str) -> None:
        """Say in all open watches, as a server does every minute, that nothing older will come."""
        metadata = {"resourceVersion": str(self._version), "creationTimestamp": None}
        self.send_raw(_line("BOOKMARK", {"kind": kind, "apiVersion": version, "metadata": metadata}))

    def cut_watches(self) -> None:
        """End all open watches in order, as a server does when it stops."""
        for watch in self._watches:
            watch.is_over = True
            watch.woken.set()

    def forget_past(self, *, end_watches: bool = False) -> None:
        """Forget the past: watches and pages that begin in it are answered with 410. `end_watches`: open ones get an
        ERROR line and end.
        """
        self._oldest = self._version
        if end_watches:
            self.send_raw(_line("ERROR", failure(410, "Expired", TOO_OLD)))
            self.cut_watches()

    @property
    def open_watches(self) -> int:
        return len(self._watches)

    # ── what every server does ───────────────────────────────────────────────────────────────────────────────────────

    def create(self, collection: str, content: Object) -> Object:
        """Create an object, as a POST to its collection, such as `/api/v1/namespaces/a/pods`, does."""
        key = _key(collection, content["metadata"]["name"])
        inside = {"namespace": key.namespace} if key.namespace else {}
        metadata = {**content["metadata"], **inside, "uid": str(uuid4()), "creationTimestamp": "2026-01-01T00:00:00Z"}
        return self._keep("ADDED", key, {**content, "metadata": metadata})

    def change(self, path: str, patch: Object) -> Object:
        """Merge a patch into an object."""
        key = _key(*path.rsplit("/", 1))
        return self._keep("MODIFIED", key, _merged(self._objects[key], patch))

    def find(self, path: str) -> Object | None:
        """Return an object as it is now; None: there is none."""
        return self._objects.get(_key(*path.rsplit("/", 1)))

    def object(self, path: str) -> Object:
        """Return an object as it is now."""
        return self._objects[_key(*path.rsplit("/", 1))]

    def remove(self, path: str) -> Object:
        key = _key(*path.rsplit("/", 1))
        removed = self._keep("DELETED", key, self._objects[key])
        del self._objects[key]
        return removed

    def _keep(self, kind: str, key: Key, content: Object) -> Object:
        self._version += 1
        kept = {**content, "metadata": {**content["metadata"], "resourceVersion": str(self._version)}}
        self._objects[key] = kept
        self._history.append(Event(self._version, kind, key, kept))
        for watch in self._watches:
            watch.woken.set()
        return kept

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        words = f"{request.method} {request.path_qs}"
        self.requests.append(words)
        if (proxied := await self._proxied(request)) is not None:
            return proxied
        if (reply := self._reply_to(f"{words} ")) is not None:
            return await _send(request, reply)
        path = unquote(request.path)
        if path in (documents := {"/version": {"gitVersion": self.version}, **self.schemas}):
            return _tagged(request, documents[path])
        if path == "/apis":
            return self._groups(request)
        if path.count("/") == (2 if path.startswith("/api/") else 3) and not _is_collection(path):
            return self._group(path)
        if path.endswith("/selfsubjectaccessreviews") and self.readable is not None:
            asked = (await request.json())["spec"]["resourceAttributes"].get("namespace", "")
            return web.json_response({"status": {"allowed": asked in self.readable}}, status=201)
        if path.endswith("/selfsubjectrulesreviews"):
            return web.json_response({"status": {"resourceRules": self.rules, "incomplete": False}})
        if request.method == "POST":
            return self._created(path, self._known(await request.json()), is_dry="dryRun" in request.query)
        if request.method == "GET" and _is_collection(path):
            is_watch = request.query.get("watch") in ("1", "true")
            return await self._watch(request, path) if is_watch else self._page(request, path)
        return await self._one(request, path)

    def _reply_to(self, words: str) -> Reply | None:
        """The answer that a test has given for this request; None: it has given none."""
        for number, (beginning, reply) in enumerate(self.replies):
            if words.startswith(beginning):
                del self.replies[number]
                return reply
        return next((reply for beginning, reply in self.broken.items() if words.startswith(beginning)), None)

    async def _proxied(self, request: web.Request) -> web.StreamResponse | None:
        """The answer of a server behind a proxy; None: another request."""
        for prefix, other in self.behind.items():
            if request.path.startswith(f"{prefix}/"):
                return await other._handle(request.clone(rel_url=request.path_qs.removeprefix(prefix)))
        return None

    async def _one(self, request: web.Request, path: str) -> web.Response:
        """Answer a request about one object."""
        head, _, name = path.rpartition("/")
        key = _key(head, name)
        if key not in self._objects:
            why = failure(404, "NotFound", f'{_resource(head)} "{name}" not found')
            return web.json_response({**why, "details": {"name": name}}, status=404)
        if request.method == "GET":
            return web.json_response(self._objects[key])
        if request.method == "DELETE":
            return web.json_response(self.remove(path))
        return self._patched(path, self._objects[key], self._known(await request.json()))

    def _known(self, content: Object) -> Object:
        """Drop the unknown fields of what a client has written."""
        for path in self.unknown:
            *above, last = path.split(".")
            holder = content
            for name in above:
                holder = holder.get(name, {})
            holder.pop(last, None)
        return content

    def _groups(self, request: web.Request) -> web.Response:
        """All kinds in one answer (aggregated discovery), or only the groups, as a server before 1.27 tells them."""
        served = [path.removeprefix("/apis/").split("/") for path in self.kinds if path.startswith("/apis/")]
        if int(self.version.split(".")[1]) < FIRST_AGGREGATED or AGGREGATED not in request.headers["Accept"]:
            names = [{"name": group, "versions": [{"version": version}]} for group, version in served]
            return web.json_response({"kind": "APIGroupList", "groups": names})
        items = [
            {"metadata": {"name": group}, "versions": [self._version_of_group(group, version)]}
            for group, version in served
        ]
        return _tagged(request, {"kind": AGGREGATED, "items": items})

    def _version_of_group(self, group: str, version: str) -> Object:
        path = f"/apis/{group}/{version}"
        if path in self.stale:
            return {"version": version, "freshness": "Stale"}
        names = [_served(name)["name"] for name in self.kinds[path]]
        resources = [{"resource": name} for name in names if "/" not in name]
        return {"version": version, "freshness": "Current", "resources": resources}

    def _group(self, path: str) -> web.Response:
        """The kinds of one version of an API group."""
        if path not in self.kinds:
            return web.Response(status=404, text="404 page not found\n")
        resources = [_served(name) for name in self.kinds[path]]
        version = path.removeprefix("/apis/").removeprefix("/api/")
        return web.json_response({"kind": "APIResourceList", "groupVersion": version, "resources": resources})

    def _created(self, path: str, content: Object, *, is_dry: bool) -> web.Response:
        given = content["metadata"]
        # Of a name that the server is to complete, it adds five characters.
        name = given.get("name") or f"{given['generateName']}{uuid4().hex[:5]}"
        content = {**content, "metadata": {**given, "name": name}}
        if _key(path, name) in self._objects:
            return _refusal(409, "AlreadyExists", f'{_resource(path)} "{name}" already exists')
        return web.json_response(content if is_dry else self.create(path, content), status=201)

    def _patched(self, path: str, present: Object, patch: Object) -> web.Response:
        own, meant = present["metadata"]["uid"], patch.get("metadata", {}).get("uid")
        if meant not in (None, own):
            kind, name = present["kind"], present["metadata"]["name"]
            wrong = f'metadata.uid: Invalid value: "{meant}": field is immutable'
            return _refusal(422, "Invalid", f'{kind} "{name}" is invalid: {wrong}')
        expected = patch.get("metadata", {}).get("resourceVersion")
        if expected not in (None, present["metadata"]["resourceVersion"]):
            message = "the object has been modified; please apply your changes to the latest version and try again"
            return _refusal(409, "Conflict", message)
        return web.json_response(self.change(path, patch))

    def _page(self, request: web.Request, path: str) -> web.Response:
        """A list, or its next page. With `resourceVersion=0` a server answers from its memory, and whole."""
        limit = int(request.query.get("limit") or 0)
        token = request.query.get("continue", "")
        version, after = _read_token(token) if token else (self._version, "")
        if version < self._oldest:
            return _refusal(410, "Expired", TOKEN_TOO_OLD)
        if request.query.get("resourceVersion") == "0":
            limit = 0
        keys = sorted(key for key in self._objects if _is_in(key, path) and f"{key.namespace}/{key.name}" > after)
        page = keys[:limit] if limit else keys
        metadata: Object = {"resourceVersion": str(version)}
        if len(page) < len(keys):
            metadata["continue"] = _token(version, page[-1])
            metadata["remainingItemCount"] = len(keys) - len(page)
        items = [self._objects[key] for key in page]
        return web.json_response({"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items})

    async def _watch(self, request: web.Request, path: str) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        since = int(request.query.get("resourceVersion") or 0)
        watch = _Watch(position=len(self._history))
        if not since:
            watch.raw = [_line("ADDED", self._objects[key]) for key in sorted(self._objects) if _is_in(key, path)]
        elif since < self._oldest:
            watch.raw = [_line("ERROR", failure(410, "Expired", TOO_OLD))]
            watch.is_over = True
        else:
            watch.position = sum(event.version <= since for event in self._history)
        self._watches.add(watch)
        seconds = request.query.get("timeoutSeconds")
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(float(seconds) if seconds else None):
                await self._stream(response, watch, path)
        self._watches.discard(watch)
        return response

    async def _stream(self, response: web.StreamResponse, watch: _Watch, path: str) -> None:
        """Send events as they come until the watch is over."""
        while True:
            await self._flowing.wait()
            for event in self._history[watch.position :]:
                watch.position += 1
                if _is_in(event.key, path):
                    watch.raw += [_line(event.kind, event.object)] * self.repeats
            while watch.raw:
                await response.write(watch.raw.pop(0))
            if watch.is_over:
                return
            watch.woken.clear()
            await watch.woken.wait()


class _Watch:
    """One open watch. position: of the next event in the history; raw: lines to be sent before it."""

    def __init__(self, position: int) -> None:
        self.position = position
        self.raw: list[bytes] = []
        self.woken = asyncio.Event()
        self.is_over = False


def failure(code: int, reason: str, message: str) -> Object:
    """A `Status` object of a failure."""
    about = {"metadata": {}, "status": "Failure", "message": message, "reason": reason, "code": code}
    return {"kind": "Status", "apiVersion": "v1", **about}


def _tagged(request: web.Request, content: Object) -> web.Response:
    """Answer what seldom changes, and without a body where the client knows it already."""
    body = json.dumps(content).encode()
    tag = f'"{zlib.crc32(body):08X}"'
    if request.headers.get("If-None-Match") == tag:
        return web.Response(status=304, headers={"ETag": tag})
    return web.Response(body=body, content_type="application/json", headers={"ETag": tag})


async def _send(request: web.Request, reply: Reply) -> web.StreamResponse:
    if reply.hangs:
        await asyncio.Event().wait()
    if reply.cut is None:
        return web.Response(status=reply.status, body=reply.body, headers=reply.headers)
    response = web.StreamResponse(status=reply.status, headers=reply.headers)
    response.content_length = len(reply.body)
    await response.prepare(request)
    await response.write(reply.body[: reply.cut])
    assert request.transport is not None
    request.transport.close()
    return response


def _refusal(code: int, reason: str, message: str) -> web.Response:
    return web.json_response(failure(code, reason, message), status=code)


def _line(kind: str, content: Object) -> bytes:
    return json.dumps({"type": kind, "object": content}).encode() + b"\n"


def _split(path: str) -> tuple[str, str]:
    """A collection's path without its namespace, and that."""
    parts = path.split("/")
    if len(parts) >= 3 and parts[-3] == "namespaces":
        return "/".join([*parts[:-3], parts[-1]]), parts[-2]
    return path, ""


def _served(name: str) -> Object:
    """A line of discovery, for `jobs` or for `Job`."""
    if name[0].islower():
        return {"name": name, "namespaced": True}
    return {"name": f"{name.lower()}s", "kind": name, "namespaced": True}


def _key(collection: str, name: str) -> Key:
    return Key(*_split(collection), name)


def _resource(path: str) -> str:
    """What messages call a collection: its plural, and its group if it has one."""
    parts = path.split("/")
    return f"{parts[-1]}.{parts[2]}" if parts[1] == "apis" else parts[-1]


def _is_collection(path: str) -> bool:
    """Tell a collection's path from an object's by its number of parts after the API's version."""
    after_version = path.strip("/").split("/")[2 if path.startswith("/api/") else 3 :]
    return len(after_version) % 2 == 1


def _is_in(key: Key, path: str) -> bool:
    collection, namespace = _split(path)
    return key.collection == collection and namespace in ("", key.namespace)


def _token(version: int, key: Key) -> str:
    return base64.urlsafe_b64encode(json.dumps([version, f"{key.namespace}/{key.name}"]).encode()).decode()


def _read_token(token: str) -> tuple[int, str]:
    version, after = json.loads(base64.urlsafe_b64decode(token))
    return version, after


def _merged(content: Any, patch: Any) -> Any:
    """Return the content as a JSON merge patch changes it."""
    if not isinstance(patch, dict):
        return patch
    kept = dict(content) if isinstance(content, dict) else {}
    for name, value in patch.items():
        if value is None:
            kept.pop(name, None)
        else:
            kept[name] = _merged(kept.get(name), value)
    return kept
