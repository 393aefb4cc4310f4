"""Client-made ids of acting requests: what may be one, and what is remembered of a request that was answered."""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from cockpit.model.ids import Millis
from cockpit.model.refusal import Refusal

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
    """Identifies operation and arguments, so that another request under the same id is noticed. May be empty."""
    refused: bool = False
    at: Millis = Millis(0)
    """When it was answered."""


class RequestOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of a request id of the asker's."""

    known: bool
    op: str = ""
    at: Millis | None = None
    jobs: tuple[int, ...] = ()
    """Of a submission: every job of it, the tasks of its arrays included."""
    refusal: Refusal | None = None
    """The answer, where it was refused."""


def is_request_id(text: str) -> bool:
    """Whether a person may use the text as a request id."""
    return _PATTERN.fullmatch(text) is not None


def part_of(request: str, number: int) -> str:
    """The id of a command's act: the command's own id for the first one (0), numbered ids for the others."""
    return f"{request}{PART}{number}" if number else request
