from __future__ import annotations

import json
from pathlib import Path

import pytest

from cockpit.backends.slurm.backend import CAPABILITIES as SLURM
from cockpit.formats.quotatree import read_quota_tree
from cockpit.headless.exitcodes import ExitCode
from cockpit.model.ids import Millis
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.view import QueueKind, QueueRow, QueuesShown
from tests.doubles.samples import HOUR, NOW
from tests.formats.test_quotatree import PUBLISHED
from tests.headless.conftest import Desk


def row(path: str, level: int, **fields) -> QueueRow:
    usual = {"waiting": 2, "running": 1, "since": Millis(NOW - 50 * HOUR), "min": {}, "max": {}, "used": {}}
    usual["bounded"] = ("cpu", "mem", "gres/gpu")
    return QueueRow(kind=QueueKind.QUOTA, path=path, name=f"{path.replace('/', '-')}-x", level=level, **usual | fields)


@pytest.fixture
def desk() -> Desk:
    somebody = Desk()
    whole = {"cpu": 64_000, "mem": 262_144_000, "gres/gpu": 8_000}
    held = {"cpu": 12_000, "mem": 65_536_000, "gres/gpu": 4_500}
    gpu = QueueRow(kind=QueueKind.PARTITION, path="gpu", name="gpu", level=0, since=None, waiting=3, running=1,
                   used=held, min={}, max=whole)  # fmt: skip
    rows = (
        row("root", 0, min=whole, max=whole, used=held, max_jobs=10**10),
        row("root/nlp", 1, min={"gres/gpu": 2_000}, max={"gres/gpu": 6_000}, used=held, projects=("nlp", "chat")),
        gpu,
    )
    somebody.backend.queued = QueuesShown(rows, "teams", admin=True)
    return somebody


@pytest.mark.req("FL-03", "UI-40")
def test_one_queue_for_each_node_of_the_tree_and_the_partitions(desk: Desk) -> None:
    title, root, nlp, gpu = desk("queues").lines
    assert title.split()[:6] == ["NAME", "KIND", "AGE", "DEPTH", "RUNNING", "MAX"]
    assert " ".join(root.split()) == "root-x quota 2-02:00:00 2 1 10000000000 12/64/64 64G/256G/256G 4.5/8/8"
    assert " ".join(nlp.split()) == "root-nlp-x quota 2-02:00:00 2 1 – 12/0/– 64G/0/– 4.5/2/6"
    assert " ".join(gpu.split()) == "gpu partition – 3 1 – 12/0/64 64G/0/256G 4.5/0/8"


@pytest.mark.req("FL-03", "UI-40")
def test_the_tree_shows_what_is_borrowed(desk: Desk) -> None:
    title, root, nlp = desk("quota").lines
    assert title.split()[0] == "QUEUE"
    assert root.startswith("root ")
    assert nlp.startswith("  nlp ")
    assert "2.5 cards, 12 CPUs, 64G memory" in nlp
    assert nlp.endswith("nlp, chat")
    assert [line.split()[0] for line in desk("quota", "--filter", "cards_borrowed>2").lines[1:]] == ["nlp"]


@pytest.mark.req("FL-03", "UI-40")
def test_queues_for_programs(desk: Desk) -> None:
    _, nlp, gpu = json.loads(desk("queues", "-o", "json").out)["rows"]
    assert (nlp["name"], nlp["kind"], nlp["age"], nlp["depth"]) == ("root-nlp-x", "quota", 180_000, 2)
    assert nlp["cards"] == {"used": 4.5, "min": 2, "max": 6}
    assert nlp["cpus"] == {"used": 12, "min": 0, "max": None}
    assert (gpu["age"], gpu["max_jobs"], gpu["cards_borrowed"]) == (None, None, 0)


@pytest.mark.req("FL-03", "UI-40")
def test_without_a_quota_tree_the_way_to_create_one_is_printed_where_supported(desk: Desk) -> None:
    desk.backend.queued = QueuesShown(desk.backend.queued.rows[2:])
    assert "cockpit quota apply FILE" in desk("quota", terminal=True).err
    desk.backend.capabilities = SLURM
    assert "this cluster has its own scheduler, which has none" in desk("quota", terminal=True).err
    assert "apply" not in desk("quota", terminal=True).err


@pytest.mark.req("FL-01", "UI-41")
def test_a_manifest_is_applied(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "quota.yaml"
    file.write_text(PUBLISHED)
    done = desk("quota", "apply", str(file))
    assert (done.code, done.lines) == (ExitCode.OK, ["applied quota tree elasticquotatree: 2 queues"])
    assert desk.backend.asked == [("apply_quota", read_quota_tree("quota.yaml", PUBLISHED))]
    assert desk("quota", "remove").lines == ["removed quota tree teams"]
    assert desk.backend.asked[-1][0] == "remove_quota"


@pytest.mark.req("FL-01", "UI-41")
def test_an_invalid_manifest_is_reported_with_its_path_and_not_sent(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "quota.yaml"
    file.write_text(PUBLISHED.replace("namespace: kube-system", "namespace: default").replace("- default", "- [x]"))
    done = desk("quota", "apply", str(file))
    assert done.code not in {ExitCode.OK, ExitCode.INTERNAL}
    assert f"{file}: metadata.namespace: " in done.err
    assert f"{file}: spec.root.children[0].namespaces[0]: is a list; write text" in done.err
    assert desk.backend.asked == []
    assert desk("quota", "apply", str(tmp_path / "none")).err.startswith(f"{tmp_path}/none: cannot be read")


@pytest.mark.req("FL-01")
def test_a_refused_manifest_is_reported(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "quota.yaml"
    file.write_text(PUBLISHED)
    desk.backend.refusal = Refusal(RefusalKind.DENIED, "Only an administrator may apply quotas; ask one.")
    done = desk("quota", "apply", str(file))
    assert (done.code, done.err) == (ExitCode.REFUSED, "Only an administrator may apply quotas; ask one.\n")
