"""What a container sees of the machine, and what the machine sees of it."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from msgspec.structs import replace

from cockpit.model.node import Card, CardVendor
from cockpit.model.spec import Algorithm, HoldCards, HomeAccess
from tests.mounts import mounts
from tests.runtime.containers.conftest import IS_ROOT

pytestmark = pytest.mark.real


EMPTY = ("/mnt", "/srv", "/tmp", "/var/lib", "/var/tmp")


@pytest.mark.parametrize("place", [None, "/var/tmp"], ids=["own home", "home in /var/tmp"])
async def test_only_system_folders_and_the_home_are_visible(house, place):
    job = house.job(f"ls -A / /run {' '.join(EMPTY)}; test -e /work && echo leaked")
    with TemporaryDirectory(prefix="cockpit-home-", dir=place) as home:
        if place:
            job = replace(job, submitter=replace(job.submitter, home=home))
        await house.run(job)
    sections = [section.splitlines() for section in house.out(job).split("\n\n")]
    system = {
        name for name in os.listdir("/") if name in {"usr", "etc", "opt", "bin", "sbin"} or name.startswith("lib")
    }
    own = {"dev", "proc", "sys", "tmp", "run", "root", "home", "workspace", "mnt", "media", "srv", "var"}
    expected = {"/": system | own, "/run": {"cockpit-python"}, **{folder: set() for folder in EMPTY}}
    for path in Path(job.submitter.home).parents:  # the home is mounted where it lies, such as in /var/tmp
        if str(path) in expected:
            expected[str(path)] |= {Path(job.submitter.home).relative_to(path).parts[0]}
    assert {name.removesuffix(":"): set(entries) for name, *entries in sections} == expected


async def test_the_home_is_mounted_read_only(house):
    job = house.job("test -d ~ && ls -A ~ | wc -l; touch ~/cockpit-t")
    await house.run(job)
    assert house.out(job) == f"{len(os.listdir(job.submitter.home))}\n"
    assert "Read-only file system" in house.err(job)


@pytest.mark.req("JT-27")
@pytest.mark.skipif(not IS_ROOT, reason="needs a second user")
@pytest.mark.parametrize(
    ("access", "sees", "writes"), [(HomeAccess.NONE, 1, 1), (HomeAccess.RO, 0, 1), (HomeAccess.RW, 0, 0)]
)
async def test_the_home_is_mounted_as_configured(house, ann, access, sees, writes):
    job = house.job(f"test -e /home/{ann}/.profile; echo $?; touch /home/{ann}/note; echo $?", user=ann, home=access)
    await house.run(job)
    assert house.out(job).split() == [str(sees), str(writes)]


@pytest.mark.skipif(not IS_ROOT, reason="needs a second user")
async def test_other_homes_are_not_visible(house, ann):
    own = house.job("ls /home; ls -A /root | wc -l", user=ann)
    await house.run(own)
    assert house.out(own).split() == [ann, "0"]
    roots = house.job("ls /home")
    await house.run(roots)
    assert house.out(roots) == ""


async def test_the_engines_state_is_not_visible_in_any_mount(house):
    """The whole house, state folder and all, given as the algorithm."""
    job = house.job("ls -A state; ls; touch state/x", algorithm=Algorithm(path=str(house.folder)))
    await house.run(job)
    assert house.out(job).split() == ["out-own", "state"]
    assert "Read-only file system" in house.err(job)


async def test_processes_of_the_machine_are_not_visible(house):
    job = house.job(
        "cat /proc/[0-9]*/comm; hostname; readlink /proc/1/root /proc/1/cwd /proc/1/fd/100 || cat /proc/1/environ"
    )
    await house.run(job)
    assert house.out(job).split()[:2] == ["cockpit-holder", "bash"]
    assert house.out(job).split()[-1] == "job-0"
    assert house.err(job) == "cat: /proc/1/environ: Permission denied\n"


@pytest.mark.skipif(not IS_ROOT, reason="only root could change the kernel's settings at all")
async def test_not_even_root_changes_the_kernel(house):
    before = Path("/proc/sys/kernel/core_pattern").read_text()
    job = house.job("echo '|/tmp/evil' >/proc/sys/kernel/core_pattern; echo 1 >/sys/fs/cgroup/memory/release_agent")
    await house.run(job)
    assert house.err(job).count("Read-only file system") == 2
    assert Path("/proc/sys/kernel/core_pattern").read_text() == before


async def test_a_running_container_adds_no_mount_to_the_machine(house):
    before = mounts()
    job = house.job("read x </workspace/outputs/go")
    (house.folder / "out-own").mkdir(mode=0o777)
    os.mkfifo(house.folder / "out-own" / "go")
    await house.executor.start(job)
    await house.started(job.replica)
    assert mounts() == before
    (house.folder / "out-own" / "go").write_text("\n")
    assert (await house.ended(job.replica)).lost == ""


@pytest.mark.req("JT-47", "JT-40")
async def test_a_container_sees_its_cards_and_loses_them_when_held(house):
    look = "ls /dev/fuse; echo cards=$CUDA_VISIBLE_DEVICES"
    house.cards = (Card(index=0, model="T", vendor=CardVendor.NVIDIA, uuid="GPU-7", devices=("/dev/fuse",)),)
    job = house.job(f"{look}; exit 3")
    await house.kept(job)
    assert house.out(job).split() == ["/dev/fuse", "cards=GPU-7"]
    for _ in range(2):
        code, seen = await house.shell(job.replica, look)
        assert seen.splitlines() == ["ls: cannot access '/dev/fuse': No such file or directory", "cards="]
        assert code == 0
    assert (await house.enter(job.replica, "true")).facts.cards_freed


@pytest.mark.req("JT-40")
async def test_cards_are_retained_where_the_job_requests_it(house):
    house.cards = (Card(index=0, model="T", vendor=CardVendor.NVIDIA, uuid="GPU-7", devices=("/dev/fuse",)),)
    job = house.job("exit 3")
    await house.kept(job, HoldCards.KEEP)
    assert (await house.shell(job.replica, "ls /dev/fuse; echo $CUDA_VISIBLE_DEVICES"))[1].split() == [
        "/dev/fuse",
        "GPU-7",
    ]
    assert not (await house.enter(job.replica, "true")).facts.cards_freed


async def test_a_job_without_cards_sees_no_device_of_the_machine(house):
    job = house.job("ls /dev")
    await house.run(job)
    assert set(house.out(job).split()) <= {
        *("core", "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom"),
        *("zero", "console"),
    }
