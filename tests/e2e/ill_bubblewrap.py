"""Takes bubblewrap away from this machine, or makes it hang. Prints what was seen as JSON."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

from tests.e2e.cockpit_user import CockpitUser

HANGS = "#!/bin/sh\nexec sleep 1000\n"


def take_away(folder: Path) -> None:
    """An overlay on /usr/bin in which the file has been removed (a whiteout, as overlayfs has them)."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(folder)], check=True)
    for name in ("upper", "work"):
        (folder / name).mkdir()
    os.mknod(folder / "upper/bwrap", stat.S_IFCHR, os.makedev(0, 0))
    layers = f"lowerdir=/usr/bin,upperdir={folder}/upper,workdir={folder}/work"
    subprocess.run(["mount", "-t", "overlay", "-o", layers, "overlay", "/usr/bin"], check=True)


def make_hang(folder: Path) -> None:
    folder.mkdir()
    fake = folder / "bwrap"
    fake.write_text(HANGS)
    fake.chmod(0o755)
    subprocess.run(["mount", "--bind", str(fake), "/usr/bin/bwrap"], check=True)


LOOKS_AROUND = """
ls /dev | xargs; ls -A /run /var/tmp | xargs; ls -d {state} 2>&1 | grep -c "No such file"
for path in /sys/x /proc/sys/kernel/x; do touch $path 2>/dev/null && echo wrote $path; done
python3 -c 'import cockpit.elastic, kubeai.elastic as kubeai; print(kubeai.check_alive(), kubeai.__file__)'
echo mine >/tmp/here; echo mine >/workspace/outputs/here; echo mine >/workspace/algorithm/here; exit 3
"""


def story(user: CockpitUser) -> dict[str, object]:
    """A job looks around and fails; it is kept and entered."""
    script = LOOKS_AROUND.format(state=user.folder / "state")
    job = user.submit(script, terminal=True)
    listed = user.rows("jobs", "--all")
    doctor = user.run("doctor", "-o", "json")
    findings = {row["subject"]: row for row in json.loads(doctor.stdout)["rows"]}
    code = user.wait(job)
    return {
        "names": [row["name"] for row in listed],
        "states_at_once": [row["state"] for row in listed],
        "code": code,
        "state": user.row("job", job)["state"],
        "page": user.ok("job", job),
        "saw": user.ok("logs", job).splitlines(),
        "entered": user.run("shell", job, "--", "sh", "-c", "cat /tmp/here; id -u").stdout.decode().split(),
        "brought_out": [path.read_text() for path in (user.work / "job").glob("*/here")],
        "containers": user.row("engine", "status")["containers"],
        "doctor": [doctor.returncode, findings["bubblewrap"]],
    }


def main() -> None:
    """`FOLDER missing|hanging [PYTHON USER]`: as that user, with a Python that they can run."""
    folder, illness, *who = sys.argv[1:]
    user = CockpitUser(Path(folder), python=who[0], user=who[1]) if who else CockpitUser(Path(folder))
    {"missing": take_away, "hanging": make_hang}[illness](user.folder / "ill")
    try:
        told = story(user)
    finally:
        user.leave()
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
