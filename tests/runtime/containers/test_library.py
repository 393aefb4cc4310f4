"""`import cockpit.elastic` and `import kubeai.elastic as kubeai` in every container, by the container's own Python."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cockpit import elastic
from cockpit.launch.world import LIBRARY
from cockpit.model.mounts import Volume
from cockpit.runtime.containers import library
from tests.runtime.containers.conftest import IS_ROOT
from tests.runtime.containers.house import House
from tests.runtime.containers.roots import make_root, packed
from tests.runtime.containers.store import podman
from tests.runtime.containers.test_images import job

SCRIPT = """
import sys
import cockpit.elastic as elastic
import kubeai.elastic as kubeai
kubeai.init()
print(sys.version_info[:2], kubeai.check_alive(), elastic.checkpoint_requested(), elastic.world()["size"])
print(kubeai.__file__, elastic.__file__)
try:
    open(kubeai.__file__, "a")
except OSError as error:
    print(type(error).__name__, error.errno)
"""
PLACES = f"{LIBRARY}/kubeai/elastic.py {LIBRARY}/cockpit/elastic.py"


def python_of_another_version() -> Path:
    """The folder of a Python that is not the one of these tests where there is one, and its own folder otherwise."""
    found = [shutil.which(f"python3.{minor}") for minor in (8, 9, 10, 12, 13)]
    for program in filter(None, found):
        asked = subprocess.run(
            [program, "-c", "import sys; print(sys.base_prefix)"], capture_output=True, text=True, check=False
        )
        if asked.returncode == 0 and asked.stdout.strip() != "/usr":
            return Path(asked.stdout.strip())
    for program in filter(None, found):  # a program that chooses among several installed versions
        versions = Path(program).parents[1] / "versions"
        for installed in sorted(versions.glob("3.*")) if os.access(versions, os.R_OK | os.X_OK) else ():
            if tuple(map(int, installed.name.split(".")[:2])) >= (3, 8):
                return installed
    return Path(sys.base_prefix)


def with_python(root: Path) -> Path:
    """A root file system with that Python in /usr/local, and all that it is linked with."""
    source = python_of_another_version()
    program = next(each for each in sorted((source / "bin").glob("python3.*")) if each.name[-1].isdigit())
    target = root / "usr/local"
    left_out = shutil.ignore_patterns("test", "site-packages", "config-*", "ensurepip", "idlelib", "__pycache__", "*.a")
    shutil.copytree(source / "lib" / program.name, target / "lib" / program.name, ignore=left_out)
    (target / "bin").mkdir()
    shutil.copy(program.resolve(), target / "bin" / "python3")
    loaded = [target / "bin" / "python3", *(target / "lib").rglob("*.so")]
    linked = subprocess.run(["ldd", *map(str, loaded)], capture_output=True, text=True, check=False).stdout
    for path in {word for word in linked.split() if word.startswith("/") and word[-1] != ":"}:
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(path).resolve(), place)
    return root


@pytest.fixture
def source(house: House) -> Path:
    """A folder of the job's own with a training script in it."""
    folder = house.folder / "algo"
    folder.mkdir()
    (folder / "mine.py").write_text("WHOSE = 'the job'\n")
    return folder


@pytest.mark.parametrize("name", library.MODULES)
def test_the_modules_are_for_python_3_8_and_the_standard_library_of_then(name: str) -> None:
    tree = ast.parse(Path(elastic.__file__).with_name(name).read_text(), feature_version=(3, 8))
    imported = {node.names[0].name for node in ast.walk(tree) if isinstance(node, ast.Import)}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level}
    assert imported <= {
        *(
            "__future__",
            "binascii",
            "contextlib",
            "fnmatch",
            "importlib",
            "json",
            "os",
            "pathlib",
            "re",
            "shutil",
            "signal",
        ),
        *("socket", "subprocess", "sys", "threading", "time", "typing"),
    }
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    newer = {"removeprefix", "removesuffix", "is_relative_to", "readlink", "hardlink_to", "with_stem", "walk", "chdir"}
    assert not used & newer


