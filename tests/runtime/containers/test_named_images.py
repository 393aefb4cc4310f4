"""Containers of cockpit's own that begin with a copy of an image that podman has."""

from __future__ import annotations

import pytest

from cockpit.engine.effects import RemoveContainer, SignalKind, SignalReplica, StageReplica
from tests.runtime.containers.conftest import IS_ROOT
from tests.runtime.containers.house import finish
from tests.runtime.containers.store import containers, job, podman
from tests.runtime.containers.test_recovery import restart

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not IS_ROOT, reason="an ordinary user's podman needs ids of its own, which tests do not have"),
]


@pytest.fixture
async def image(house, trainer):
    """Its name."""
    house.podman = False
    restart(house)
    yield trainer
    assert containers() == []


async def test_a_named_image_has_its_programs_and_variables_and_runs_as_the_submitter(house, image, ann):
    made = job(house, image, "train", user=ann)
    assert (await house.run(made)).ok, house.err(made)
    assert house.out(made) == f"trained with plum as {made.submitter.uid}\n"
    own = job(house, image, "sh -c 'echo $FLAVOUR $HOME; train'", env={"FLAVOUR": "own", "PATH": "/bin"})
    await house.run(own)
    assert house.out(own) == f"own {own.submitter.home}\n" or house.out(own) == "own /tmp\n"
    assert "not found" in house.err(own)


@pytest.mark.req("JT-40")
async def test_a_shell_opens_in_the_held_container_of_a_removed_image(house, image):
    own = f"{image}-own"
    podman("tag", image, own)
    made = job(house, own, "sh -c 'echo left >/opt/note; exit 3'")
    await house.kept(made)
    podman("rmi", own)
    code, seen = finish(await house.enter(made.replica, "sh", "-c", "cat /opt/note; train; exit 7"))
    assert (code, seen) == (7, "left\ntrained with plum as 0\n")
    assert [each.jobs for each in await house.cache.copies()] == [(made.replica.job,)]
    await house.executor.remove(RemoveContainer(made.replica))


async def test_a_named_image_container_is_suspended_and_ends_as_any_other(house, image):
    made = job(house, image, "sh -c 'echo begun; sleep 100'")
    await house.executor.start(made)
    await house.started(made.replica)
    await house.executor.signal(SignalReplica(made.replica, SignalKind.TERM))
    assert (await house.ended(made.replica)).signal == 15


async def test_a_named_image_is_imported_once(house, image):
    first, second = job(house, image, "true"), job(house, image.replace(":1", ":1"), "true")
    for start in (first, second):
        await house.executor.stage(StageReplica(start))
    await house.seen.until(lambda: len(house.seen.staged) == 2)
    (copy,) = await house.cache.copies()
    assert (copy.what, copy.source, copy.jobs) == ("image", image, (first.replica.job, second.replica.job))


@pytest.mark.usefixtures("trainer")
async def test_a_missing_image_is_refused_with_advice(house):
    status = await house.run(job(house, "localhost/cockpit-none:7", "true"))
    assert status.lost == (
        "image: podman has no image localhost/cockpit-none:7 on this node; "
        "`podman pull localhost/cockpit-none:7` there gets it"
    )


async def test_a_node_with_neither_image_program_reports_it(house, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    status = await house.run(job(house, "torch:2", "true"))
    assert status.lost == (
        "image: torch:2 would be an image of podman or docker, and neither is on this node; install one, or write "
        "dir:PATH or tar:PATH"
    )
