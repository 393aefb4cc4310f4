"""Labels of nodes, which jobs select, and taints, which keep jobs off that do not tolerate them.

As in Kubernetes, whose taints of the effect NoSchedule these are: what runs on a node already is not touched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

# Wider than in Kubernetes, which has one slash at most and 63 characters behind it: its keys are keys here, too.
KEY: Final = r"[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,251}[A-Za-z0-9])?"
# A value may be empty, a key may not (Kubernetes, Labels and Selectors, Syntax).
VALUE: Final = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?"
_KEY: Final = re.compile(KEY)
_VALUE: Final = re.compile(VALUE)


class Taint(msgspec.Struct, frozen=True):
    """A taint of a node: only jobs that tolerate it start there."""

    key: str
    value: str = ""

    @property
    def text(self) -> str:
        """`spot`, `gpu=yes`."""
        return pair_text(self.key, self.value)


class Toleration(msgspec.Struct, frozen=True):
    """A job puts up with taints of this key."""

    key: str = ""
    """The key of the tolerated taint; empty: any key."""
    value: str | None = None
    """The value of the tolerated taint; None: any value."""

    @property
    def text(self) -> str:
        """`*`, `spot`, `gpu=yes`."""
        return ANY if not self.key else self.key if self.value is None else f"{self.key}={self.value}"

    def of(self, taint: Taint) -> bool:
        # An empty key tolerates all keys, an absent value all values of the key, as in Kubernetes.
        return self.key in ("", taint.key) and self.value in (None, taint.value)


ANY: Final = "*"


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return any(each.of(taint) for each in tolerations)


def pair_text(key: str, value: str) -> str:
    """Return the label as `disk=ssd`, or the key alone where the value is empty."""
    return f"{key}={value}" if value else key


def key_error(key: str) -> str | None:
    """Return what is wrong with a key, as a clause to follow the key; None when it is fine."""
    if _KEY.fullmatch(key):
        return None
    return "is no key of a label; use letters, digits and . _ / - between them, at most 253"


def value_error(value: str) -> str | None:
    if _VALUE.fullmatch(value):
        return None
    return "is no value of a label; use letters, digits and . _ - between them, at most 63"
