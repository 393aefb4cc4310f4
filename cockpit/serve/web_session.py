"""One session of a browser: its program, and the messages between the two.

Binary messages are the terminal's bytes. A text message is JSON: `{"columns": 80, "rows": 24}` is the terminal's size,
`{}` says that the page has drawn the last piece. The next piece is read from the program only then, so that a slow page
costs nothing.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Final

import msgspec
from aiohttp import WSMsgType, web

from cockpit.errors import CockpitError
from cockpit.model.access_level import AccessLevel
from cockpit.runtime.tasks import report_defect
from cockpit.serve.accounts import USUAL_TERM, account_for, session_environment
from cockpit.serve.limits import Bounds, Sessions
from cockpit.serve.program import Program
from cockpit.serve.starting import StartProgram

ENDED: Final = 4000
"""The close code that tells the page not to connect again."""
LONGEST_REASON: Final = 120
"""Bytes of a reason in a close message (RFC 6455, 5.5)."""
FIRST_SECONDS: Final = 30.0
"""Time in which the page sends its size."""


class Message(msgspec.Struct):
    """What a page says beside what was typed."""

    columns: int = 0
    rows: int = 0


class Page:
    """The browser's end: sends pieces one after another, and closes once."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self.socket = socket
        self.out: asyncio.Queue[bytes | str] = asyncio.Queue()
        """Pieces to send; a text is the reason of the end."""

    async def send(self) -> None:
        """Send what comes into `out`, until the end."""
        while isinstance(piece := await self.out.get(), bytes):
            await self.socket.send_bytes(piece)
        await self.socket.close(code=ENDED, message=piece.encode()[:LONGEST_REASON])


class WebSession:
    """Runs the cockpit for one page."""

    def __init__(
        self,
        page: Page,
        login: str,
        level: AccessLevel,
        sessions: Sessions,
        bounds: Bounds,
        start: StartProgram,
    ) -> None:
        self._page, self._login, self._level, self._start = page, login, level, start
        self._sessions, self._bounds = sessions, bounds
        self._program: Program | None = None
        self._may_type = asyncio.Event()
        self._may_type.set()
        self._reason = ""

    async def run(self, report: Callable[[str], None]) -> None:
        """Open the cockpit, and return when it or the page has ended."""
        counted = ""
        try:
            async with asyncio.timeout(FIRST_SECONDS):
                size = _message(await self._page.socket.receive())
            account = account_for(self._login)
            self._count(account.name)
            counted = account.name
            env = session_environment(account, self._level, {"TERM": USUAL_TERM, "COLORTERM": "truecolor"}, os.environ)
            self._program = Program([], account, env, self, size=(size.columns, size.rows), start=self._start)
            report(f"{account.name} opens the cockpit in a browser as process {self._program.pid}")
            await self._serve()
        except (CockpitError, TimeoutError, OSError) as error:
            self._page.out.put_nowait(str(error) or "The page sent no size.")
            await self._page.send()
        finally:
            if self._program is not None:
                self._program.hang_up()
            if counted:
                self._sessions.close(counted)

    def show(self, data: bytes, stream: int) -> None:
        del stream
        self._page.out.put_nowait(data)
        if self._program is not None:
            self._program.pause_output()  # until the page has drawn it

    def hold_input(self, held: bool) -> None:
        if held:
            self._may_type.clear()
        else:
            self._may_type.set()

    def ended(self, code: int) -> None:
        self._page.out.put_nowait(self._reason or (f"The cockpit ended with code {code}." if code else "You left it."))

    def end(self, why: str) -> None:
        """End the program, and tell the page why."""
        self._reason = why
        if self._program is not None:
            self._program.hang_up()

    def _count(self, user: str) -> None:
        """Count the session. Raises `CockpitError` where there are too many."""
        if reason := self._sessions.open(user):
            raise CockpitError(reason)

    async def _serve(self) -> None:
        """Carry messages until either side ends."""
        sending = asyncio.get_running_loop().create_task(self._page.send(), name="page")
        receiving = asyncio.get_running_loop().create_task(self._receive(), name="typed")
        try:
            await asyncio.wait({sending, receiving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, receiving):
                task.cancel()
            ends = await asyncio.gather(sending, receiving, return_exceptions=True)
            for end in ends:
                # A page that has gone is no defect, and the other task was cancelled.
                if isinstance(end, Exception) and not isinstance(end, OSError):
                    report_defect("a session of a browser", end)

    async def _receive(self) -> None:
        assert self._program is not None
        while True:
            await self._may_type.wait()
            try:
                async with asyncio.timeout(self._bounds.idle_seconds):
                    # What the page says by itself is no key: the time goes on.
                    while (message := await self._page.socket.receive()).type is WSMsgType.TEXT:
                        self._note(_message(message))
            except TimeoutError:
                self.end("The session was closed: no key was pressed for its idle time.")
                continue
            if message.type is not WSMsgType.BINARY:
                return
            self._program.type(message.data)

    def _note(self, said: Message) -> None:
        assert self._program is not None
        if said.columns or said.rows:
            self._program.resize(said.columns, said.rows)
        else:
            self._program.resume_output()


def _message(message: object) -> Message:
    """Decode a text message of the page; whatever is no such message says nothing."""
    data = getattr(message, "data", None)
    if not isinstance(data, str):
        return Message()
    try:
        return msgspec.json.decode(data, type=Message)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Message()
