"""Client-made ids of acting requests: what may be one, and what is remembered of a request that was answered."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from cockpit.model.ids import Millis
from cockpit.model.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_REQUEST_ID = 100
"""Characters of an id that a person gives. The wire takes 128, which leaves room for the part after `PART`."""
PART = "#"
"""Separates a command's own request id from the number of a further act of the same command."""

_PATTERN = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._:/@+=-]{{0,{LONGEST_REQUEST_ID - 1}}}")


class KeptAnswer(NamedTuple):
    """The answer to a request id as the journal keeps it."""

    request: str
    answer: bytes
    """The encoded answer, or the encoded `Refusal` where `refused`."""
    op: str = ""
    """The operation; empty in what an older engine wrote."""
    digest: bytes = b""
    """Hash of operation and arguments, so that another request under the same id is noticed; then the hash of the
    command's words, if the client sent one. May be empty."""
    refused: bool = False
    at: Millis = Millis(0)
    """When it was answered."""


class RequestOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of one of the user's own requests."""

    known: bool
    op: str = ""
    at: Millis | None = None
    jobs: tuple[int, ...] = ()
    """The jobs of a submission, including the tasks of its arrays."""
    refusal: Refusal | None = None
    """The answer, where it was refused."""
    words: bytes = b""
    """The hash of the command's words that the client sent with it."""


class RequestIds:
    """The ids of one command's acts: its own request id for the first, numbered ones for further acts.

    Repeating the same command gives the same ids to the same acts.
    """

    def __init__(self, request: str, *, required: bool = True, words: Callable[[], bytes] = bytes) -> None:
        """`required`: refuse an act rather than send it to a cluster that remembers no ids. `words`: returns a hash of
        what the user wrote, by which a repeat is recognised although its arguments were computed again."""
        self.required = required
        self.words = words
        self._request = request
        self._count = 0

    @property
    def count(self) -> int:
        """The number of the last act whose id was taken, or of the last one that was skipped."""
        return self._count

    @property
    def used(self) -> bool:
        """Whether the command has tried an act."""
        return self._count > 0

    def next(self) -> str:
        """Return the id of the command's next act."""
        self._count += 1
        return self.numbered(self._count)

    def skip_to(self, number: int) -> None:
        """Make `next` return the id of the act of this number, whether or not the acts before it were tried."""
        self._count = number - 1

    def numbered(self, number: int) -> str:
        """Return the id of the command's act of this number, counted from 1."""
        # The first act has the plain id: most commands have one act, and users look up what they gave.
        return f"{self._request}{PART}{number}" if number > 1 else self._request


def is_request_id(text: str) -> bool:
    """Return whether a person may use the text as a request id."""
    return _PATTERN.fullmatch(text) is not None


def names_request(text: str) -> bool:
    """Return whether the text may name a request: an id, also that of a command's further act."""
    whole, _, number = text.partition(PART)
    return is_request_id(whole) and (text == whole or (number.isascii() and number.isdigit()))
