"""The interface of a cluster backend: everything that the terminal UI and the command line call on a cluster.

`protocol.operations` declares the operations; here is what a backend adds to them, and how an engine answers them.
Every method may raise `RequestRefused` when the cluster refuses the request, and `Unreachable` when it does not answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol, TypeVar

import msgspec

from cockpit.model.asking import LogStream
from cockpit.model.capabilities import ENGINE, Ability, Capabilities
from cockpit.model.operations import Style
from cockpit.protocol.operations import Operations

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cockpit.model.asking import ShellRequest
    from cockpit.model.directives import Directive
    from cockpit.model.ids import JobId, Millis
    from cockpit.model.jobrow import JobRow
    from cockpit.model.operations import Operation
    from cockpit.model.requests import RequestIds
    from cockpit.model.spec import JobSpec
    from cockpit.model.view import ClusterRow, Overview

T = TypeVar("T")


class CommandPreview(NamedTuple):
    """A command that will run on the cluster, shown to the user beforehand."""

    argv: tuple[str, ...]
    stdin: str = ""
    """Standard input of the command; for a submission, the batch script."""


Announced = Callable[[Sequence[CommandPreview]], Awaitable[bool]]
"""Receives the commands of an operation before they run. When it returns False, the operation raises `NotRun`.

It receives no commands where one cluster of several carries an operation out itself."""


class ShellSession(Protocol):
    """A shell or command that runs inside a job's container. The file descriptors belong to the caller."""

    notice: str
    """Message for the user on entry; empty for plain commands."""
    terminal_fd: int | None
    """Master side of the pseudo terminal; None when the request wanted pipes."""
    pipe_fds: tuple[int, int, int] | None
    """Write end of stdin, read ends of stdout and stderr; None when there is a terminal."""
    control_fd: int
    """Socket that becomes readable when the shell has ended; closing it ends the shell."""

    def exit_code(self) -> int:
        """Block until the shell has ended and return its exit code; 128 + n after signal n."""
        ...


class JobsDelta(msgspec.Struct, frozen=True):
    """Changes of the job list since the previous delta."""

    changed: tuple[JobRow, ...]
    """New and changed rows."""
    removed: tuple[JobId, ...]
    """Ids of the jobs that left the list."""
    version: int
    loaded: bool = True
    """False while further deltas of the first load, or of the reload after a lost connection, are to come."""


class Phase(StrEnum):
    """State of a live connection."""

    CONNECTING = "connecting"
    """The first connection is under way: there is no data to show yet."""
    CONNECTED = "connected"
    STALE = "stale"
    """The cluster does not answer: the data shown is as old as `Connection.good_at`."""


class Connection(msgspec.Struct, frozen=True):
    """State of the connection to a cluster, and the age of the data shown."""

    phase: Phase
    reason: str = ""
    """Why it is not connected, as a sentence."""
    good_at: Millis | None = None
    """Time of the cluster's last answer; None: it has never answered."""


class TypedLogin(Protocol):
    """A login for which the user may have to type a password or a code."""

    @property
    def is_needed(self) -> bool:
        """Whether the cluster refused the last attempt to connect without a typed login."""
        ...

    def ask_at_terminal(self) -> None:
        """Ask for the password or code, and return when the user is logged in.

        Blocks, and uses the terminal: nothing else may use it until this returns. Raises `Unreachable`.
        """
        ...


