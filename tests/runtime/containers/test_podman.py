"""Jobs in containers of podman's: everything is as in cockpit's own."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.engine.effects import KeepContainer, RemoveContainer, SignalKind, SignalReplica, StartReplica
from cockpit.model.ids import NodeName, ReplicaId
from cockpit.model.mounts import Dataset, Volume
from cockpit.model.node import Allocation, Card, CardVendor
from cockpit.model.spec import HoldCards, Hooks
from tests.runtime.containers.conftest import IS_ROOT
from tests.runtime.containers.house import House, finish, until
from tests.runtime.containers.roots import make_root, packed
from tests.runtime.containers.store import containers, job, kept_images, podman
from tests.runtime.containers.test_limits import CGROUPS
from tests.runtime.containers.test_recovery import holder_pid, restart

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not IS_ROOT, reason="an ordinary user's images are copied, and its containers cockpit's own"),
]
CARDS = (Card(index=0, model="T", vendor=CardVendor.NVIDIA, uuid="GPU-7", devices=("/dev/fuse",)),)
LOOK = "ls /dev/fuse; echo cards=$CUDA_VISIBLE_DEVICES"


@pytest.fixture
async def image(house, trainer):
    """Its name; afterwards podman has nothing that was not there before."""
    yield trainer
    for path in list((house.state / "containers").iterdir()):
        await house.executor.remove(RemoveContainer(_named(path.name)))
    assert containers() == []


def _named(folder: str) -> ReplicaId:
    number, attempt, rank = map(int, folder.split("."))
    return ReplicaId(number, attempt, rank)


async def said(house: House, start: StartReplica, script: str) -> str:
    code, text = finish(await house.enter(start.replica, "sh", "-c", f"exec 2>&1; {script}"))
    assert code == 0, text
    return text


async def test_a_podman_container_runs_as_the_submitter_with_the_image_environment(house, image, ann):
    made = job(house, image, "train", user=ann)
    assert (await house.run(made)).ok, house.err(made)
    assert house.out(made) == f"trained with plum as {made.submitter.uid}\n"
    assert await house.cache.copies() == []
    status = "grep Cap /proc/self/status | sort -u -k2; grep Seccomp: /proc/self/status"
    look = f"sh -c '{status}; tail -1 /etc/passwd; hostname; touch /usr/x; ls -d /tmp'"
    plain = job(house, image, look, user=ann)
    assert (await house.run(plain)).ok
    *capabilities, filtered, user, host, tmp = house.out(plain).splitlines()
    assert filtered.split() == ["Seccomp:", "2"]
    assert [each.split()[1] for each in capabilities] == ["0000000000000000"]
    assert (user.split(":")[:3], host, tmp) == ([ann, "x", str(plain.submitter.uid)], "job-0", "/tmp")
    assert "Permission denied" in house.err(plain)


@pytest.mark.req("LA-70")
async def test_a_job_without_a_command_runs_the_images_command(house, image, trainer):
    packed(make_root(house.folder / "root"), house.folder / "root.tar")
    for own, change, out in (
        ("said", ['ENTRYPOINT ["echo", "entry"]', 'CMD ["default"]', "WORKDIR /opt"], ["entry default", "entry a b"]),
        ("cmd", ['CMD ["sh", "-c", "pwd"]', "WORKDIR /opt/app"], ["/opt/app", None]),
    ):
        name = trainer.replace(":1", f":{own}")
        podman("import", *(word for each in change for word in ("--change", each)), house.folder / "root.tar", name)
        for command, expected in zip(("entrypoint", "entrypoint a b"), out, strict=True):
            made = job(house, name, command)
            status = await house.run(made)
            if expected is None:
                assert f"the image {name} has no ENTRYPOINT" in (status.lost or "")
            else:
                assert (status.ok, house.out(made)) == (True, f"{expected}\n"), house.err(made)


async def test_a_running_podman_container_is_listed_opens_a_shell_and_is_terminated_and_killed(house, image):
    deaf = """sh -c 'trap "echo heard" TERM; echo begun >/tmp/note; echo begun; while :; do sleep 0.1; done'"""
    made = job(house, image, deaf, env={"FLAVOUR": "own"})
    await house.executor.start(made)
    assert "Podman container" in await house.started(made.replica)
    await until(lambda: house.out(made) == "begun\n")
    ((name, status, *_),) = (line.split() for line in containers())
    assert (name[:8], status) == ("cockpit-", "Up")
    assert podman("exec", name, "cat", "/tmp/note") == "begun"
    assert (await said(house, made, "train; pwd")).split() == ["trained", "with", "own", "as", "0", "/workspace"]
    await house.executor.signal(SignalReplica(made.replica, SignalKind.TERM))
    await until(lambda: house.out(made) == "begun\nheard\n")
    await house.executor.signal(SignalReplica(made.replica, SignalKind.KILL))
    assert (await house.ended(made.replica)).signal == 9


@pytest.mark.req("JT-30", "JT-24")
async def test_a_podman_container_has_its_mounts_and_runs_its_hooks(house, image, ann):
    for name in ("data", "vol, with: signs"):
        (house.folder / name).mkdir(mode=0o777)
        (house.folder / name).chmod(0o777)
    (house.folder / "data" / "one").write_text("1\n")
    data = Dataset(path=str(house.folder / "data"), name="digits", read_only=True)
    volume = Volume(path=str(house.folder / "vol, with: signs"), name="scratch")
    write = "cat /tmp/made /workspace/dataset/private/digits/one; echo kept >/workspace/volume/scratch/new"
    refused = "echo out >/workspace/outputs/new; echo no >/workspace/dataset/private/digits/two; exit 3"
    hooks = Hooks(before_start="echo made >/tmp/made", after_end="echo after $COCKPIT_EXIT_CODE; cat /tmp/made")
    made = job(house, image, f"sh -c '{write}; {refused}'", user=ann, datasets=(data,), volumes=(volume,), hooks=hooks)
    assert (await house.run(made)).code == 3
    assert house.out(made) == "made\n1\nafter 3\nmade\n"
    assert "Read-only file system" in house.err(made)
    assert (house.folder / "vol, with: signs" / "new").read_text() == "kept\n"
    assert (house.folder / f"out-{ann}" / "new").owner() == ann


@pytest.mark.skipif(not CGROUPS, reason="cgroups are not writable here")
async def test_limits_of_a_podman_container_apply_and_its_usage_is_counted(house, image):
    made = job(house, image, "sh -c 'head -c 300m /dev/zero | tail >/dev/null; exit $?'", memory_mib=64)
    status = await house.run(made)
    assert (status.oom, status.code) == (True, 137)
    assert 50 <= house.seen.used[made.replica].peak_memory_mib <= 64


@pytest.mark.req("JT-40", "JT-47")
async def test_a_failed_podman_container_is_committed_and_run_without_its_cards(house, image):
    house.cards = CARDS
    made = job(house, image, f"sh -c '{LOOK}; echo left >/opt/note; echo too >/tmp/note; sleep 99 & exit 3'")
    assert (await house.kept(made)).code == 3
    assert house.out(made).split() == ["/dev/fuse", "cards=GPU-7"]
    (line,) = containers()
    assert line.split()[1] == "Up"
    assert kept_images() == ["localhost/cockpit-kept"]
    entered = await house.enter(made.replica, "sh", "-c", "cat /opt/note /tmp/note; train; pwd; ps | grep -c [s]leep")
    assert (entered.facts.kept, entered.facts.remounted, entered.facts.cards_freed) == (True, False, True)
    assert finish(entered)[1].split() == [*("left", "too", "trained", "with", "plum", "as", "0", "/workspace", "0")]
    assert (await said(house, made, f"{LOOK} || true")).splitlines()[1] == "cards="
    assert "No such file" in (await said(house, made, f"{LOOK} || true"))
    podman("container", "prune", "--force")
    assert len(containers()) == 1
    await house.executor.remove(RemoveContainer(made.replica))
    assert kept_images() == []


@pytest.mark.req("JT-40", "TR-01")
async def test_a_held_podman_container_survives_engine_and_holder(house, image):
    house.cards = CARDS
    made = job(house, image, "sh -c 'echo left >/opt/note; exit 3'")
    await house.kept(made, HoldCards.KEEP)
    assert await said(house, made, "echo more >>/opt/note; cat /opt/note") == "left\nmore\n"
    first = holder_pid(house, made)
    restart(house)
    await house.executor.adopt([], [KeepContainer(made.replica, HoldCards.KEEP)])
    assert holder_pid(house, made) == first
    os.kill(first, signal.SIGKILL)
    await until(lambda: not house.executor._watched[made.replica].alive)
    assert await said(house, made, f"cat /opt/note; {LOOK}") == "left\nmore\n/dev/fuse\ncards=GPU-7\n"


@pytest.mark.req("TR-01")
async def test_a_restarted_engine_finds_running_podman_containers_and_removes_unknown_ones(house, image):
    gate = house.folder / "out-own" / "go"
    wait = "sh -c 'while [ ! -e /workspace/outputs/go ]; do sleep 0.1; done; exit 4'"
    named, forgotten = job(house, image, wait), job(house, image, "sleep 100")
    for each in (named, forgotten):
        await house.executor.start(each)
        await house.started(each.replica)
    restart(house)
    await house.executor.adopt([named], [])
    assert len(containers()) == 1
    gate.touch()
    assert (await house.ended(named.replica)).code == 4


async def test_a_killed_holder_ends_its_podman_container(house, image):
    made = job(house, image, "sleep 100")
    await house.executor.start(made)
    await house.started(made.replica)
    os.kill(holder_pid(house, made), signal.SIGKILL)
    assert "killed from outside" in (await house.ended(made.replica)).lost
    (name,) = (line.split()[0] for line in containers())
    podman("wait", name)


@pytest.mark.req("LA-10")
async def test_several_podman_replicas_have_their_own_network(house, image):
    first = job(house, image, "sh -c 'echo hello from $(hostname) | nc -l -p 2300'", nodes=2)
    hear = "sh -c 'until nc job-0 2300; do sleep 0.1; done; hostname -i'"
    second = replace(
        first,
        replica=ReplicaId(first.replica.job, 1, 1),
        spec=replace(first.spec, command=hear),
        allocation=Allocation(1, NodeName("n1"), 1, 256, ()),
    )
    house.placement = (first.allocation, second.allocation)
    for each in (first, second):
        await house.executor.start(each)
    for each in (first, second):
        assert (await house.ended(each.replica)).ok, house.err(each)
    assert house.out(second).split() == ["hello", "from", "job-0", "198.18.0.3"]


async def test_an_image_without_a_shell_reports_it(house, image):
    podman("build", "--quiet", "--network=none", "--tag", f"{image}-bare", _containerfile(house))
    status = await house.run(job(house, f"{image}-bare", "train"))
    assert "/bin/sh" in status.lost
    assert "podman_containers = false" in status.lost


def _containerfile(house: House) -> Path:
    folder = house.folder / "bare"
    folder.mkdir()
    (folder / "Containerfile").write_text("FROM scratch\nCOPY note /usr/note\n")
    (folder / "note").touch()
    return folder
