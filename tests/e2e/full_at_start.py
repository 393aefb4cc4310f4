"""Starts an engine while the disk that its state folder is on is full, and empties it. Prints what was seen as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.e2e.cockpit_user import CockpitUser, eventually
from tests.store.full_disk import fill


def story(user: CockpitUser, disk: Path) -> dict[str, object]:
    user.ok("engine", "start")
    filler = fill(disk)
    user.kill_engine()
    user.ok("engine", "start")
    eventually(lambda: user.row("engine", "status")["containers"].startswith("none: "))
    full = user.row("engine", "status")
    filler.unlink()
    eventually(lambda: not user.row("engine", "status")["trouble"])
    free = user.row("engine", "status")
    return {"trouble": full["trouble"], "containers": free["containers"], "same_engine": full["pid"] == free["pid"]}


def main() -> None:
    user = CockpitUser(Path(sys.argv[1]))
    disk = user.folder / "state/cockpit-cluster"
    disk.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m,mode=0700", "tmpfs", str(disk)], check=True)
    try:
        told = story(user, disk)
    finally:
        user.leave()
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
