"""Describes the place that a foreign job is submitted from: folder, user, variables."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """Handed to the readers, which look at no clock and no environment themselves."""

    now: datetime | None = None
    """The moment, in the zone in which the person tells the time; None: unknown, and local moments are refused."""
    variables: Mapping[str, str] | None = None
    """The environment of the submitting shell; None: it is not taken over."""


UNKNOWN = Submission()
