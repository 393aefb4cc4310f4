"""One SSH session: what the client asks for before it starts, its program, and the bytes between the two."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import asyncssh

from cockpit.errors import CockpitError
from cockpit.headless.exitcodes import ExitCode
from cockpit.present.safe import safe_lines
from cockpit.present.units import counted
from cockpit.serve.accounts import PASSED, USUAL_TERM, Account, account_for, session_environment
from cockpit.serve.program import STDERR, Program
from cockpit.serve.starting import StartProgram, start_program
from cockpit.serve.verbs import why_not_served, words_of

if TYPE_CHECKING:
    from cockpit.model.access_level import AccessLevel
    from cockpit.serve.limits import Bounds, Sessions

WINDOW: Final = 128 << 10
"""Bytes that a client may send before the program has taken them, and that may wait for the client to read."""
LONGEST_VALUE: Final = 64
WEB: Final = "web"
"""The command of the server itself: it prints an address for a browser."""
SIGNALS: Final = {
    name: getattr(signal, f"SIG{name}") for name in ("HUP", "INT", "QUIT", "TERM", "KILL", "USR1", "USR2", "ALRM")
}
"""The signals that a client may send, by their names in RFC 4254."""


class Environment(dict[bytes, bytes]):
    """Keeps the variables that a client may set, so that the others cost no memory."""

    def __setitem__(self, name: bytes, value: bytes) -> None:
        if name in {each.encode() for each in PASSED} and len(value) <= LONGEST_VALUE:
            super().__setitem__(name, value)


class Visitor:
    """Who has logged in on a connection, for its sessions."""

    def __init__(
        self,
        login: str,
        level: AccessLevel,
        sessions: Sessions,
        bounds: Bounds,
        *,
        start: StartProgram = start_program,
        terminal: bool = True,
        address: Callable[[str, AccessLevel], str] | None = None,
    ) -> None:
        """`start`: starts a session's program. `terminal`: whether the sessions may have one. `address`: makes an
        address for the user's browser; None: the server has no web server."""
        self.login, self.level, self.sessions, self.bounds = login, level, sessions, bounds
        self.start, self.terminal, self.address = start, terminal, address


