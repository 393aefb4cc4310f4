"""A terminal that has gone: a window that was closed, a connection that was cut. Where no signal tells of it, Textual
would read the end of the input for ever, as fast as it can.
"""

from __future__ import annotations

import select


def has_hung_up(fd: int) -> bool:
    """Return whether this terminal has been closed at its other end. A file or a null device never is."""
    poll = select.poll()
    poll.register(fd, 0)
    return bool(poll.poll(0))
