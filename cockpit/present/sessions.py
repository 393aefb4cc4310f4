"""Sessions: jobs of the kind interactive, as people read of them."""

from __future__ import annotations

from typing import Final

from cockpit.present.safe import safe

NO_COMMAND: Final = "nothing but the shells of those who enter it"


def command_words(command: str) -> str:
    """What a job runs."""
    return safe(command) if command else NO_COMMAND
