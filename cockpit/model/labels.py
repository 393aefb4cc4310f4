"""What is written on nodes: labels that jobs ask for, and taints that keep jobs off unless they put up with them.

As in Kubernetes, whose taints of the effect NoSchedule these are: what runs on a node already is not touched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

KEY: Final = r"[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,251}[A-Za-z0-9])?"
VALUE: Final = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?"
_KEY: Final = re.compile(KEY)
_VALUE: Final = re.compile(VALUE)


class Taint(msgspec.Struct, frozen=True):
    """Nothing new starts on a node that has it, but jobs that tolerate it."""

    key: str
    value: str = ""

    @property
    def text(self) -> str:
        """`spot`, `gpu=yes`."""
        return pair_text(self.key, self.value)


class Toleration(msgspec.Struct, frozen=True):
    """A job puts up with taints of this key."""

    key: str = ""
    """Empty: of any."""
    value: str | None = None
    """None: whatever the value."""

    @property
    def text(self) -> str:
        """`*`, `spot`, `gpu=yes`."""
        return ANY if not self.key else self.key if self.value is None else f"{self.key}={self.value}"

    def of(self, taint: Taint) -> bool:
        return self.key in ("", taint.key) and self.value in (None, taint.value)


ANY: Final = "*"


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return any(each.of(taint) for each in tolerations)


def pair_text(key: str, value: str) -> str:
    """`disk=ssd`, or the key alone."""
    return f"{key}={value}" if value else key


def key_error(key: str) -> str | None:
    """Without the key, which the reader sees anyhow."""
    if _KEY.fullmatch(key):
        return None
    return "is no key of a label; use letters, digits and . _ / - between them, at most 253"


def value_error(value: str) -> str | None:
    if _VALUE.fullmatch(value):
        return None
    return "is no value of a label; use letters, digits and . _ - between them, at most 63"
