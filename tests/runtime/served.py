"""A real engine behind its real socket, in a thread: journal on disk, no containers. And clients that misbehave."""

from __future__ import annotations

import asyncio
import contextlib
import io
import socket
import struct
import threading
from typing import TYPE_CHECKING, Any, Self

import msgspec

from cockpit.engine.apply.events import apply
from cockpit.engine.machine import Machine
from cockpit.engine.state import ClusterState
from cockpit.model import events
from cockpit.model.ids import Millis
from cockpit.model.staging import StagedCopy
from cockpit.protocol.frames import Answer, Hello
from cockpit.runtime.clock import SystemClock
from cockpit.runtime.connection import Bounds
from cockpit.runtime.containers.entering import EnteredShell, EntryFacts
from cockpit.runtime.engine import Engine
from cockpit.runtime.host import Act, Host, Settings
from cockpit.runtime.server import Server, listen
from cockpit.store.journal import SqliteJournal
from tests.builders import a_node
from tests.doubles.credentials import connected_as

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from cockpit.model.cluster import Cluster
    from cockpit.model.node import Node

ANSWER_SECONDS = 300


class NoContainers:
    """Starts nothing and reports a start at once: a command runs until it is ended."""

    def __init__(self, observer: Any) -> None:
        self._observer = observer

    async def start(self, effect: Any) -> None:
        self._observer.replica_started(effect.replica, "none")

    async def signal(self, effect: Any) -> None:
        self._observer.replica_ended(effect.replica, events.ExitStatus(signal=15))

    async def check(self, effect: Any) -> None:
        self._observer.precheck_passed(effect.replica, "")

    async def freeze(self, effect: Any) -> None:
        """Nothing runs."""

    async def thaw(self, effect: Any) -> None:
        """Nothing runs."""

    async def keep(self, effect: Any) -> None:
        """Nothing to keep."""

    async def remove(self, effect: Any) -> None:
        """Nothing to remove."""

    async def adopt(self, expected: Any, kept: Any) -> None:
        """Nothing runs."""

    async def stage(self, effect: Any) -> None:
        self._observer.replica_staged(effect.replica)

    def staging(self, replica: Any) -> None:
        """Nothing is copied."""

    async def copies(self) -> list[StagedCopy]:
        at = Millis(0)
        return [StagedCopy(key="4f2a", what="image", source="/x", size=1, users=(), made_at=at, used_at=at, jobs=())]

    async def remove_copy(self, key: str) -> bool:
        return True

    async def used(self, replica: Any) -> None:
        """Nothing to measure."""

    async def enter(self, replica: Any, command: Any, *, terminal: Any, label: str) -> EnteredShell:
        control, other = socket.socketpair()
        other.close()
        pipes = tuple(socket.socket().detach() for _ in range(3))
        return EnteredShell(terminal_fd=None, pipe_fds=pipes, control_fd=control.detach(), facts=EntryFacts(kept=False))


class ServedEngine:
    """`complaints` is what its log would say. With `cluster` it is machine-wide, by these rules."""

    def __init__(
        self,
        folder: Path,
        bounds: Bounds | None = None,
        settings: Settings | None = None,
        *,
        cluster: Cluster | None = None,
        node: Node | None = None,
    ) -> None:
        self._cluster = cluster
        self._node = node or a_node()
        self._settings = settings or Settings(check_invariants=True)
        self.path = folder / "run" / "engine.sock"
        self._folder = folder
        self._bounds = bounds
        self._loop = asyncio.new_event_loop()
        self._log = io.StringIO()
        self._unhandled: list[str] = []
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._redirect = contextlib.redirect_stderr(self._log)
        self._redirect.__enter__()
        self._thread.start()
        assert self._ready.wait(ANSWER_SECONDS)
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self.engine.stopping.set)
        self._thread.join(ANSWER_SECONDS)
        self._redirect.__exit__(*error)
        assert not self._thread.is_alive()

    @property
    def complaints(self) -> str:
        return self._log.getvalue() + "".join(self._unhandled)

    def client(self) -> RawClient:
        return RawClient(self.path)

    def call(self, function: Callable[[], Any]) -> Any:
        """Run something in the engine's loop; its result."""

        async def run() -> Any:
            return function()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(ANSWER_SECONDS)

    def run(self, work: Coroutine[Any, Any, Any], seconds: float = ANSWER_SECONDS) -> Any:
        """Run a coroutine in the engine's loop; its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    def _run(self) -> None:
        self._loop.set_exception_handler(lambda _, context: self._unhandled.append(str(context)))
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    @property
    def _system(self) -> bool:
        return self._cluster is not None

    def _beginning(self) -> list[events.EventBody]:
        rules = [] if self._cluster is None else [events.ClusterConfigured(self._cluster)]
        return [events.NodesChanged((self._node,)), *rules]

    async def _serve(self) -> None:
        folder = self._folder
        journal = await SqliteJournal.open(folder / "journal.db", folder / "archive", clock=SystemClock(), apply=apply)
        host = Host(Machine(ClusterState()), journal, NoContainers, SystemClock(), self._settings)
        self.engine = Engine(host=host, state_folder=folder, socket=self.path, system=self._system, cluster="test")
        await host.act(lambda _machine, _now: self._beginning(), Act(actor="engine", origin="engine"))
        await host.start()
        server = Server(self.engine, self._bounds)
        await server.start(listen(self.path, system=self._system))
        self._ready.set()
        await self.engine.stopping.wait()
        await server.stop()
        await host.stop()
        await journal.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()


def _connected(path: Path) -> socket.socket:
    here = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    here.connect(str(path))
    return here


class RawClient:
    """Says any bytes."""

    def __init__(self, path: Path, *, greet: bool = True, user: str | None = None) -> None:
        """`user`: the user who connects; by default the one who runs the tests."""
        self.socket = _connected(path) if user is None else connected_as(user, path)
        self.socket.settimeout(ANSWER_SECONDS)
        self.hello = msgspec.msgpack.decode(self.body(), type=Hello) if greet else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def say(self, body: bytes) -> None:
        """A whole frame."""
        self.socket.sendall(struct.pack(">I", len(body)) + body)

    def ask(self, op: Any, args: Any = None, request: Any = "", number: Any = 1, access: Any = "") -> Answer:
        """One request, whatever it is made of; its first answer."""
        frame = {"id": number, "op": op, "args": args or {}, "request": request, "access": access}
        self.say(msgspec.msgpack.encode(frame))
        return self.answer()

    def answer(self) -> Answer:
        return msgspec.msgpack.decode(self.body(), type=Answer)

    def body(self) -> bytes:
        (length,) = struct.unpack(">I", self._exactly(4))
        return self._exactly(length)

    def at_end(self) -> bool:
        """Whether the engine has closed the connection, as it does after what is no frame."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise ConnectionResetError
            data += part
        return data
