"""What a container's plan becomes with the copies that its replica needs, and with the settings of its image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from cockpit.engine.effects import StartReplica
from cockpit.errors import SpecErrors
from cockpit.launch.command import ENTRYPOINT
from cockpit.launch.modes import AGENT_FOLDER
from cockpit.model.ids import NodeName, ReplicaId
from cockpit.model.mounts import Dataset
from cockpit.model.node import Allocation
from cockpit.model.staging import Progress
from cockpit.runtime.containers import plan
from cockpit.runtime.containers.copies import Copies, _needed_sources, of_image
from cockpit.runtime.containers.staging.fetching import FetchFailed, FetchKind, MeasuredSource, StagingSource
from tests.builders import ANN, a_spec
from tests.runtime.containers.test_plan import REPLICA, planned

pytestmark = pytest.mark.req("JT-50", "LA-70")
DATA = (Dataset(name="cats", path="/data/cats"), Dataset(name="dogs", path="/data/dogs"))


def start(**fields: Any) -> StartReplica:
    return StartReplica(REPLICA, a_spec(**fields), ANN, Allocation(1, NodeName("n"), 3, 2048))


class Cache:
    """Copies sources at once, those of `present` are there; each has 100 bytes."""

    def __init__(self) -> None:
        self.present: set[str] = set()
        self.podman: set[str] = set()
        self.failing: set[str] = set()
        self.left: list[str] = []
        self.during: list[Progress | None] = []
        self.progress: Callable[[], Progress | None] = lambda: None

    async def measured(self, wanted: StagingSource, _who: Any) -> tuple[MeasuredSource, bool]:
        by_podman = wanted.source in self.podman
        found = MeasuredSource(key=f"key of {wanted.source}", size=100, env={"A": "image"}, podman=by_podman)
        return found, not by_podman and wanted.source not in self.present

    async def have(
        self, wanted: StagingSource, _measured: Any, _who: Any, _replica: str, tell: Callable[[Progress], None]
    ) -> str:
        if wanted.source in self.failing:
            raise FetchFailed("gone")
        tell(Progress(40, 100, 7))
        self.during.append(self.progress())
        return f"/copies{wanted.source}"

    async def leave(self, replica: str) -> None:
        self.left.append(replica)


class Made:
    def __init__(self) -> None:
        self.cache, self.moved = Cache(), []
        cache: Any = self.cache
        self.copies = Copies(cache, self.moved.append)
        self.cache.progress = lambda: self.copies.progress(REPLICA)


@pytest.fixture
def made() -> Made:
    return Made()


def test_a_replica_lacks_copies_until_they_were_made(made: Made) -> None:
    assert not made.copies.lacks(start())
    assert not made.copies.lacks(start(datasets=DATA))
    assert made.copies.lacks(start(datasets=DATA, staging=True))
    assert made.copies.lacks(start(image="library/python:3.11"))


async def test_the_progress_of_all_copies_is_one_sum(made: Made) -> None:
    made.cache.present.add("/data/dogs")
    await made.copies.have(start(datasets=(*DATA, Dataset(name="owls", path="/data/owls")), staging=True))
    assert made.cache.during == [Progress(40, 200, 7), Progress(140, 200, 7), Progress(140, 200, 7)]
    assert made.copies.progress(REPLICA) is None
    assert made.moved == [REPLICA] * 5
    assert not made.copies.lacks(start(datasets=DATA, staging=True))
    await made.copies.leave(REPLICA)
    assert made.cache.left == [REPLICA.folder]
    assert made.copies.lacks(start(datasets=DATA, staging=True))


async def test_copies_that_fail_leave_no_progress(made: Made) -> None:
    made.cache.failing.add("/data/dogs")
    with pytest.raises(FetchFailed):
        await made.copies.have(start(datasets=DATA, staging=True))
    assert made.copies.progress(REPLICA) is None
    assert made.copies.lacks(start(datasets=DATA, staging=True))


async def test_mounts_with_copies_show_these(made: Made) -> None:
    effect = start(datasets=DATA, staging=True)
    before = planned(datasets=DATA)
    assert made.copies.laid_out(before, effect) is before
    await made.copies.have(effect)
    after = made.copies.laid_out(before, effect)
    sources = {mount.what: (mount.source, mount.copied) for mount in after.mounts}
    assert sources["datasets[0]"] == ("/copies/data/cats", True)
    assert sources["datasets[1]"] == ("/copies/data/dogs", True)
    assert sources["output"] == ("/data/out", False)
    other = replace(effect, replica=ReplicaId(REPLICA.job, 3, 1))
    assert made.copies.laid_out(before, other) is before


@pytest.mark.parametrize("by_podman", [False, True])
async def test_an_image_is_a_copy_or_podmans_own(made: Made, by_podman: bool) -> None:
    effect = start(image="library/python:3.11")
    before = planned(image="library/python:3.11")
    (wanted,) = _needed_sources(effect)
    assert wanted.kind is FetchKind.NAMED
    if by_podman:
        made.cache.podman.add(wanted.source)
    await made.copies.have(effect)
    after = made.copies.laid_out(before, effect)
    assert after.env["A"] == "b", "the job's own variable counts"
    if by_podman:
        assert (after.podman, after.image) == (f"key of {wanted.source}", None)
    else:
        assert after.podman == ""
        assert after.image is not None
        assert (after.image.source, after.image.copied) == (f"/copies{wanted.source}", True)


IMAGE = MeasuredSource(
    key="k",
    size=1,
    env={"PATH": "/image/bin", "LANG": "image", "A": "image", "PYTHONPATH": "/image/py"},
    entrypoint=("run",),
    cmd=("default",),
    workdir="/opt",
)


def under(before: plan.ContainerPlan, image: MeasuredSource = IMAGE, **fields: Any) -> plan.ContainerPlan:
    return of_image(before, image, a_spec(**fields))


def test_the_jobs_variables_count_before_cockpits_and_those_before_the_images() -> None:
    before = replace(planned(), env={"A": "cockpit", "PATH": "/usr/bin", "PYTHONPATH": "/cockpit/py"})
    found = under(before).env
    assert found == {
        "A": "cockpit",
        "PATH": "/image/bin",
        "LANG": "image",
        "PYTHONPATH": "/image/py:/cockpit/py",
    }
    own = under(before, env={"PATH": "/own", "PYTHONPATH": "/own/py", "LANG": "own"}).env
    assert own == {"A": "cockpit", "PATH": "/usr/bin", "PYTHONPATH": "/cockpit/py"}, "they are added with the command"
    bare = under(before, MeasuredSource(key="k", size=1)).env
    assert bare == before.env
    alone = under(replace(planned(), env={}))
    assert alone.env["PYTHONPATH"] == "/image/py"


def test_launchers_find_cockpits_programs_before_the_images() -> None:
    before = replace(planned(), env={"PATH": AGENT_FOLDER})
    assert under(before).env["PATH"] == f"{AGENT_FOLDER}:/image/bin"
    assert under(before, MeasuredSource(key="k", size=1)).env["PATH"] == AGENT_FOLDER
    assert under(replace(planned(), env={"PATH": "/usr/bin"})).env["PATH"] == "/image/bin"


@pytest.mark.parametrize(
    ("argv", "image", "runs"),
    [
        (("train", "x"), IMAGE, ("train", "x")),
        ((ENTRYPOINT,), IMAGE, ("run", "default")),
        ((ENTRYPOINT, "a"), IMAGE, ("run", "a")),
        ((ENTRYPOINT,), replace(IMAGE, entrypoint=()), ("default",)),
        ((ENTRYPOINT,), replace(IMAGE, cmd=()), ("run",)),
        ((ENTRYPOINT, "a"), replace(IMAGE, entrypoint=()), None),
        ((ENTRYPOINT,), replace(IMAGE, entrypoint=(), cmd=()), None),
    ],
)
def test_a_job_without_a_program_runs_that_of_its_image(argv: Any, image: MeasuredSource, runs: Any) -> None:
    before = replace(planned(), argv=argv, workdir="/workspace")
    if runs is None:
        with pytest.raises(SpecErrors, match="has no ENTRYPOINT; write the program that runs"):
            under(before, image)
        return
    found = under(before, image)
    assert found.argv == runs
    assert found.workdir == ("/workspace" if argv[0] == "train" else "/opt")
    assert under(before, replace(image, workdir="")).workdir == "/workspace"
