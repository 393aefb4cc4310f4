"""Makes the same container's view with and without bubblewrap. Prints what each shows as JSON.

Run as root in namespaces of its own: `unshare --mount --pid --fork --kill-child python -m ...`.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

from cockpit.runtime.containers.shim import bubblewrap, linux, view, without_bubblewrap
from cockpit.runtime.containers.shim.bubblewrap import View

SHARED_MEMORY_BYTES = 8 << 20
DEVICE = "/dev/fuse"


def described(folder: Path) -> View:
    """A view of a folder that has one of everything."""
    for name in ("root/dev", "root/proc", "root/sys", "written", "read", "root/home", "root/secret"):
        (folder / name).mkdir(parents=True)
    (folder / "file").write_text("text")
    (folder / "root/secret/key").touch()
    return View(
        root=str(folder / "root"),
        binds=[
            (str(folder / "written"), "/home/written", True),
            (str(folder / "read"), "/home/read", False),
            (str(folder / "file"), "/home/deep/file", False),
        ],
        read_only=["/usr", "/no/such/folder"],
        masked=["/secret", "/var/masked"],
        devices=[DEVICE, "/dev/no-such-card"],
        shared_memory_bytes=SHARED_MEMORY_BYTES,
    )


def shown(namespace: int) -> dict[str, object]:
    """What a process sees that enters the namespace: mounts with their options, devices and links."""
    read, write = os.pipe()
    if os.fork() == 0:
        linux.setns(namespace, linux.CLONE_NEWNS)
        with os.fdopen(write, "w") as pipe:
            json.dump(_seen(), pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        seen: dict[str, object] = json.load(pipe)
    os.wait()
    return seen


def _seen() -> dict[str, object]:
    # The view has a /proc of the pid namespace that this process is in.
    mounts: dict[str, list[object]] = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, after = line.split(" - ")
        mounts[before.split()[4]] = [sorted(before.split()[5].split(",")), before.split()[6:], *after.split()[::2]]
    devices: dict[str, list[object]] = {}
    for path in sorted(Path("/dev").iterdir()):
        facts = path.lstat()
        devices[path.name] = [stat.filemode(facts.st_mode), path.is_symlink() and os.readlink(path)]
    return {
        "mounts": mounts,
        "devices": devices,
        "secret": os.listdir("/secret"),
        "names": sorted(os.listdir("/")),
        "file": Path("/home/deep/file").read_text(),
        "working": os.getcwd(),
    }


def main(folder: Path) -> None:
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_SLAVE)
    linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV)
    before = set(os.listdir("/proc/self/fd"))
    made, why = without_bubblewrap.make(described(folder / "without"), within_milliseconds=10_000)
    refused = without_bubblewrap.make(View(root="/no/such", shared_memory_bytes=1), within_milliseconds=10_000)
    told: dict[str, object] = {
        "why": why,
        "refused": refused,
        "left open": len(set(os.listdir("/proc/self/fd")) - before - {str(made)}),
        "left running": Path("/proc/self/task", str(os.getpid()), "children").read_text(),
        "without": shown(made),
    }
    if program := bubblewrap.installed():
        told["with"] = shown(view._run_bubblewrap(described(folder / "with"), program))
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
