"""Finds the file system of a path in the kernel's mount table. SQLite's locks and overlays need a local one.

Format: /proc/self/mountinfo, proc(5).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

# fmt: off
_NETWORK = frozenset({
    "9p", "acfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "fhgfs", "gfs", "gfs2", "glusterfs", "gpfs",
    "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "panfs", "pvfs2", "smb", "smb2", "smb3", "smbfs", "vboxsf",
    "wekafs",
})
_NETWORK_FUSE = frozenset({
    "ceph", "ceph-fuse", "cephfs", "curlftpfs", "davfs", "davfs2", "gcsfuse", "glusterfs", "goofys", "gvfsd-fuse",
    "juicefs", "mfs", "moosefs", "rclone", "s3fs", "seaweedfs", "sshfs", "vmhgfs-fuse",
})
# fmt: on


def network_filesystem(path: Path, table: str | None = None) -> str | None:
    """Return the type (`nfs4`, `fuse.sshfs` …) of the network file system of the absolute `path`; None where it is
    local. `table`: the mount table, by default this process's.

    The path is looked at as it is written before its links are followed, since following one could hang.
    """
    if table is None:
        table = _own_table()
    kind = filesystem_kind(path, table)
    if not is_network(kind):
        kind = filesystem_kind(Path(os.path.realpath(path)), table)
    return kind if is_network(kind) else None


def filesystem_kind(path: Path, table: str) -> str:
    """Return the type of the mount that `path` lies on, or will once it exists; empty when nothing tells.

    `path`: absolute. Nothing is touched, so symbolic links are taken for folders.
    """
    kind, longest = "", -1
    for line in table.splitlines():
        # proc(5): the fields before the dash vary in number; behind it are type, source and options.
        before, _, special = line.partition(" - ")
        columns = before.split(" ")
        point = _unescape(columns[4]) if len(columns) > 4 else ""
        # On the same mount point, the later line hides the earlier one.
        if point and len(point) >= longest and (point in ("/", str(path)) or str(path).startswith(f"{point}/")):
            kind, longest = special.partition(" ")[0], len(point)
    return kind


def is_network(kind: str) -> bool:
    family, _, name = kind.partition(".")
    return name in _NETWORK_FUSE if family == "fuse" else kind in _NETWORK


def _own_table() -> str:
    try:
        return Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def _unescape(point: str) -> str:
    """Return a path of mountinfo, which writes space, tab, newline and backslash as three octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), point)
