"""The time zone of this machine, with its rules for other days than today."""

from __future__ import annotations

import os
from datetime import datetime, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

_SYSTEM_ZONE = Path("/etc/localtime")


def local_zone() -> tzinfo:
    """Return the local time zone: that of `TZ`, else the machine's, else the present offset from UTC."""
    try:
        if name := os.environ.get("TZ", "").lstrip(":"):
            return ZoneInfo(name)
        with _SYSTEM_ZONE.open("rb") as file:
            return ZoneInfo.from_file(file)
    except (OSError, ValueError):
        zone = datetime.now().astimezone().tzinfo  # noqa: TID251 - made aware here
        assert zone is not None
        return zone
