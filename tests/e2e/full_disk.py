"""Fills the disk that an engine's state folder is on, and empties it again. Prints what was seen as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.e2e.cockpit_user import CockpitUser, eventually
from tests.store.full_disk import fill

WAITS = "echo ran >> /workspace/outputs/ran; until test -e /workspace/outputs/go; do sleep 0.02; done; exit 6"


def story(user: CockpitUser) -> dict[str, object]:
    running = user.submit(WAITS, name="running", terminal=True)
    ran = user.work / "running/out/ran"
    eventually(ran.exists)
    user.until(running, "running")
    disk = user.folder / "state/cockpit-cluster"
    filler = fill(disk)
    file = user.job("true", name="refused", env={"PADDING": "x" * 30_000})
    refused = user.run("submit", str(file))
    listed = user.rows("jobs")
    trouble = user.row("engine", "status")
    (user.work / "running/out/go").touch()
    codes = [user.wait(running)]
    held = user.row("job", running)["held_until"]
    entered = user.ok("shell", running, "--", "echo", "inside")
    user.ok("holds", "end", running)
    eventually(lambda: not list((user.folder / "state/cockpit-cluster/containers").iterdir()))
    still_refused = user.run("submit", str(file)).returncode
    filler.unlink()
    eventually(lambda: not user.row("engine", "status")["trouble"])
    codes.append(user.wait(user.submit("exit 0", name="later")))
    names = sorted(row["name"] for row in user.rows("jobs", "--all"))
    same_engine = trouble["pid"] == user.engine_pid()
    user.ok("engine", "stop")
    (disk / "engine.log").write_bytes(b"")  # its last block has no room for a sentence either
    fill(disk)
    not_started = user.run("jobs")
    (disk / "filler").unlink()
    return {
        "refused": [refused.returncode, refused.stderr.decode()],
        "listed": [row["name"] for row in listed],
        "trouble": trouble["trouble"],
        "when_full": [held is not None, entered, still_refused],
        "codes": codes,
        "ran": ran.read_text(),
        "same_engine": same_engine,
        "names": names,
        "not_started": [not_started.returncode, not_started.stderr.decode()],
    }


def main() -> None:
    user = CockpitUser(Path(sys.argv[1]))
    disk = user.folder / "state/cockpit-cluster"
    disk.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m,mode=0700", "tmpfs", str(disk)], check=True)
    try:
        told = story(user)
    finally:
        user.leave()
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
