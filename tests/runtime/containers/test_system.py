from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec
import pytest

from cockpit.runtime.containers.shim import sources, spool, system
from tests.runtime.containers.test_plan import planned


def test_mounts_inside_system_folders_are_found_again():
    points = ["/", "/proc", "/usr", "/opt/shared", "/etc/resolv.conf", "/data/usr", "/usr/local/big"]
    assert system.inner_mounts(points, without=[]) == ["/opt/shared", "/etc/resolv.conf", "/usr/local/big"]
    assert system.inner_mounts(points, without=["/opt"]) == ["/etc/resolv.conf", "/usr/local/big"]


def test_mount_points_are_read_with_their_odd_names():
    assert system._unescape(rb"/opt/a\040b\134c") == "/opt/a b\\c"


@pytest.mark.parametrize("home", ["/home/ann", "/root", "/data/homes/ann", "/tmp/ann", "/var/lib/postgres"])
def test_an_ordinary_home_may_be_shown(home):
    assert sources._may_be_shown(home)


@pytest.mark.parametrize(
    "home", ["/", "", "/home", "/usr/games", "/var/tmp", "relative", "/home/../etc", "/dev/shm", "/bin"]
)
def test_a_system_folder_is_not_accepted_as_a_home(home):
    assert not sources._may_be_shown(home)


@pytest.mark.req("LA-71")
def test_a_batch_scripts_commands_are_in_usr_local_bin_where_the_job_may_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "upper/usr").mkdir(parents=True)
    files = {f"{spool.TOOLS}/srun": "#!/bin/sh", f"{spool.TOOLS}/scontrol": "#!/bin/sh", f"{spool.PLACE}/other": ""}
    plan = {**msgspec.to_builtins(planned()), "files": files, "rootless": True}
    before = os.umask(0o022)
    try:
        system.give_upper(plan, "usr")
    finally:
        os.umask(before)
    folder = tmp_path / "upper/usr/local/bin"
    assert {each.name: os.readlink(each) for each in folder.iterdir()} == {
        "srun": f"{spool.TOOLS}/srun",
        "scontrol": f"{spool.TOOLS}/scontrol",
    }
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755


@pytest.mark.req("LA-71")
def test_a_job_that_has_run_keeps_its_own_usr_local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "upper/usr").mkdir(parents=True)
    (tmp_path / "upper/usr/local").symlink_to("/elsewhere")
    plan = {**msgspec.to_builtins(planned()), "files": {f"{spool.TOOLS}/srun": "#!/bin/sh"}, "rootless": True}
    system.give_upper(plan, "usr")
    assert os.readlink(tmp_path / "upper/usr/local") == "/elsewhere"