class SshSession(asyncssh.SSHServerSession[bytes]):
    """Runs one program for the client; asyncssh calls its methods in the order of the protocol."""

    def __init__(self, visitor: Visitor, closed: Callable[[SshSession], None], report: Callable[[str], None]) -> None:
        self._visitor, self._closed, self._report = visitor, closed, report
        self._channel: asyncssh.SSHServerChannel[bytes] | None = None
        self._program: Program | None = None
        self._size: tuple[int, int] | None = None
        self._term = ""
        self._command = ""
        self._counted_as = ""
        """The user in whose name the session is counted; empty: it is not."""
        self._farewell = ""
        self._typed_at = 0.0
        """When something was typed last, or the session started, by the event loop's clock."""
        self._idle: asyncio.TimerHandle | None = None

    # ── Before the start ─────────────────────────────────────────────────────────────────────────────────────────────

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self._channel = chan
        # asyncssh has no limit on what clients send before the session starts.
        chan._env = Environment()  # noqa: SLF001 - nothing public bounds it; the tests notice if it is renamed
        # `pause_writing` is called as soon as anything waits for the client's window.
        chan.set_write_buffer_limits(high=WINDOW, low=0)

    def pty_requested(self, term_type: str, term_size: Any, term_modes: Mapping[int, int]) -> bool:  # noqa: ANN401 - asyncssh
        del term_modes  # the program sets its terminal as it needs it
        if not self._visitor.terminal:
            return False
        self._size, self._term = (term_size[0], term_size[1]), term_type
        return True

    def shell_requested(self) -> bool:
        return True

    def exec_requested(self, command: str) -> bool:
        self._command = command
        return True

    def subsystem_requested(self, subsystem: str) -> bool:
        del subsystem  # SFTP among them
        return False

    # ── The program ──────────────────────────────────────────────────────────────────────────────────────────────────

    def session_started(self) -> None:
        """Start the program, or tell the client why not."""
        try:
            self._start()
        except CockpitError as error:
            self._refuse(str(error))
        except OSError as error:
            self._report(f"a program could not be started: {error}")
            self._refuse("The server cannot start another program at present. Try again later.", ExitCode.UNAVAILABLE)

    def _start(self) -> None:
        visitor, channel = self._visitor, self._the_channel
        account = account_for(visitor.login)
        words = words_of(self._command)
        if words == [WEB]:
            self._print_address(account)
            return
        if reason := why_not_served(words, visitor.level):
            raise CockpitError(reason)
        if reason := visitor.sessions.open(account.name):
            self._refuse(reason, ExitCode.UNAVAILABLE)
            return
        self._counted_as = account.name
        asked = {name.decode(): value.decode(errors="replace") for name, value in channel._env.items()}  # noqa: SLF001 - see above
        env = session_environment(account, visitor.level, {**asked, "TERM": self._term or USUAL_TERM}, os.environ)
        self._program = Program(words, account, env, self, size=self._size, start=visitor.start)
        self._log_start(account, words)
        if self._size is not None:
            # The time runs from the start, for a terminal at which no key is ever pressed.
            self._typed_at = asyncio.get_running_loop().time()
            self._watch_idle()

    def _print_address(self, account: Account) -> None:
        if self._visitor.address is None:
            raise CockpitError("This server serves no browsers: it was started without --web.")
        self._the_channel.write(f"{self._visitor.address(account.name, self._visitor.level)}\n".encode())
        self._the_channel.exit(ExitCode.OK)

    def _log_start(self, account: Account, words: list[str]) -> None:
        what = f"runs {' '.join(words[:2])}" if words else "opens the cockpit"
        self._report(f"{account.name} {what} as process {self._program.pid if self._program else 0}")

    def show(self, data: bytes, stream: int) -> None:
        self._the_channel.write(data, asyncssh.EXTENDED_DATA_STDERR if stream == STDERR else None)

    def hold_input(self, held: bool) -> None:
        if held:
            self._the_channel.pause_reading()
        else:
            self._the_channel.resume_reading()

    def ended(self, code: int) -> None:
        channel = self._the_channel
        if channel.is_closing():
            return
        if self._farewell:
            self._say(self._farewell)
        if code >= 0:
            channel.exit(code)
        else:
            channel.exit_with_signal(_signal_name(-code))

    def end(self, why: str) -> None:
        """End the program, and tell the client why."""
        self._farewell = why
        if self._program is not None:
            self._program.hang_up()
        else:
            self._the_channel.close()

    # ── From the client ──────────────────────────────────────────────────────────────────────────────────────────────

    def data_received(self, data: bytes, datatype: int | None) -> None:
        del datatype
        self._typed_at = asyncio.get_running_loop().time()
        if self._program is not None:
            self._program.type(data)

    def eof_received(self) -> bool:
        if self._program is not None:
            self._program.end_input()
        return True  # the channel stays open for the output

    def terminal_size_changed(self, width: int, height: int, pixwidth: int, pixheight: int) -> None:
        del pixwidth, pixheight
        if self._program is not None:
            self._program.resize(width, height)

    def signal_received(self, signal: str) -> None:
        number = SIGNALS.get(signal)
        if self._program is not None and number is not None:
            self._program.signal(number)

    def break_received(self, msec: int) -> bool:
        del msec
        self.signal_received("INT")
        return True

    def pause_writing(self) -> None:
        if self._program is not None:
            self._program.pause_output()

    def resume_writing(self) -> None:
        if self._program is not None:
            self._program.resume_output()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if self._idle is not None:
            self._idle.cancel()
        if self._program is not None:
            self._program.hang_up()
        if self._counted_as:
            self._visitor.sessions.close(self._counted_as)
            self._counted_as = ""
        self._closed(self)

    # ── Helpers ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _the_channel(self) -> asyncssh.SSHServerChannel[bytes]:
        assert self._channel is not None
        return self._channel

    def _refuse(self, reason: str, code: ExitCode = ExitCode.REFUSED) -> None:
        self._say(reason)
        self._the_channel.exit(code)

    def _say(self, text: str) -> None:
        ends = "\r\n" if self._size is not None else "\n"
        self._the_channel.write_stderr((safe_lines(text) + ends).encode())

    def _watch_idle(self) -> None:
        """End a terminal without a key for the time limit."""
        loop = asyncio.get_running_loop()
        limit = self._visitor.bounds.idle_seconds
        left = limit - (loop.time() - self._typed_at)
        if left <= 0:
            waited = counted(limit // 60, "minute") if limit >= 60 else counted(limit, "second")
            self.end(f"The session was closed after {waited} without a key. Jobs continue.")
        else:
            self._idle = loop.call_later(left, self._watch_idle)


def _signal_name(number: int) -> str:
    name = next((name for name, known in SIGNALS.items() if known == number), None)
    return name or signal.Signals(number).name.removeprefix("SIG")
