"""Root file systems for tests, made on the spot: a static busybox and what a system has at least."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path

import pytest

BUSYBOX = "/bin/busybox"
APPLETS = (
    *("sh", "ls", "cat", "echo", "touch", "readlink", "id", "sleep", "env", "mount", "test", "wc", "true", "head"),
    *("grep", "hostname", "nc", "ps", "pwd", "sort", "tail"),
)


def make_root(folder: Path) -> Path:
    """The folder, with a system in it whose programs are no machine's. Skips the test where Debian's busybox-static,
    which an ordinary user cannot install, is missing."""
    if not Path(BUSYBOX).exists():
        pytest.skip("busybox-static is not installed")
    for name in ("bin", "etc", "usr/lib", "opt/app", "var/lib/app", "tmp", "root"):
        (folder / name).mkdir(parents=True)
    folder.chmod(0o755)
    shutil.copy(BUSYBOX, folder / "bin" / "busybox")
    for name in APPLETS:
        os.symlink("busybox", folder / "bin" / name)
    (folder / "etc" / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (folder / "etc" / "release").write_text("a root of its own\n")
    (folder / "opt" / "app" / "data").write_text("as it came\n")
    (folder / "entry.sh").write_text("echo entered\n")
    return folder


def packed(root: Path, file: Path, mode: str = "w") -> Path:
    """The root as a tar file."""
    with tarfile.open(file, mode) as archive:
        archive.add(root, ".")
    return file
