"""A lab of four real users gives names to its data: who sees them, who mounts them how, and what jobs open of them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.e2e.cockpit_user import CockpitUser, eventually
from tests.e2e.people import ANN, BOB
from tests.e2e.system_engine import SystemEngine

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]

CLUSTER = f"""
overcommit = true
[[projects]]
name = "nlp"
users = ["{ANN}", "{BOB}"]
[[nodes]]
name = "n1"
cpus = 4
memory = "2G"
cards = [{{ model = "A100", vendor = "nvidia", count = 2 }}]
"""
FILED = """
[[specs]]
name = "small"
access = "ro"
memory = "64M"
"""
SMALL = {"specs": [{"name": "small"}], "project": "nlp"}


class Lab(NamedTuple):
    engine: SystemEngine
    data: Path
    """Which everybody may read, and in `open` write."""


@pytest.fixture(scope="module")
def lab(everybodys_python: str, people: None) -> Iterator[Lab]:
    with tempfile.TemporaryDirectory(prefix="cockpit-", dir="/var/tmp") as path:
        folder, data = Path(path), Path(path) / "data"
        for each in (folder, data, data / "corpus", data / "open"):
            each.mkdir(exist_ok=True)
            each.chmod(0o777 if each.name in {"open", "corpus"} else 0o755)
        (data / "corpus/text").write_text("to be")
        engine = SystemEngine(folder, everybodys_python, CLUSTER)
        (engine.machine.root / "etc/cockpit-cluster/catalogue.toml").write_text(FILED)
        engine.root.ok("engine", "restart")
        yield Lab(engine, data)
        engine.close()


def refusal(person: CockpitUser, *words: str) -> str:
    done = person.run(*words)
    assert done.returncode != 0, done.stdout
    return done.stderr.decode()


def refused_job(person: CockpitUser, **fields: object) -> str:
    return refusal(person, "submit", str(person.job("true", name="never", **SMALL, **fields)))


@pytest.mark.req("JT-49", "JT-02", "JT-05")
def test_a_dataset_is_private_until_its_owner_shares_it(lab: Lab) -> None:
    ann, bob, carol, root = lab.engine.ann, lab.engine.bob, lab.engine.carol, lab.engine.root
    ann.ok("catalogue", "add", "dataset", "nlp/corpus", f"path={lab.data}/corpus")
    reading = [{"name": "corpus", "read_only": True}]
    assert "there is no dataset corpus" in refused_job(bob, datasets=reading)
    assert [row["name"] for row in bob.rows("catalogue")] == ["small", "nlp"]
    assert "corpus" not in bob.ok("events") + carol.ok("events")
    assert "there is no dataset corpus" in refusal(bob, "catalogue", "set", "dataset", "corpus", "access=rw")
    assert "access: ro is more than the dataset corpus" in refused_job(ann, datasets=reading, access="ro")

    ann.ok("catalogue", "set", "dataset", "corpus", "access=ro")
    assert (bob.row("catalogue", "list", "dataset")["may"], carol.rows("catalogue", "list", "dataset")) == ("ro", [])
    assert "write read_only: true" in refused_job(bob, datasets=[{"name": "corpus"}])
    assert "you may use it and not change it" in refusal(bob, "catalogue", "set", "dataset", "corpus", "path=/etc")
    assert "access: rw is more than the dataset corpus" in refused_job(bob, datasets=reading, access="rw")
    script = "cat corpus/text; touch corpus/new; touch text"
    job = bob.submit(f"bash -c 'cd /workspace/dataset/private; {script}'", name="reads", datasets=reading, **SMALL)
    assert bob.wait(job) == 1
    assert bob.ok("logs", job).startswith("to be")
    assert "Read-only file system" in bob.ok("logs", job, "--stderr")
    assert not (lab.data / "corpus/new").exists()
    assert root.row("job", job)["state"] == "error"


@pytest.mark.req("JT-23", "JT-49", "JT-30")
def test_files_written_into_a_volume_persist_and_belong_to_the_writer(lab: Lab) -> None:
    bob, root = lab.engine.bob, lab.engine.root
    root.ok("catalogue", "add", "volume", "/open", f"path={lab.data}/open", "access=rw")
    job = bob.submit("touch /workspace/volume/open/bobs", name="writes", volumes=[{"name": "open"}], **SMALL)
    assert bob.wait(job) == 0
    eventually(lambda: bob.row("job", job)["state"] == "succeeded")
    assert (lab.data / "open/bobs").owner() == BOB


@pytest.mark.req("JT-13", "JT-49")
def test_an_image_for_other_cards_is_refused(lab: Lab) -> None:
    root = lab.engine.root
    root.ok("catalogue", "add", "image", "/torch", "image=dir:/", "card_types=mlu", "access=ro")
    assert "torch is made for mlu, and specs[0] has no cards" in refused_job(lab.engine.ann, image="torch")


@pytest.mark.req("JT-49", "TR-09")
def test_public_entries_are_added_by_administrators_and_entries_of_a_file_changed_in_the_file(lab: Lab) -> None:
    ann, root = lab.engine.ann, lab.engine.root
    ann.ok("catalogue", "add", "user", ANN, "email=ann@lab.example")
    for words in (("pool", "mine"), ("project", "mine"), ("spec", "/mine"), ("volume", "vision/v", "path=/tmp")):
        assert refusal(ann, "catalogue", "add", *words)
    for person in (ann, root):
        assert "catalogue.toml" in refusal(person, "catalogue", "set", "spec", "small", "cpus=9")
    root.ok("catalogue", "add", "project", "speech", f"users={ANN}", "access=ro")
    assert [row["name"] for row in ann.rows("catalogue", "list", "project")] == ["nlp", "speech"]
    assert ann.wait(ann.submit("true", name="spoken", project="speech", specs=["small"])) == 0
    assert "you are not in speech" in refusal(
        lab.engine.bob, "submit", str(lab.engine.bob.job("true", name="never", project="speech"))
    )


@pytest.mark.req("JT-49", "TR-01")
def test_the_catalogue_survives_a_restart_and_an_export_to_a_file(lab: Lab) -> None:
    root = lab.engine.root
    before = root.ok("catalogue", "export")
    root.ok("engine", "restart")
    assert root.ok("catalogue", "export") == before
    file = root.write("catalogue.toml", before)
    assert root.ok("catalogue", "apply", str(file)).endswith(": 0 new or changed\n")


@pytest.mark.req("JT-49")
def test_all_errors_of_a_catalogue_file_are_reported_when_the_engine_starts(lab: Lab) -> None:
    root, file = lab.engine.root, lab.engine.machine.root / "etc/cockpit-cluster/catalogue.toml"
    root.ok("engine", "stop")
    file.write_text(FILED + '[[volumes]]\nname = "v"\npath = "v/../.."\nmode = 1\n[[users]]\nemail = 3\n')
    said = refusal(root, "engine", "start", "--system")
    assert "volumes[0].mode: is no field here" in said
    assert "users[0].name: is missing" in said
    file.write_text(FILED + '[[projects]]\nname = "nlp"\n')
    assert "projects: nlp is defined in cluster.toml too" in refusal(root, "engine", "start", "--system")
    file.write_text(FILED)
    root.ok("engine", "start", "--system")
    assert root.row("catalogue", "list", "spec")["file"] == "catalogue.toml"


@pytest.mark.req("TR-14")
def test_the_members_of_a_project_are_visible_only_to_its_members(lab: Lab) -> None:
    """In every list, page, event and word to be completed."""
    outsider, member, root = lab.engine.carol, lab.engine.ann, lab.engine.root
    lists = ("cluster show", "catalogue", "catalogue list project", "events", "queues", "accounts", "jobs")
    for verb in lists:
        said = outsider.run(*verb.split(), "-o", "json")
        assert BOB.encode() not in said.stdout + said.stderr, verb
    assert BOB in member.ok("catalogue", "-o", "json")
    assert BOB in root.ok("cluster", "show", "-o", "json")
