"""Stages datasets on a disk of 64 MiB, a third of it taken, that others fill. Prints what was seen as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.e2e.cockpit_user import CockpitUser, eventually

MIB = 1 << 20


def dataset(user: CockpitUser, name: str, size: int) -> dict[str, object]:
    """The fields of a job that stages so many bytes."""
    folder = user.work / name
    folder.mkdir()
    (folder / "pictures").write_bytes(bytes(size))
    return {"name": name, "output": "out", "staging": True, "datasets": [{"path": str(folder), "read_only": True}]}


def status(user: CockpitUser) -> str:
    return str(user.row("nodes", "--all")["status"])


def story(user: CockpitUser, place: Path) -> dict[str, object]:
    large = user.submit("true", **dataset(user, "large", 40 * MIB))
    user.until(large, "error")
    left = [path.name for path in place.glob("cockpit-*/*")]
    jobs = [user.submit("true", **dataset(user, name, 18 * MIB)) for name in ("cats", "dogs")]
    ends = sorted(user.run("wait", job).returncode for job in jobs)
    whole = user.rows("staged")
    (place / "more").write_bytes(bytes(14 * MIB))
    user.kill_engine()
    eventually(lambda: status(user) == "drained")
    nodes = user.ok("nodes", "--all", "-o", "json")
    (place / "more").unlink()
    user.kill_engine()
    eventually(lambda: status(user) != "drained")
    return {"large": user.ok("job", large), "left": left, "ends": ends, "whole": len(whole), "nodes": nodes}


def main() -> None:
    user = CockpitUser(Path(sys.argv[1]))
    place = user.folder / "fast"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,mode=755", "none", place], check=True)
    (place / "others").write_bytes(bytes(21 * MIB))
    user.configure("cluster.toml", f'[staging]\nfolder = "{place}"\nfull = 80\n')
    try:
        told = story(user, place)
    finally:
        user.leave()
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
