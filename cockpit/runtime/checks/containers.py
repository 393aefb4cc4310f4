"""Check whether this machine can make containers: bubblewrap, namespaces, overlays, and networks for several nodes."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from cockpit.formats.mountinfo import network_filesystem
from cockpit.runtime.checks.surroundings import Surroundings
from cockpit.runtime.containers.shim.nat import nftables
from cockpit.runtime.containers.shim.usernet import PROGRAMS
from cockpit.runtime.findings import Finding, missing, note, ok
from cockpit.runtime.probe_command import Answer, Outcome
from cockpit.runtime.sysfiles import read_text

LACK = "Without it there are no containers: jobs run as plain processes, or not at all (plain_processes = false)."
UNAIDED = "cockpit then makes containers by itself, which fewer people have tried, and the demo has no terminals."
_OUTWARD = "network outward"
SYSCTLS = (
    ("kernel/unprivileged_userns_clone", "0", "1"),  # Debian's kernel patch
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),  # Ubuntu from 23.10
    ("user/max_user_namespaces", "0", "15000"),  # user_namespaces(7)
)
"""Settings below /proc/sys that forbid user namespaces: name, the forbidding value, an allowing value."""
BWRAP_TRIAL = (
    "bwrap",
    "--ro-bind",
    "/",
    "/",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--dev",
    "/dev",
    "true",
)
UNSHARE = ("unshare", "--mount", "--pid", "--fork", "--mount-proc")
AS_USER = ("--user", "--map-root-user")
MOUNTED = "cockpit-overlay-mounted"
# It uses paths relative to the folder $1, since commas and colons in a path would split overlayfs's options.
OVERLAY_SCRIPT = f"""
cd "$1" && mkdir upper work merged && mount -t overlay overlay -o "lowerdir=$2,upperdir=upper,workdir=work$3" merged &&
test -e merged/. && : > merged/.cockpit-doctor && echo {MOUNTED}
umount merged; rm -rf upper work merged
"""


def bubblewrap(around: Surroundings) -> list[Finding]:
    version = around.probe(("bwrap", "--version"))
    if version.outcome is Outcome.ABSENT:
        return [note("bubblewrap", "not installed", f"Run `apt-get install bubblewrap` as root: {UNAIDED}")]
    trial = around.probe(BWRAP_TRIAL) if version.ok else version
    if not trial.ok:
        return [missing("bubblewrap", f"does not run: {_why(trial)}", f"{LACK} See namespaces below.")]
    return [ok("bubblewrap", f"{version.first_line.removeprefix('bubblewrap ')}, runs")]


def namespaces(around: Surroundings) -> list[Finding]:
    """Check namespaces. Three sysctls can forbid them for ordinary users, a filter or security module for all users."""
    user = around.uid != 0
    forbidding = [row for row in SYSCTLS if user and read_text(around.root / "proc/sys" / row[0]).strip() == row[1]]
    if forbidding:
        return [_forbidden(*row) for row in forbidding]
    trial = around.probe((*UNSHARE, *(AS_USER if user else ()), "true"))
    # Without unshare(1) nothing can be tried; then the settings above are all that is known.
    if trial.ok or trial.outcome is Outcome.ABSENT:
        return [ok("namespaces", "can be made" if trial.ok else "no setting forbids them")]
    advice = "If this system is itself in a container, that container must allow it: `docker run --privileged`."
    return [missing("namespaces", f"refused: {_why(trial)}", f"{LACK} {advice}")]


def _forbidden(name: str, forbidding: str, allowing: str) -> Finding:
    sysctl = name.replace("/", ".")
    return missing(
        "namespaces",
        f"forbidden by {sysctl} = {forbidding}",
        f"{LACK} As root run `sysctl -w {sysctl}={allowing}`, or start the engine: `cockpit engine start --system`.",
    )


def outward(around: Surroundings) -> list[Finding]:
    """Check whether jobs with several nodes, which have a network of their own, can reach other networks from it."""
    if nftables(str(around.root)) is None:
        return [_no_way("nftables is not installed", "Run `apt-get install nftables` as root to have one.")]
    return [_outward_of_root(around) if around.uid == 0 else _outward_of_user(around)]


def _outward_of_root(around: Surroundings) -> Finding:
    if read_text(around.root / "proc/sys/net/ipv4/ip_forward").strip() != "1":
        return _no_way("this machine forwards nothing", "As root run `sysctl -w net.ipv4.ip_forward=1` to have one.")
    return ok(_OUTWARD, "jobs with several nodes have one, by NAT")


def _outward_of_user(around: Surroundings) -> Finding:
    installed = [program for program in PROGRAMS if around.probe((program, "--version")).outcome is not Outcome.ABSENT]
    if not installed:
        because = f"neither {' nor '.join(PROGRAMS)} is installed"
        return _no_way(because, "Run `apt-get install slirp4netns` as root to have one.")
    if not os.access(around.root / "dev/net/tun", os.R_OK | os.W_OK):
        return _no_way("/dev/net/tun is not open to you", "As root run `chmod 666 /dev/net/tun` to have one.")
    return ok(_OUTWARD, f"jobs with several nodes have one, by {installed[0]}")


def _no_way(because: str, advice: str) -> Finding:
    lack = "Jobs with several nodes reach each other all the same; jobs with one share the machine's network."
    return note(_OUTWARD, f"none for jobs with several nodes: {because}", f"{advice} {lack}")


def overlay(around: Surroundings) -> list[Finding]:
    """Mount an overlay for a moment, in a new mount namespace, on the file system that will hold the containers."""
    if network_filesystem(around.state_folder):
        return []  # the check of the state folder gives advice, and a trial on a network file system could hang
    existing = _existing_above(around.state_folder)
    if not os.access(existing, os.W_OK | os.X_OK):
        return []  # the folder of root's engine: only root can try, and the check of the state folder says so
    # As the containers do it (`shim.system`): an ordinary user's namespace refuses `/` as the lower layer.
    lower, options, how = ("/", "", "as root") if around.uid == 0 else ("/usr", ",userxattr", "as a user")
    with tempfile.TemporaryDirectory(prefix=".cockpit-doctor-", dir=existing, ignore_cleanup_errors=True) as folder:
        namespaces = ["--mount"] if around.uid == 0 else ["--mount", "--user", "--map-root-user"]
        answer = around.probe(("unshare", *namespaces, "sh", "-c", OVERLAY_SCRIPT, "sh", folder, lower, options))
    if MOUNTED in answer.text:
        return [ok("overlays", f"can be mounted {how}")]
    return [
        missing(
            "overlays",
            f"cannot be mounted {how} on the file system of {around.state_folder}: {_why(answer)}",
            "Without them jobs cannot change the system's folders, not even for themselves. Run `modprobe overlay` as "
            "root (for users: Linux 5.11), or put state_folder on ext4 or xfs.",
        )
    ]


def _existing_above(folder: Path) -> Path:
    return next(above for above in (folder, *folder.parents) if above.is_dir())


def _why(answer: Answer) -> str:
    if answer.outcome is Outcome.HUNG:
        return "it did not end in time"
    return answer.first_line or f"exit code {answer.code}"
