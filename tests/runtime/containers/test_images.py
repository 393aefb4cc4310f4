"""Containers that begin with a root file system of their own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.model.spec import Volume
from tests.runtime.containers.conftest import IS_ROOT
from tests.runtime.containers.house import House, finish
from tests.runtime.containers.roots import make_root

pytestmark = pytest.mark.real


@pytest.fixture
def root(house) -> Path:
    return make_root(house.folder / "root")


def job(house: House, image: str, script: str, **spec):
    made = house.job(script, image=image, **spec)
    return replace(made, spec=replace(made.spec, command=made.spec.command.replace("bash", "sh", 1)))


async def test_a_job_sees_its_image_and_no_files_of_the_machines_system(house, root):
    made = job(house, f"dir:{root}", "cat /etc/release; ls /; readlink /bin/sh; cat /entry.sh; ls -d /usr/bin")
    await house.run(made)
    listed = house.out(made).splitlines()
    assert listed[0] == "a root of its own"
    assert listed[-2:] == ["busybox", "echo entered"]
    own = {"dev", "home", "media", "mnt", "proc", "root", "run", "srv", "sys", "tmp", "workspace"}
    assert set(listed[1:-2]) == own | {"bin", "etc", "usr", "opt", "var", "entry.sh"}
    assert "/usr/bin: No such file" in house.err(made)


async def test_changes_that_a_job_makes_in_its_image_are_private_to_it(house, root):
    made = job(
        house, f"dir:{root}", "echo x >/opt/new; echo y >/bin/added; ls /opt /bin/added; id -u >/workspace/outputs/uid"
    )
    assert (await house.run(made)).ok, house.err(made)
    assert house.out(made).split() == ["/bin/added", "/opt:", "app", "new"]
    assert sorted(os.listdir(root / "opt")) == ["app"]
    assert not (root / "bin" / "added").exists()
    assert (house.folder / "out-own" / "uid").read_text() == f"{os.geteuid()}\n"


async def test_a_job_has_a_temporary_folder_of_its_own_beside_the_one_of_an_image_with_a_var(house, root):
    (root / "var" / "tmp").mkdir()
    (root / "var" / "tmp" / "note").write_text("of the image\n")
    show = "ls /var/tmp; ls -ld /tmp /var/tmp | head -c 10"
    made = job(house, f"dir:{root}", show)
    await house.run(made)
    assert house.out(made) == "note\ndrwxrwxrwt", house.err(made)
    subprocess.run(["rm", "-r", root / "var"], check=True)
    made = job(house, f"dir:{root}", f"{show}; touch /var/tmp/new", output=str(house.folder / "out-other"))
    await house.run(made)
    assert house.out(made) == "drwxrwxrwt", house.err(made)


@pytest.mark.req("JT-40")
async def test_a_shell_of_the_image_opens_in_its_held_container(house, root):
    made = job(house, f"dir:{root}", "echo left >/opt/note; exit 3")
    await house.kept(made)
    entered = await house.enter(made.replica, "sh", "-c", "cat /opt/note /etc/release; ls /usr; exit 7")
    code, seen = finish(entered)
    assert (code, seen) == (7, "left\na root of its own\nlib\n")


async def test_a_job_in_an_image_has_its_host_name_and_user(house, root, ann):
    made = job(house, f"dir:{root}", "cat /etc/hostname; cat /etc/hosts; id -un; cat /etc/resolv.conf", user=ann)
    await house.run(made)
    out = house.out(made)
    assert out.startswith("job-0\n127.0.1.1 job-0\n")
    assert made.submitter.name in out.split()
    assert Path("/etc/resolv.conf").read_text() in out
    assert not (root / "etc" / "hostname").exists()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda _: None, "no such file or directory"),
        (lambda path: path.mkdir(), "is not a root file system: it has neither bin nor usr"),
        (lambda path: path.write_text(""), "not a directory"),
    ],
)
async def test_a_folder_that_is_no_root_file_system_is_refused_with_its_path(house, tmp_path, make, sentence):
    make(tmp_path / "x")
    made = job(house, f"dir:{tmp_path}/x", "true")
    status = await house.run(made)
    assert status.lost.startswith(f"image: {tmp_path}/x")
    assert sentence in status.lost


@pytest.mark.skipif(not IS_ROOT, reason="needs a second user")
@pytest.mark.req("TR-14")
async def test_a_user_cannot_use_an_unreadable_root_file_system(house, root, ann):
    root.chmod(0o700)
    made = job(house, f"dir:{root}", "true", user=ann)
    assert f"image: {root}: permission denied for user {ann}" in (await house.run(made)).lost


@pytest.mark.skipif(not IS_ROOT, reason="needs a second user")
@pytest.mark.req("TR-14")
async def test_an_image_with_links_to_the_machine_shows_and_changes_no_file_of_it(house, root, ann):
    tmp_path = house.folder / "hidden"
    tmp_path.mkdir()
    secret = tmp_path / "secret"
    secret.write_text("root's own\n")
    secret.chmod(0o600)
    for name, target in (("workspace", tmp_path), ("srv", tmp_path), ("home", tmp_path), ("dev", tmp_path)):
        os.symlink(target, root / name)
    (root / "etc" / "passwd").unlink()
    os.symlink(secret, root / "etc" / "passwd")
    os.symlink(secret, root / "etc" / "hosts")
    made = job(house, f"dir:{root}", "cat /etc/passwd /etc/hosts; ls /srv /home", user=ann)
    await house.run(made)
    assert "root's own" not in house.out(made) + house.err(made)
    assert sorted(os.listdir(tmp_path)) == ["secret"]


async def test_an_image_without_etc_and_with_hostile_names(house, root):
    subprocess.run(["rm", "-r", root / "etc"], check=True)
    for name in ("a,b:c", "-x", "new\nline"):
        (root / name).mkdir()
        (root / name / "in").write_text(name)
    made = job(
        house,
        f"dir:{root}",
        "cat '/a,b:c/in' '/-x/in'; cat /etc/hostname; touch '/a,b:c/y'; touch /-x/z /etc/w && echo ok",
    )
    await house.run(made)
    assert house.out(made) == "a,b:c-xjob-0\nok\n"
    assert "Read-only" in house.err(made)


async def test_mounts_cover_existing_files_of_the_image(house, root, tmp_path):
    (tmp_path / "note").write_text("mine")
    tmp_path.chmod(0o755)
    (root / "workspace" / "volume" / "v").mkdir(parents=True)
    (root / "workspace" / "other").write_text("")
    made = job(
        house,
        f"dir:{root}",
        "cat /workspace/volume/v/note; ls /workspace",
        volumes=(Volume(name="v", path=str(tmp_path)),),
    )
    await house.run(made)
    assert house.out(made).split() == ["mineoutputs", "volume"]
