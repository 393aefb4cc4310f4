"""On which file system a path lies. SQLite's locks and overlays need a local one.

Format: /proc/self/mountinfo, proc(5).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from cockpit.runtime.sysfiles import read_text

# fmt: off
NETWORK_KINDS = frozenset((
    "9p", "acfs", "afs", "beegfs", "ceph", "cifs", "coda", "fhgfs", "gfs2", "glusterfs", "gpfs", "lustre",
    "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "panfs", "pvfs2", "smb2", "smb3", "smbfs", "vboxsf", "wekafs",
))
# fmt: on
NETWORK_FUSE = re.compile(
    r"^fuse\.(sshfs|glusterfs|ceph.*|s3fs|rclone|gcsfuse|juicefs|davfs2?|gvfsd-fuse|mfs|curlftpfs)$"
)


def filesystem_kind(path: Path, mountinfo: str | None = None) -> str:
    """The type of the file system that the absolute `path` lies on, or will once it exists; empty when nothing tells.

    Nothing is touched on the way, since that could hang; so symbolic links are taken for folders.
    """
    text = read_text(Path("/proc/self/mountinfo")) if mountinfo is None else mountinfo
    kind, longest = "", -1
    for line in text.splitlines():
        fields, _, special = line.partition(" - ")
        columns = fields.split(" ")
        point = _unescaped(columns[4]) if len(columns) > 4 else ""
        if point and len(point) >= longest and _contains(point, str(path)):
            kind, longest = special.partition(" ")[0], len(point)
    return kind


def network_filesystem(path: Path, mountinfo: str | None = None) -> str | None:
    """Its type where the absolute `path` lies on a network file system; None where it is local."""
    kind = filesystem_kind(path, mountinfo)
    if not _is_network(kind):
        kind = filesystem_kind(Path(os.path.realpath(path)), mountinfo)
    return kind if _is_network(kind) else None


def _is_network(kind: str) -> bool:
    return kind in NETWORK_KINDS or NETWORK_FUSE.match(kind) is not None


def _contains(point: str, path: str) -> bool:
    return point in ("/", path) or path.startswith(f"{point}/")


def _unescaped(point: str) -> str:
    """mountinfo writes space, tab, newline and backslash as three octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), point)
