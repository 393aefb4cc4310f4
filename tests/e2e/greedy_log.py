"""Runs a job that takes the whole disk of an engine's state folder for its log, again and again, beside other jobs and
a start of the engine. Prints what was seen as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.e2e.cockpit_user import CockpitUser, eventually

TAKES_ALL = """
import os
import time
pulses = open("/workspace/outputs/pulses", "w")
while not os.path.exists("/workspace/outputs/go"):
    os.ftruncate(1, 0)
    disk = os.fstatvfs(1)
    try:
        os.posix_fallocate(1, 0, disk.f_bavail * disk.f_frsize)
    except OSError:
        continue
    print("again", file=pulses, flush=True)
    time.sleep(0.1)
"""
OTHERS = 12


def story(user: CockpitUser) -> dict[str, object]:
    user.write("greedy/algo/take.py", TAKES_ALL)
    greedy = user.submit("exec python3 /workspace/algorithm/take.py", name="greedy")
    pulses = user.work / "greedy/out/pulses"
    eventually(lambda: pulses.exists() and pulses.read_text().count("again") > 10)
    codes, refused = [], []
    for number in range(OTHERS):
        file = user.job(f"exit {number}", name=f"other-{number}")
        while True:
            submitted = user.run("submit", str(file))
            if submitted.returncode == 0:
                break
            refused.append((submitted.returncode, submitted.stderr.decode()))
        job = submitted.stdout.decode().split()[-1]
        if number == OTHERS // 2:
            user.kill_engine()
        codes.append(user.wait(job))
    (user.work / "greedy/out/go").touch()
    last = user.wait(greedy)
    eventually(lambda: not user.row("engine", "status")["trouble"])
    checked = user.run("doctor", "--journal")
    return {
        "refused": refused,
        "codes": codes,
        "last": last,
        "names": sorted(row["name"] for row in user.rows("jobs", "--all")),
        "journal": [checked.returncode, checked.stdout.decode()],
    }


def main() -> None:
    user = CockpitUser(Path(sys.argv[1]))
    disk = user.folder / "state/cockpit-cluster"
    disk.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,mode=0700", "tmpfs", str(disk)], check=True)
    try:
        told = story(user)
    finally:
        user.leave()
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
