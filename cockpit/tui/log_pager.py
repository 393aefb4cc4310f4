"""The whole of a log in the user's own pager, such as `less`."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import tempfile
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.errors import CockpitError
from cockpit.present.log_lines import SafeColours

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from cockpit.tui.cockpit import Cockpit
    from cockpit.tui.log_source import LogSource


async def open_in_pager(app: Cockpit, source: LogSource, tell: Callable[[int], None]) -> None:
    """Show the log as it is now in $PAGER, else in `less`, with its colours and with nothing else that a terminal
    obeys. `tell` is called with the percentage that was copied for it. Raises `CockpitError`."""
    app.check_terminal()
    argv = [*shlex.split(os.environ.get("PAGER", "") or "less")]
    with tempfile.NamedTemporaryFile(prefix="cockpit-log-", suffix=".log") as file:
        text, done, end = SafeColours(source.known), 0, source.blocks.size
        tell(0)
        async for data in whole_log(source):
            done += len(data)
            tell(min(100, 100 * done // max(1, end)))
            # Beside the event loop: escaping takes a second for some hundred MB.
            file.write((await asyncio.to_thread(text.feed, data)).encode(errors="backslashreplace"))
        file.write(text.finish().encode(errors="backslashreplace"))
        file.flush()
        # As git does: without -R, less would show colours as text.
        env = {"LESS": "R", **os.environ}
        try:
            # The event loop waits while the pager has the terminal: nothing may be drawn, and no key be read by both.
            with app.suspend():
                subprocess.run([*argv, file.name], env=env, check=False)  # noqa: ASYNC221 - the user's own pager; see above
        except OSError as error:
            message = f"The pager {argv[0]} cannot be started: {error.strerror}. Set PAGER to one that is installed."
            raise CockpitError(message) from None
    app.refresh()


async def whole_log(source: LogSource) -> AsyncIterator[bytes]:
    """Yield the log from its beginning to its present end."""
    at, end = 0, source.blocks.size
    while at < end:
        chunk = await source.backend.logs(replace(source.request, offset=at))
        if not chunk.data:
            return
        yield chunk.data
        at = chunk.offset + len(chunk.data)
