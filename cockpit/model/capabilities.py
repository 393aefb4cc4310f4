"""What a cluster can do: each operation is there, or absent with the reason that a user reads."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Capabilities(msgspec.Struct, frozen=True):
    """The operations that a backend lacks."""

    absent: Mapping[str, str] = {}
    """The reason why an operation is absent, by the operation's name; all others are there."""

    def why_not(self, operation: str) -> str:
        """Return why the operation is absent; empty: it is there."""
        return self.absent.get(operation, "")