class Backend(Operations, ABC):
    """The operations of one cluster, and what belongs to it beside them."""

    user: str = ""
    """Name of the user on the cluster; empty: the same as on this machine."""
    login: TypedLogin | None = None
    """Login by a typed password or code; None: none is ever needed."""

    @abstractmethod
    async def perform(self, operation: Operation, given: Mapping[str, Any]) -> Any: ...  # noqa: ANN401 - of the operation

    @property
    def capabilities(self) -> Capabilities:
        """What the cluster can do, and the reason for each operation and ability that it lacks."""
        return ENGINE

    def capabilities_for(self, jobs: Iterable[JobId]) -> Capabilities:
        """Return what can be done with each of these jobs; in a merged view it depends on their clusters."""
        del jobs
        return self.capabilities

    def announce(self, look: Announced, *, required: bool = False) -> None:
        """Call `look` with every command before it runs on the cluster.

        Without effect where `Ability.COMMANDS` is absent. `required`: a merged view refuses to change what belongs to
        such a cluster.
        """
        del look, required

    @property
    def silence(self) -> str:
        """Why the cluster does not answer at present, as a sentence; empty while it does, or where that is an error.

        A watch reports a change of it by an empty delta.
        """
        return ""

    @property
    def silent_members(self) -> tuple[tuple[str, str], ...]:
        """Names of the clusters of a merged view that do not answer, each with the reason as a sentence."""
        return ()

    def identify(self, ids: RequestIds) -> None:
        """Use these ids for the following changing operations, so that a repeated request takes effect only once.

        Without effect where `Ability.REQUEST_IDS` is absent.
        """
        del ids

    async def written(self, spec: JobSpec) -> CommandPreview | None:
        """Return the command that would submit the job; None where `Ability.SCRIPTS` is absent.

        Cockpit's own engine starts the job as `launch.plan` describes. Raises `RequestRefused` for a job that `submit`
        would refuse.
        """
        del spec
        return None

    async def manifests(self, specs: Sequence[JobSpec]) -> list[dict[str, Any]]:
        """Return the objects that `submit` would create for these jobs, in that order, as the server would accept them.

        Refused where `Ability.MANIFESTS` is absent, and for jobs that `submit` would refuse.
        """
        del specs
        refuse_absent(self.capabilities.why_not("manifests"))

    async def direct(self, wanted: Directive) -> JobId | None:
        """Run a command of the cluster's own; return the id of the job that it submitted, if any.

        Refused with the reason why the directive's ability is absent.
        """
        refuse_absent(self.why_not_directed(wanted))

    def why_not_directed(self, wanted: Directive) -> str:
        """Return why this directive cannot be carried out; empty: it can."""
        from cockpit.model.directives import needs_of

        return next(filter(None, map(self.capabilities.why_not, needs_of(wanted))), "")

    async def clusters(self) -> list[ClusterRow]:
        """Return the member clusters of a fleet or a merged view; empty for a single cluster."""
        return []

    def begin(self) -> None:
        """Watch the member clusters from now on, so that `clusters` need not ask each of them.

        Without effect where `Ability.CLUSTERS` is absent. Needs a running event loop.
        """

    @abstractmethod
    def watch_jobs(self, *, anything: bool = False) -> AsyncIterator[JobsDelta]:
        """Yield the whole job list in one or several deltas, then its changes as they happen, at most ten a second.

        `anything`: also yield an empty delta when something else in the cluster may have changed.
        """

    @abstractmethod
    async def open_shell(self, request: ShellRequest) -> ShellSession:
        """Open a shell in a job's container, or run a command in it."""

    @abstractmethod
    async def close(self) -> None:
        """Close the connection; the cluster keeps running."""


class Asking(Backend):
    """Carries out each operation by one of four ways to ask, which differ by how the cluster is reached.

    Subclasses reach it over a socket, with or without an event loop, as an object of this process, or by programs.
    """

    @abstractmethod
    async def read(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        """Run an operation that changes nothing and may therefore be repeated."""

    @abstractmethod
    async def read_pieces(self, op: str, args: msgspec.Struct) -> Sequence[bytes | msgspec.Raw]:
        """Run an operation that changes nothing and return its answer, which is encoded in pieces."""

    @abstractmethod
    async def act(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        """Run an operation that changes something, exactly once even if the request must be repeated."""

    @abstractmethod
    async def await_answer(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        """Run an operation that changes nothing and may take any time."""

    async def perform(self, operation: Operation, given: Mapping[str, Any]) -> Any:  # noqa: ANN401 - of the operation
        # Before anything is sent, so that every backend refuses with the same sentence.
        if reason := self.capabilities.why_not(operation.name):
            refuse_absent(reason)
        args = operation.arguments(given)
        if operation.style is Style.LISTS:
            return operation.joined(await self.read_pieces(operation.name, args))
        if operation.style is Style.CHANGES:
            ask = self.act
        else:
            ask = self.await_answer if operation.takes_time(args) else self.read
        return operation.result(await ask(operation.name, args, operation.answer_type()))


def why_not_stream(capabilities: Capabilities, stream: LogStream) -> str:
    """Return why this stream of a log cannot be read here; empty: it can."""
    return capabilities.why_not(Ability.MERGED_LOGS) if stream is LogStream.MERGED else ""


def refuse_absent(reason: str) -> NoReturn:
    """Raise the refusal of an operation that the cluster lacks. The import is late: few commands need it."""
    from cockpit.errors import RequestRefused
    from cockpit.model.refusal import Refusal, RefusalKind

    raise RequestRefused(Refusal(RefusalKind.UNAVAILABLE, reason))


class LiveBackend(Backend):
    """A backend that maintains its connection: it reports a loss and reconnects, and `watch_jobs` never ends."""

    @property
    @abstractmethod
    def connection(self) -> Connection:
        """Present state of the connection."""

    @abstractmethod
    def connections(self) -> AsyncIterator[Connection]:
        """Yield the present connection state, then each change of its phase or reason. Never ends."""

    @abstractmethod
    def overviews(self) -> AsyncIterator[Overview]:
        """Yield the overview, then again whenever it changes. Never ends."""
