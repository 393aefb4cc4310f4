"""A replica that runs on a member over a link: its log, the events of its part, and shells in its container.

The member is asked with the rights of the link's user; whether the fleet's own user may see the job is checked before.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from cockpit.errors import RequestRefused
from cockpit.model.asking import ShellRequest
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.runtime.containers.entering import EnteredShell, EntryFacts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cockpit.model.asking import LogChunk, LogMatches, LogRequest, LogSearch
    from cockpit.model.attempt import Attempt
    from cockpit.model.events import EventBody, EventRecord
    from cockpit.model.ids import JobId
    from cockpit.runtime.containers.entering import Terminal
    from cockpit.runtime.fleet.remote import MemberShell, RemoteMember
    from cockpit.runtime.tasks import Tasks

_EXIT = struct.Struct(">i")
"""An exit code on the control socket; see `runtime.containers.entering`."""


class LinkedReplica(NamedTuple):
    """A replica of a fleet's job on a member over a link."""

    member: RemoteMember
    own: str
    """The member's own id of the job; empty: it has not accepted the part yet."""
    ranks: tuple[int, ...]
    """The fleet's ranks of the part's replicas: replica r of the member's job is `ranks[r]`."""
    rank: int
    """The replica's rank at the member."""

    async def logs(self, request: LogRequest) -> LogChunk:
        # Each attempt of the fleet is a job of its own at the member, whose last attempt is meant.
        there = replace(request, rank=self.rank, attempt=None)
        return await self.member.ask(lambda link: link.logs(self.own, there))

    async def search_log(self, request: LogSearch) -> LogMatches:
        there = replace(request, rank=self.rank, attempt=None)
        return await self.member.ask(lambda link: link.search_log(self.own, there))

    async def events(self, job: JobId, *, after: int, limit: int) -> list[EventRecord]:
        """Return what the member reports of the part, with the fleet's job and ranks and the member's own nodes."""
        if not self.own:
            return []
        records = await self.member.ask(lambda link: link.events(self.own, after, limit))
        return in_fleet(records, job, self.ranks)

    async def enter(
        self, command: Sequence[str], terminal: Terminal | None, tasks: Tasks, *, kept: bool
    ) -> EnteredShell:
        """Open a shell in the replica's container. `tasks`: take care of the shell until it ends."""
        if not self.own:
            message = f"{self.member.name} has not accepted the job yet; there is no container to enter."
            raise RequestRefused(Refusal(RefusalKind.CONFLICT, message))
        request = ShellRequest(job=0, rank=self.rank, command=tuple(command))
        if terminal is not None:
            rows, columns, term = terminal.rows, terminal.columns, terminal.term
            request = replace(request, terminal=True, rows=rows, columns=columns, term=term)
        shell = await self.member.ask(lambda link: link.open_shell(self.own, request))
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        tasks.start(_report_end(shell, ours), f"a shell on {self.member.name}")
        facts = EntryFacts(kept=kept)
        return EnteredShell(
            terminal_fd=shell.terminal_fd, pipe_fds=shell.pipe_fds, control_fd=theirs.detach(), facts=facts
        )


def in_fleet(records: Iterable[EventRecord], job: JobId, ranks: Sequence[int]) -> list[EventRecord]:
    """Return a member's events of a part with the fleet's job and ranks: replica r there is `ranks[r]`."""
    return [replace(each, body=_in_fleet(each.body, job, ranks)) for each in records]


def _in_fleet(body: EventBody, job: JobId, ranks: Sequence[int]) -> EventBody:
    changes: dict[str, object] = {"job": job} if hasattr(body, "job") else {}
    rank = getattr(body, "rank", None)
    if isinstance(rank, int) and 0 <= rank < len(ranks):
        changes["rank"] = ranks[rank]
    return replace(body, **changes)


def linked_replica(remote: Mapping[str, RemoteMember], attempt: Attempt, rank: int) -> LinkedReplica | None:
    """Return where a replica is; None: it is bound to no member over a link. `remote`: those members by name."""
    name = attempt.members[rank] if 0 <= rank < len(attempt.members) else ""
    if name not in remote:
        return None
    part = attempt.remote_part(name)
    ranks = tuple(each for each, member in enumerate(attempt.members) if member == name)
    return LinkedReplica(remote[name], part.own if part is not None else "", ranks, ranks.index(rank))


async def _report_end(shell: MemberShell, control: socket.socket) -> None:
    """Send the exit code when the member's shell ends; end that shell when the user closes the control socket."""
    loop, readable, has_ended = asyncio.get_running_loop(), asyncio.Event(), False

    def note_end() -> None:
        nonlocal has_ended
        has_ended = True
        readable.set()

    loop.add_reader(shell.control_fd, note_end)
    loop.add_reader(control, readable.set)
    try:
        await readable.wait()
        # Else the loop would call for as long as their data is not read.
        loop.remove_reader(shell.control_fd)
        loop.remove_reader(control)
        if has_ended:
            code = await asyncio.to_thread(shell.exit_code)
            await loop.sock_sendall(control, _EXIT.pack(code))
    except ConnectionError:
        pass  # the user has left at the same moment
    finally:
        loop.remove_reader(shell.control_fd)
        loop.remove_reader(control)
        control.close()
        os.close(shell.control_fd)
