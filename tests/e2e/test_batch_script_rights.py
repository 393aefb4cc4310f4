"""What a batch script may do under an engine of root's: what its submitter may do, wherever its paths lead."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cockpit_user import CockpitUser
from tests.e2e.people import ANN
from tests.e2e.system_engine import SystemEngine, system_engine

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.usefixtures("host_mounts"),
    pytest.mark.req("LA-71", "TR-14"),
]

CLUSTER = 'overcommit = true\n[[nodes]]\nname = "n1"\ncpus = 4\nmemory = "4G"\n'
SECRET = "only root reads and writes this\n"


@pytest.fixture(scope="module")
def engine(everybodys_python: str, people: None) -> Iterator[SystemEngine]:
    with system_engine(everybodys_python, CLUSTER) as engine:
        yield engine


@pytest.fixture
def roots(engine: SystemEngine) -> Iterator[Path]:
    """A file of root's in a folder that everybody may enter."""
    folder = engine.ann.folder.parent / "of-root"
    folder.mkdir(exist_ok=True)
    file = folder / "file"
    file.write_text(SECRET)
    file.chmod(0o600)
    yield file
    file.unlink()


def ends(engine: SystemEngine, name: str, lines: str, body: str = "echo overwritten") -> tuple[int, str]:
    """The exit code of a script of Ann's, and its page."""
    engine.ann.write(f"{name}.sh", f"#!/bin/bash\n#SBATCH --mem=200M\n#SBATCH {lines}\n{body}\n")
    job = engine.ann.ok("submit", f"{name}.sh").split()[-1]
    return engine.ann.wait(job), engine.ann.ok("job", job)


def test_output_is_the_submitters_own_file(engine: SystemEngine) -> None:
    code, _ = ends(engine, "own", "-o own.out -e own.err", "id -un; touch made; cd; touch in-home")
    ann = pwd.getpwnam(ANN)
    assert code == 0
    assert (engine.ann.work / "own.out").read_text().split() == [ANN]
    for path in (engine.ann.work / "own.out", engine.ann.work / "own.err", engine.ann.work / "made"):
        assert (path.stat().st_uid, path.stat().st_gid) == (ann.pw_uid, ann.pw_gid)


def test_no_path_leads_to_what_the_submitter_may_not_write(engine: SystemEngine, roots: Path) -> None:
    (engine.ann.work / "link").symlink_to(roots)
    (engine.ann.work / "folder").symlink_to(roots.parent)
    for number, where in enumerate((str(roots), "link", "folder/file", "folder/new", f"../../{roots.parent.name}/x")):
        code, page = ends(engine, f"write{number}", f"-o {where}")
        assert code != 0
        assert "permission denied for user" in page, page
    assert roots.read_text() == SECRET
    assert [path.name for path in roots.parent.iterdir()] == ["file"]


def test_no_path_leads_to_what_the_submitter_may_not_read(engine: SystemEngine, roots: Path) -> None:
    (engine.ann.work / "secret").symlink_to(roots)
    code, page = ends(engine, "read", "-i secret", "cat")
    assert code != 0
    assert "script.input" in page
    assert "permission denied for user" in page


def test_no_script_runs_in_a_folder_closed_to_its_submitter(engine: SystemEngine) -> None:
    closed = engine.root.work / "closed"
    closed.mkdir(mode=0o700)
    code, page = ends(engine, "closed", f"--chdir={closed} -o /dev/null")
    assert code != 0
    assert f"{closed}: permission denied for user" in page


def test_a_system_folder_is_a_copy_of_the_containers_own(engine: SystemEngine) -> None:
    engine.root.write("in-etc.sh", "#!/bin/bash\n#SBATCH --mem=200M --chdir=/etc -o /dev/null\necho x > cockpit-note\n")
    done = engine.root.run("submit", "in-etc.sh")
    assert b"script.work_dir: of /etc the job has a copy of its own" in done.stderr
    assert engine.root.wait(done.stdout.decode().split()[-1]) == 0
    assert not (engine.machine.root / "etc/cockpit-note").exists()


def test_a_link_in_the_home_mounts_nothing_elsewhere(engine: SystemEngine) -> None:
    """The place of a mount is never looked up in what the submitter may change."""
    work = engine.ann.work / "swapped"
    work.mkdir()
    os.chown(work, pwd.getpwnam(ANN).pw_uid, pwd.getpwnam(ANN).pw_gid)
    (work / "../to-etc").resolve().symlink_to("/etc")
    code, page = ends(engine, "swapped", "--chdir=to-etc -o /dev/null", "echo x > cockpit-note")
    assert code != 0 or "etc" in page
    assert not (engine.machine.root / "etc/cockpit-note").exists()
    assert not Path("/etc/cockpit-note").exists()


@pytest.fixture
def ann(folder: Path, everybodys_python: str, people: None) -> Iterator[CockpitUser]:
    """An ordinary user with an engine of their own."""
    somebody = CockpitUser(folder, python=everybodys_python, user=ANN)
    yield somebody
    somebody.leave()


def test_an_ordinary_users_own_engine_runs_scripts_too(ann: CockpitUser) -> None:
    ann.write("job.sh", "#!/bin/bash -l\n#SBATCH --mem=100M -n 2 -o %x.out\npwd; srun -l id -un | sort; touch made\n")
    job = ann.ok("submit", "job.sh").split()[-1]
    assert ann.wait(job) == 0, ann.ok("job", job)
    said = (ann.work / "job.sh.out").read_text()
    assert said.splitlines() == [str(ann.work), f"0: {ANN}", f"1: {ANN}"]
    assert ann.ok("logs", job) == said
    ann.write("closed.sh", "#!/bin/bash\n#SBATCH --mem=100M -o /etc/cockpit-note\necho x\n")
    job = ann.ok("submit", "closed.sh").split()[-1]
    assert ann.wait(job) != 0
    assert f"/etc/cockpit-note: permission denied for user {ANN}" in ann.ok("job", job)
