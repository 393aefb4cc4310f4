"""Makes a container's view, without bubblewrap, of a folder that never answers. Prints what was said as JSON.

Run as root in namespaces of its own: `unshare --mount --pid --fork --kill-child python -m ...`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from cockpit.runtime.containers.shim import linux, without_bubblewrap
from cockpit.runtime.containers.shim.bubblewrap import View


def mount_unanswered(target: Path) -> None:
    """Mount a FUSE file system whose server never reads a request."""
    target.mkdir()
    server = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={server},rootmode=40000,user_id=0,group_id=0"
    linux.mount("unanswered", str(target), "fuse", linux.MS_NOSUID | linux.MS_NODEV, options)


def main(folder: Path) -> None:
    root, hangs = folder / "root", folder / "hangs"
    root.mkdir()
    mount_unanswered(hangs)
    view = View(root=str(root), read_only=[str(hangs)], shared_memory_bytes=1 << 20)
    sys.stdout.write(json.dumps(without_bubblewrap.make(view, within_milliseconds=200)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
