"""Containers that begin with an image that podman has. Tests bring their own; nothing is pulled."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cockpit.engine.effects import Force, RemoveContainer, SignalReplica, StageReplica
from tests.runtime.containers.conftest import IS_ROOT
from tests.runtime.containers.house import House, finish
from tests.runtime.containers.roots import make_root, packed

if TYPE_CHECKING:
    from cockpit.engine.effects import StartReplica

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not IS_ROOT, reason="an ordinary user's podman needs ids of its own, which tests do not have"),
]
PATH = "/opt/app/bin:/bin"


def podman(*words: object) -> str:
    """Out of sight of other tests, which compare mounts."""
    done = subprocess.run(
        ["unshare", "--mount", "podman", *map(str, words)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def store(house, monkeypatch) -> None:
    """A podman that knows nothing of the machine's own images, nor of other tests'."""
    file = house.folder / "storage.conf"
    places = {"graphroot": house.folder / "store", "runroot": house.folder / "store-run"}
    lines = "".join(f'{name} = "{place}"\n' for name, place in places.items())
    file.write_text(f'[storage]\ndriver = "vfs"\n{lines}')
    monkeypatch.setenv("CONTAINERS_STORAGE_CONF", str(file))


@pytest.fixture
def image(house, store):
    """Its name. Programs of its own lie where only its PATH leads."""
    root = make_root(house.folder / "packing")
    (root / "opt" / "app" / "bin").mkdir()
    (root / "opt" / "app" / "bin" / "train").write_text("#!/bin/sh\necho trained with $FLAVOUR as $(id -u)\n")
    (root / "opt" / "app" / "bin" / "train").chmod(0o755)
    letters = "".join(filter(str.isalnum, house.folder.name.lower()))  # all that may stand anywhere in a name
    name = f"localhost/cockpit-test-{letters}:1"
    variables = ("--change", f"ENV PATH={PATH}", "--change", "ENV FLAVOUR=plum", "--change", "ENV HOME=/nowhere")
    podman("import", *variables, packed(root, house.folder / "root.tar"), name)
    yield name
    assert podman("ps", "--all", "--format", "{{.Names}}") == ""


def job(house: House, image: str, command: str, **spec) -> StartReplica:
    made = house.job("", image=image, **spec)
    return replace(made, spec=replace(made.spec, command=command))


async def test_its_programs_and_variables_are_there_and_it_runs_as_the_submitter(house, image, ann):
    made = job(house, image, "train", user=ann)
    assert (await house.run(made)).ok, house.err(made)
    assert house.out(made) == f"trained with plum as {made.submitter.uid}\n"
    own = job(house, image, "sh -c 'echo $FLAVOUR $HOME; train'", env={"FLAVOUR": "own", "PATH": "/bin"})
    await house.run(own)
    assert house.out(own) == f"own {own.submitter.home}\n" or house.out(own) == "own /tmp\n"
    assert "not found" in house.err(own)


@pytest.mark.req("JT-40")
async def test_a_failed_one_is_kept_and_entered_also_when_the_image_is_gone(house, image):
    made = job(house, image, "sh -c 'echo left >/opt/note; exit 3'")
    await house.kept(made)
    podman("rmi", "--force", image)
    podman("import", house.folder / "root.tar", image)
    code, seen = finish(await house.enter(made.replica, "sh", "-c", "cat /opt/note; train; exit 7"))
    assert (code, seen) == (7, "left\ntrained with plum as 0\n")
    assert [each.jobs for each in await house.depot.copies()] == [(made.replica.job,)]
    await house.executor.remove(RemoveContainer(made.replica))


async def test_it_stands_still_and_ends_as_any_other(house, image):
    made = job(house, image, "sh -c 'echo begun; sleep 100'")
    await house.executor.start(made)
    await house.started(made.replica)
    await house.executor.signal(SignalReplica(made.replica, Force.TERM))
    assert (await house.ended(made.replica)).signal == 15


async def test_it_is_taken_over_once(house, image):
    first, second = job(house, image, "true"), job(house, image.replace(":1", ":1"), "true")
    for start in (first, second):
        await house.executor.stage(StageReplica(start))
    await house.seen.until(lambda: len(house.seen.staged) == 2)
    (copy,) = await house.depot.copies()
    assert (copy.what, copy.source, copy.jobs) == ("image", image, (first.replica.job, second.replica.job))


@pytest.mark.usefixtures("store")
async def test_an_image_that_is_not_there_is_refused_with_what_to_do(house):
    status = await house.run(job(house, "localhost/cockpit-none:7", "true"))
    assert status.lost == (
        "image: podman has no image localhost/cockpit-none:7 on this node; "
        "`podman pull localhost/cockpit-none:7` there gets it"
    )


async def test_a_node_with_neither_program_says_so(house, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    status = await house.run(job(house, "torch:2", "true"))
    assert status.lost == (
        "image: torch:2 would be an image of podman or docker, and neither is on this node; install one, or write "
        "dir:PATH or tar:PATH"
    )
