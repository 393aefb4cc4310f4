from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from cockpit.engine.effects import StartReplica
from cockpit.launch.plan import LaunchPlan
from cockpit.model.ids import JobId, NodeName, ReplicaId, UserName
from cockpit.model.job import Submitter
from cockpit.model.node import Allocation
from cockpit.model.spec import Algorithm, JobSpec, Volume
from cockpit.runtime.containers import plan
from cockpit.runtime.containers.shim import attempt

REPLICA = ReplicaId(JobId(7), 2, 1)


def planned(*, may_be_plain: bool = False, **fields) -> plan.ContainerPlan:
    spec = JobSpec(
        **fields,
        name="j",
        command="true",
        output="/data/out",
        algorithm=Algorithm(path="/data/algo", read_only=True),
        volumes=(Volume(name="scratch", path="/data/scratch"),),
    )
    submitter = Submitter(UserName("ann"), 1000, 1001, (1001, 20), "/home/ann")
    launch = LaunchPlan(
        command="true", argv=("true",), env={"A": "b"}, kept_env={}, devices=(), workdir="/workspace", hostname="j-1"
    )
    effect = StartReplica(REPLICA, spec, submitter, Allocation(1, NodeName("n"), 3, 2048))
    engine = plan.EngineFolders(Path("/state"), Path("/run/engine"))
    return plan.container_plan(
        effect, launch, engine, plan.Bounds(pids=9, scratch_mib=8), rootless=False, may_be_plain=may_be_plain
    )


def test_the_shim_reads_exactly_what_the_engine_writes():
    """The shim's own picture of the plan exists for the type checker only; here it is evaluated."""
    source = Path(attempt.__file__).read_text().replace("TYPE_CHECKING = False", "TYPE_CHECKING = True")
    namespace: dict[str, object] = {"__name__": "evaluated"}
    exec(compile(source, attempt.__file__, "exec"), namespace)
    for shim_side, engine_side in (("PlanDict", plan.ContainerPlan), ("MountDict", plan.Mount)):
        assert list(namespace[shim_side].__annotations__) == list(engine_side.__struct_fields__)


def test_mounts_are_exactly_those_of_the_spec():
    assert [(mount.what, mount.source, mount.target, mount.writable, mount.create) for mount in planned().mounts] == [
        ("algorithm", "/data/algo", "/workspace/algorithm", False, False),
        ("output", "/data/out", "/workspace/outputs", True, True),
        ("volumes[0]", "/data/scratch", "/workspace/volume/scratch", True, False),
    ]


def test_a_plan_survives_its_file():
    written = planned()
    assert msgspec.json.decode(msgspec.json.encode(written), type=plan.ContainerPlan) == written
    assert (written.cpus, written.memory_mib, written.pids, written.scratch_mib) == (3, 2048, 9, 8)


def test_engines_of_one_machine_do_not_share_groups():
    assert plan.cgroup_name(Path("/a"), REPLICA) != plan.cgroup_name(Path("/b"), REPLICA)
    assert plan.cgroup_name(Path("/a"), REPLICA).endswith(".7.2.1")


def test_logs_are_outside_of_the_container():
    assert planned().stderr == "/state/logs/7/2.1.stderr"


def test_a_job_that_needs_a_container_is_never_a_plain_process():
    assert planned(may_be_plain=True).may_be_plain
    assert not planned(may_be_plain=True, image="dir:/roots/a").may_be_plain
    assert not planned(may_be_plain=True, staging=True).may_be_plain


@pytest.mark.req("JT-30")
def test_the_root_is_of_the_image_or_the_resolved_catalogue_entry():
    assert planned().image is None
    assert planned(image="dir:/roots/a").image == plan.Mount("image", "/roots/a", "/", writable=False)
    assert planned(image="torch", image_found="tar:/x.tar").image.source == "/x.tar"