def test_an_older_versions_packages_are_replaced_and_an_installed_one_is_not_hidden(tmp_path: Path) -> None:
    library.lay_out(tmp_path)
    module = tmp_path / "python/kubeai/elastic.py"
    module.write_text("print('of an older engine')\n")
    library.lay_out(tmp_path)
    installed = tmp_path / "site/kubeai"
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text("VERSION = 7\n")
    (installed / "other.py").write_text("NAME = 'other'\n")
    asks = "import kubeai, kubeai.other, kubeai.elastic as e; print(kubeai.VERSION, kubeai.other.NAME, e.check_alive())"
    run = subprocess.run(
        [sys.executable, "-c", asks],
        env={"PYTHONPATH": f"{tmp_path / 'python'}:{tmp_path / 'site'}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout == "7 other True\n", run.stderr


@pytest.mark.real
@pytest.mark.req("EL-03")
async def test_a_script_on_the_machines_own_root_imports_both_beside_its_own(house: House, source: Path) -> None:
    env = {"PYTHONPATH": "/workspace/volume/mine", "SCRIPT": f"import mine; print(mine.WHOSE)\n{SCRIPT}"}
    made = house.job('python3 -c "$SCRIPT"', env=env, volumes=(Volume(name="mine", path=str(source)),))
    assert (await house.run(made)).ok, house.err(made)
    whose, said, places, refused = house.out(made).splitlines()
    assert (whose, said.partition(") ")[2], places) == ("the job", "True False 1", PLACES)
    assert refused in {"OSError 30", "PermissionError 13"}


@pytest.mark.real
@pytest.mark.req("EL-03")
@pytest.mark.parametrize("way", ["dir", "tar"])
async def test_an_image_with_another_python_imports_both(house: House, way: str) -> None:
    root = with_python(make_root(house.folder / "root"))
    image = f"dir:{root}" if way == "dir" else f"tar:{packed(root, house.folder / 'root.tar')}"
    made = job(house, image, 'python3 -c "$SCRIPT"', env={"SCRIPT": SCRIPT}, memory_mib=600)
    assert (await house.run(made)).ok, house.err(made)
    said, places, refused = house.out(made).splitlines()
    assert (said.partition(") ")[2], places) == ("True False 1", PLACES)
    assert refused in {"OSError 30", "PermissionError 13"}


@pytest.mark.real
@pytest.mark.req("EL-03")
@pytest.mark.skipif(not IS_ROOT, reason="an ordinary user's podman needs ids of its own, which tests do not have")
async def test_podmans_containers_import_both_beside_what_the_image_has(house: House, trainer: str) -> None:
    root = with_python(make_root(house.folder / "root"))
    (root / "opt/lib").mkdir()
    (root / "opt/lib/mine.py").write_text("WHOSE = 'the image'\n")
    name = trainer.replace(":1", ":python")
    podman("import", "--change", "ENV PYTHONPATH=/opt/lib", packed(root, house.folder / "root.tar"), name)
    made = job(house, name, 'python3 -c "$SCRIPT"', env={"SCRIPT": f"import mine; print(mine.WHOSE)\n{SCRIPT}"})
    assert (await house.run(made)).ok, house.err(made)
    whose, said, places, _ = house.out(made).splitlines()
    assert (whose, said.partition(") ")[2], places) == ("the image", "True False 1", PLACES)


@pytest.mark.req("EL-02")
def test_only_files_of_another_version_are_replaced_whatever_the_umask_is(tmp_path):
    before = os.umask(0o077)
    try:
        library.lay_out(tmp_path)
    finally:
        os.umask(before)
    files = [each for each in sorted((tmp_path / library.FOLDER).rglob("*")) if each.is_file()]
    assert {each.stat().st_mode & 0o777 for each in files} == {0o644}
    assert {each.stat().st_mode & 0o777 for each in (tmp_path / library.FOLDER).rglob("*") if each.is_dir()} == {0o755}
    inodes, right = [each.stat().st_ino for each in files], files[0].read_bytes()
    files[0].write_bytes(b"of yesterday")
    library.lay_out(tmp_path)
    assert files[0].read_bytes() == right
    assert [each.stat().st_ino for each in files][1:] == inodes[1:]
