"""Points at which a test ends this process as a power cut would: `COCKPIT_DIE_AT="removing"` in its environment."""

from __future__ import annotations

import os
import signal

_DIE_AT = os.environ.get("COCKPIT_DIE_AT", "")


def point(*words: str) -> None:
    """This process gets no further when it is told to die here."""
    if _DIE_AT and " ".join(words) == _DIE_AT:
        os.kill(os.getpid(), signal.SIGKILL)
