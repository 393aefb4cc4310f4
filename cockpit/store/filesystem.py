"""Which file system a path lies on, as the kernel's mount table says (proc(5), `/proc/pid/mountinfo`)."""

from __future__ import annotations

import re
from pathlib import Path, PurePath

# fmt: off
_NETWORK = frozenset({
    "9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "fhgfs", "gfs", "gfs2", "gpfs", "lustre", "ncpfs", "nfs",
    "nfs4", "ocfs2", "orangefs", "panfs", "pvfs2", "smb", "smb2", "smb3", "smbfs", "vboxsf", "wekafs",
})
_NETWORK_FUSE = frozenset({
    "ceph-fuse", "cephfs", "curlftpfs", "davfs2", "gcsfuse", "glusterfs", "goofys", "juicefs", "mfs", "moosefs",
    "rclone", "s3fs", "seaweedfs", "sshfs", "vmhgfs-fuse",
})
# fmt: on


def filesystem_of(path: Path, mount_table: Path = Path("/proc/self/mountinfo")) -> str:
    """The type (`ext4`, `nfs4`, `fuse.sshfs` …) of the mount that holds `path`, which must be absolute and resolved
    but need not exist; empty where the mount table cannot be read."""
    try:
        table = mount_table.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
    depth, kind = -1, ""
    for line in table.splitlines():
        point, mounted = _mount(line)
        # On the same mount point, the later line hides the earlier one.
        if path.is_relative_to(point) and len(point.parts) >= depth:
            depth, kind = len(point.parts), mounted
    return kind


def is_network(kind: str) -> bool:
    family, _, name = kind.partition(".")
    return name in _NETWORK_FUSE if family == "fuse" else kind in _NETWORK


def _mount(line: str) -> tuple[PurePath, str]:
    """Mount point and type. Optional fields end at a lone dash; the kernel writes space and the like in octal."""
    before, _, after = line.partition(" - ")
    point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), before.split(" ")[4])
    return PurePath(point), after.split(" ")[0]
