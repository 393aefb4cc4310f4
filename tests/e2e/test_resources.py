"""Jobs that take more than they were given: they are stopped at their own limit, told why, and nobody else notices."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cockpit.runtime.containers.shim import cgroups
from tests.e2e.cockpit_user import eventually

if TYPE_CHECKING:
    from tests.e2e.cockpit_user import CockpitUser

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]

CGROUPS = all(os.access(Path(cgroups.MOUNT, controller), os.W_OK) for controller in cgroups.CONTROLLERS)
in_groups = pytest.mark.skipif(not CGROUPS, reason="cgroups are not writable here")

EATS_MEMORY = "exec tail /dev/zero"
FORKS = "exec sh -c 'while :; do sleep 300 & done'"
FILLS = "head -c 100M /dev/zero >{place}/big || stat -c %s {place}/big"
SMALL = [{"cpus": 1, "memory": "48M", "cards": 0}]


@in_groups
@pytest.mark.req("JT-40")
def test_a_job_that_exceeds_its_memory_is_killed_with_the_reason_and_held(user: CockpitUser) -> None:
    job = user.submit(EATS_MEMORY, specs=SMALL, terminal=True)
    assert user.wait(job) == 137
    row = user.row("jobs", "--filter", f"id:{job}")
    assert (row["state"], row["exit_code"]) == ("error", 137)
    assert row["held_until"] is not None
    assert row["why"] == "exit 137: it used more memory than it asked for"
    page = user.ok("job", job)
    assert "Exit 137: it used more memory than it asked for." in page
    assert "limits: cgroup" in page
    assert user.ok("shell", job, "--", "echo", "inside") == "inside\n"


@in_groups
def test_a_fork_bomb_is_stopped_by_its_limit_and_other_jobs_continue(user: CockpitUser) -> None:
    user.configure("config.toml", "pids_limit = 32\n")
    bomb = user.submit(FORKS, name="bomb")
    user.wait(bomb)
    assert user.row("job", bomb)["state"] == "error"
    assert "Cannot fork" in user.ok("logs", bomb, "--stderr")
    assert user.wait(user.submit("echo fine", name="other")) == 0


def test_a_full_scratch_folder_hurts_only_its_job(user: CockpitUser) -> None:
    user.configure("config.toml", 'scratch_size = "8M"\n')
    full = user.submit(f"echo before >/var/tmp/kept; {FILLS.format(place='/tmp')}; exit 4", name="full", terminal=True)
    assert user.wait(full) == 4
    assert 7 << 20 < int(user.ok("logs", full)) <= 8 << 20
    assert "No space left on device" in user.ok("logs", full, "--stderr")
    assert user.ok("shell", full, "--", "cat", "/var/tmp/kept") == "before\n"
    assert user.wait(user.submit("echo fine >/tmp/mine", name="other")) == 0


def used_bytes(folder: Path) -> int:
    """Return the bytes on disk of the files below `folder`; other programs on the same disk do not count."""
    used = 0
    for place, _, files in os.walk(folder):
        for file in files:
            with suppress(FileNotFoundError):  # removed between the listing and the look
                used += os.lstat(Path(place, file)).st_blocks * 512
    return used


def test_files_that_a_job_writes_into_system_folders_are_removed_with_its_container(user: CockpitUser) -> None:
    job = user.submit("head -c 64M /dev/zero >/usr/big; rm /etc/hostname; exit 3", terminal=True)
    assert user.wait(job) == 3
    assert not Path("/usr/big").exists()
    assert Path("/etc/hostname").exists()
    assert used_bytes(user.folder) >= 64 << 20, "the held container has the file"
    user.ok("holds", "end", job)
    eventually(lambda: used_bytes(user.folder) < 32 << 20)
