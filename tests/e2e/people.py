"""The ordinary users that tests make and remove again."""

from __future__ import annotations

import os
import zlib

_OURS = zlib.crc32(f"{__file__}{os.environ.get('PYTEST_XDIST_WORKER')}".encode()) % 10_000
ANN, BOB, CAROL, LAB = (f"cockpit-{_OURS}-{who}" for who in ("ann", "bob", "carol", "lab"))
"""Of this checkout and worker alone: others' tests may run beside it. Ann alone is in the group."""
