"""Check the folders that an engine writes to: the state folder, its disk, and the socket folder."""

from __future__ import annotations

import os
from pathlib import Path

from cockpit.errors import RuntimeMissing
from cockpit.formats.mountinfo import network_filesystem
from cockpit.runtime.checks.surroundings import Surroundings
from cockpit.runtime.findings import Finding, missing, note, ok
from cockpit.runtime.socket_folder import trusted_socket_folder

BYTES_PER_GIB = 1 << 30
SCARCE_GIB = 2.0
EMPTY_GIB = 0.1


def state_folder(around: Surroundings) -> list[Finding]:
    folder = around.state_folder
    if around.system and around.uid != 0:
        return [ok("state folder", f"{folder}, which only root can read")]
    if kind := network_filesystem(folder):
        advice = "SQLite's locks do not hold there. Set state_folder in config.toml to a folder on a local disk."
        return [missing("state folder", f"{folder} is on a network file system ({kind})", advice)]
    existing = next(above for above in (folder, *folder.parents) if above.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        advice = "No engine can run. Set state_folder in config.toml to a folder of yours, or fix its permissions."
        return [missing("state folder", f"{existing} is not a folder that you can write to", advice)]
    found = str(folder) if existing == folder else f"{folder} (will be made)"
    return [ok("state folder", found), _space(existing)]


def _space(folder: Path) -> Finding:
    stats = os.statvfs(folder)
    gib = stats.f_bavail * stats.f_frsize / BYTES_PER_GIB
    found = f"{gib:.1f} GiB free for the journal and containers"
    if gib < EMPTY_GIB or (stats.f_files and not stats.f_favail):
        return missing("disk", found, f"No job can be accepted. Free some space or files on the disk of {folder}.")
    if gib < SCARCE_GIB:
        return note("disk", found, "Held containers occupy disk space: `cockpit holds end` frees it.")
    return ok("disk", found)


def socket_folder(around: Surroundings) -> list[Finding]:
    folder = around.socket.parent
    try:
        owner = 0 if around.system else around.uid
        exists = trusted_socket_folder(around.socket, owner, create=False, shared=around.system)
    except RuntimeMissing as wrong:
        return [
            missing("socket folder", str(wrong), f"No engine can be reached: `rm -r {folder}` as its owner or root.")
        ]
    return [ok("socket folder", str(folder) if exists else f"{folder} (will be made)")]
