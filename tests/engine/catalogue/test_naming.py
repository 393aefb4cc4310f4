"""What names of the catalogue mean in a job, who may use them for what, and what a job may open of them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from cockpit.engine.access import Actor
from cockpit.engine.submission.submit import edit, submit
from cockpit.model import events
from cockpit.model.catalogue import (
    AlgorithmEntry,
    AnyEntry,
    DatasetEntry,
    ImageEntry,
    ModelEntry,
    PoolEntry,
    Scope,
    SpecEntry,
    VolumeEntry,
)
from cockpit.model.cluster import Cluster, Project
from cockpit.model.image import Mpi
from cockpit.model.mounts import Algorithm, Dataset, DatasetSource, Model, ModelSource, ResolvedEntry, Volume
from cockpit.model.node import CardVendor
from cockpit.model.refusal import Refusal
from cockpit.model.spec import Access, JobKind, NodeSpec, Task
from tests.builders import ANN, BOB, a_card, a_node, a_spec
from tests.engine.driver import EngineDriver

RULES = Cluster(projects=(Project(name="nlp", users=("ann", "bob")), Project(name="vision", users=("bob",))))
ANNA, BOBBY = Actor(ANN, False, frozenset({"nlp"})), Actor(BOB, False, frozenset({"nlp", "vision"}))
EVE, ADMIN = Actor(replace(BOB, name="eve", uid=1003), admin=False), Actor(replace(BOB, name="root", uid=0), admin=True)
CORPUS = DatasetEntry(name="corpus", project="nlp", owner="ann", access=Access.RO, path="/data/corpus")
WEB = DatasetEntry(
    name="web",
    access=Access.RO,
    source=DatasetSource.FAVORITE,
    versions={"v1": "/data/web/1", "v2": "/data/web/2"},
)
BERT = ModelEntry(name="bert", access=Access.RO, source=ModelSource.PRETRAINED, path="/models/bert")
VIT = AlgorithmEntry(name="vit", project="nlp", owner="bob", access=Access.RW, path="/algo/vit")
SCRATCH = VolumeEntry(name="scratch", project="nlp", owner="bob", access=Access.RW, path="/scratch")
BIG = SpecEntry(name="big", access=Access.RO, spec=NodeSpec(cpus=4, card_milli=1000, card_models=("A100",)))
TORCH = ImageEntry(name="torch", access=Access.RO, image="dir:/images/torch", card_types=("nvidia",), mpi=Mpi.OPENMPI)
PAIR = PoolEntry(name="pair", access=Access.RO, nodes=("n2",))
ALL = (CORPUS, WEB, BERT, VIT, SCRATCH, BIG, TORCH, PAIR)


def an_engine(*entries: AnyEntry) -> EngineDriver:
    ascend = a_node("n3", card_list=(replace(a_card(0, "910B"), vendor=CardVendor.ASCEND),), pool="fast")
    engine = EngineDriver(a_node("n1", cards=2), a_node("n2", cards=2), ascend)
    engine.tell(events.ClusterConfigured(RULES), events.CatalogueChanged(entries or ALL))
    return engine


def refused(engine: EngineDriver, actor: Actor = ANNA, **fields: Any) -> list[str]:
    decided = submit(engine.machine, [a_spec(**{"project": "nlp", **fields})], actor)
    assert isinstance(decided, Refusal)
    return decided.message.splitlines()


def accepted(engine: EngineDriver, actor: Actor = ANNA, **fields: Any) -> Any:
    assert engine.act(submit(engine.machine, [a_spec(**{"project": "nlp", **fields})], actor)) is None
    return engine.machine.state.jobs[engine.machine.state.last_job_id].spec


@pytest.mark.req("JT-05", "JT-06", "JT-22")
def test_catalogue_names_are_resolved_when_the_job_is_accepted() -> None:
    spec = accepted(
        an_engine(),
        algorithm=Algorithm(name="vit"),
        datasets=(
            Dataset(name="corpus", read_only=True),
            Dataset(name="web", source=DatasetSource.FAVORITE, version="v2", read_only=True),
        ),
        models=(Model(name="bert", source=ModelSource.PRETRAINED),),
        volumes=(Volume(name="scratch"), Volume(name="own", path="/own")),
    )
    assert [each.folder for _, each in spec.references()] == [
        "/algo/vit",
        "/data/corpus",
        "/data/web/2",
        "/models/bert",
        "/scratch",
        "/own",
    ]
    assert [each.found.project if each.found else None for _, each in spec.references()] == [
        *("nlp", "nlp", "", "", "nlp", None),
    ]


@pytest.mark.req("JT-06", "JT-03")
def test_each_task_of_a_batch_has_its_algorithm() -> None:
    engine, tasks = an_engine(), [Task(command="a", algorithm=Algorithm(name="vit")), Task(command="b")]
    batch = replace(a_spec(project="nlp"), kind=JobKind.BATCH, command="", tasks=tuple(tasks))
    assert engine.act(submit(engine.machine, [batch], ANNA)) is None
    first, second = engine.machine.state.jobs.values()
    assert first.spec.algorithm == Algorithm(name="vit", found=ResolvedEntry("nlp", "/algo/vit"))
    assert second.spec.algorithm is None
    wrong = replace(batch, name="other", tasks=(Task(command="a", algorithm=Algorithm(name="x")),))
    decided = submit(engine.machine, [wrong], ANNA)
    assert isinstance(decided, Refusal)
    assert decided.message == "tasks[0].algorithm.name: there is no algorithm x; there are: vit"


@pytest.mark.req("JT-05", "JT-06", "JT-23")
def test_an_entry_with_read_access_is_mounted_read_only() -> None:
    lines = refused(
        an_engine(CORPUS, replace(VIT, access=Access.RO), replace(SCRATCH, access=Access.RO)),
        replace(BOBBY, who=replace(BOB, name="cat", uid=7)),
        algorithm=Algorithm(name="vit"),
        datasets=(Dataset(name="corpus"),),
        volumes=(Volume(name="scratch"),),
    )
    assert lines == [
        "algorithm.read_only: vit is bob's, for reading only (access: ro); write read_only: true",
        "datasets[0].read_only: corpus is ann's, for reading only (access: ro); write read_only: true",
        "volumes[0]: scratch is bob's, for reading only (access: ro), and a volume is written into; ask for rw",
    ]
    accepted(an_engine(), ANNA, datasets=(Dataset(name="corpus"),))


@pytest.mark.req("JT-05", "JT-13", "JT-49")
def test_every_unknown_name_is_reported_with_the_known_names() -> None:
    lines = refused(
        an_engine(),
        algorithm=Algorithm(name="resnet"),
        datasets=(
            Dataset(name="web"),
            Dataset(name="web", source=DatasetSource.FAVORITE, version="v9", read_only=True),
            Dataset(name="imagenet"),
        ),
        specs=(NodeSpec(name="huge"),),
        pool="pair",
    )
    assert lines == [
        "algorithm.name: there is no algorithm resnet; there are: vit",
        "datasets[0].source: web is favorite; write source: favorite",
        "datasets[0].read_only: web is the cluster's, for reading only (access: ro); write read_only: true",
        "datasets[1].version: web has no v9; it has: v1, v2",
        "datasets[2].name: there is no dataset imagenet; there are: corpus, web",
        "specs[0].name: there is no spec huge; there are: big",
    ]


@pytest.mark.req("JT-49")
def test_an_entry_hidden_from_a_user_does_not_exist_for_that_user() -> None:
    hidden = replace(CORPUS, access=Access.NONE)
    assert refused(an_engine(hidden), BOBBY, datasets=(Dataset(name="corpus", read_only=True),)) == [
        "datasets[0].name: there is no dataset corpus; `cockpit catalogue add dataset` adds one"
    ]
    accepted(an_engine(hidden), ANNA, datasets=(Dataset(name="corpus"),))
    accepted(an_engine(hidden), ADMIN, datasets=(Dataset(name="corpus"),))
    assert refused(an_engine(CORPUS), EVE, project="eve", datasets=(Dataset(name="corpus", read_only=True),))


def test_a_name_is_resolved_in_the_jobs_project_then_the_users_own_entries_then_the_clusters() -> None:
    places = {"nlp": "/nlp", "ann": "/ann", "": "/all"}
    entries = [
        VolumeEntry(name="v", project=project, owner="ann", access=Access.RW, path=path)
        for project, path in places.items()
    ]
    for project, path in places.items():
        spec = accepted(an_engine(*entries), volumes=(Volume(name="v"),))
        assert spec.volumes[0].found == ResolvedEntry(project, path)
        entries = entries[1:]


@pytest.mark.req("JT-30", "TR-09")
def test_resolved_entries_in_a_request_are_ignored() -> None:
    lie = ResolvedEntry("nlp", "/root/.ssh")
    spec = accepted(
        an_engine(),
        volumes=(Volume(name="scratch", found=lie), Volume(name="own", path="/own", found=lie)),
        algorithm=Algorithm(path="/mine", found=lie),
        pool_nodes=("n1",),
        image_found="dir:/",
        image_mpi=Mpi.MPICH,
    )
    assert [each.folder for _, each in spec.references()] == ["/mine", "/scratch", "/own"]
    assert (spec.pool_nodes, spec.root_image, spec.image_mpi) == ((), "host", None)


@pytest.mark.req("JT-02")
@pytest.mark.parametrize(("access", "fits"), [(Access.NONE, True), (Access.RO, True), (Access.RW, False)])
def test_a_job_is_no_more_accessible_than_the_entries_it_mounts(access: Access, fits: bool) -> None:
    datasets = (Dataset(name="corpus"),)
    if fits:
        accepted(an_engine(), access=access, datasets=datasets)
        return
    assert refused(an_engine(), access=access, datasets=datasets) == [
        "access: rw is more than the dataset corpus (datasets[0]) gives the project (ro); write ro"
    ]


@pytest.mark.req("JT-02")
def test_an_entry_open_to_another_project_is_not_open_to_the_jobs_project() -> None:
    lines = refused(
        an_engine(),
        replace(BOBBY, projects=frozenset({"nlp", "vision"})),
        project="vision",
        access=Access.RO,
        volumes=(Volume(name="scratch"),),
        models=(Model(name="bert", source=ModelSource.PRETRAINED),),
    )
    assert lines == ["access: ro is more than the volume scratch (volumes[0]) gives the project (none); write none"]


@pytest.mark.req("JT-02")
def test_an_edited_job_is_no_more_accessible_than_the_entries_it_mounts() -> None:
    engine = an_engine()
    accepted(engine, datasets=(Dataset(name="corpus"),))
    job = engine.machine.state.jobs[engine.machine.state.last_job_id]
    decided = edit(engine.machine, job, replace(job.spec, access=Access.RW), actor=ANNA)
    assert isinstance(decided, Refusal)
    assert decided.message.startswith("access: rw is more than the dataset corpus")
    assert not isinstance(edit(engine.machine, job, replace(job.spec, access=Access.RO), actor=ANNA), Refusal)


@pytest.mark.req("JT-49")
def test_an_edited_job_keeps_its_resolved_entries() -> None:
    engine = an_engine()
    accepted(engine, access=Access.NONE, datasets=(Dataset(name="corpus"),), specs=(NodeSpec(name="big"),))
    job = engine.machine.state.jobs[engine.machine.state.last_job_id]
    engine.tell(events.CatalogueChanged(removed=(CORPUS, BIG)))
    as_read = replace(job.spec, datasets=(Dataset(name="corpus"),), specs=(NodeSpec(name="big"),), nice=5)
    (event,) = edit(engine.machine, job, as_read, actor=ANNA)
    assert (event.spec.datasets, event.spec.specs) == (job.spec.datasets, job.spec.specs)
    assert isinstance(edit(engine.machine, job, replace(as_read, models=(Model(name="m"),)), actor=ANNA), Refusal)


@pytest.mark.req("JT-49", "JT-09")
def test_a_named_spec_has_the_values_of_the_catalogue() -> None:
    engine = an_engine()
    forged = NodeSpec(name="big", cpus=1)
    spec = accepted(engine, specs=(forged, NodeSpec(cpus=1)))
    assert spec.specs == (replace(BIG.spec, name="big"), NodeSpec(cpus=1))


@pytest.mark.req("JT-12", "JT-49")
def test_a_catalogue_pool_means_its_nodes() -> None:
    engine = an_engine()
    accepted(engine, pool="pair")
    engine.schedule()
    (job,) = engine.machine.state.jobs.values()
    assert [each.node for each in job.attempt.placement] == ["n2"]


@pytest.mark.req("JT-12", "JT-49")
def test_a_dedicated_pool_accepts_only_users_with_access() -> None:
    apart = PoolEntry(name="fast", owner="bob", access=Access.NONE)
    assert refused(an_engine(apart), pool="fast") == ["pool: fast is not open to you; ask bob"]
    accepted(an_engine(apart), BOBBY, pool="fast")


@pytest.mark.req("JT-13")
@pytest.mark.parametrize(
    ("image", "node_spec", "said"),
    [
        (TORCH, NodeSpec(card_milli=1000, card_models=("A100",)), None),
        (replace(TORCH, card_types=()), NodeSpec(), None),
        (replace(TORCH, card_types=("CPU", "a100")), NodeSpec(), None),
        (replace(TORCH, card_types=("a100",)), NodeSpec(card_milli=500, card_models=("A100",)), None),
        (TORCH, NodeSpec(), "torch is made for nvidia, and specs[0] has no cards (cpu)"),
        (TORCH, NodeSpec(card_milli=1000), "torch is made for nvidia, and specs[0] may be given 910B (ascend)"),
        (TORCH, NodeSpec(card_milli=1000, card_models=("910B",)), "may be given 910B (ascend)"),
        (TORCH, NodeSpec(card_milli=1000, card_models=("X9",)), "specs[0] asks for X9"),
        (
            replace(TORCH, card_types=(), scopes=(Scope.SERVING,)),
            NodeSpec(),
            "torch is meant for serving, not for training; choose another",
        ),
    ],
)
def test_an_image_is_for_training_and_for_the_cards(image: ImageEntry, node_spec: NodeSpec, said: str | None) -> None:
    engine = an_engine(image)
    if said is None:
        spec = accepted(engine, image="torch", specs=(node_spec,))
        assert (spec.image, spec.root_image, spec.image_mpi) == ("torch", "dir:/images/torch", Mpi.OPENMPI)
    else:
        (line,) = (each for each in refused(engine, image="torch", specs=(node_spec,)) if each.startswith("image"))
        assert said in line


@pytest.mark.req("JT-60", "JT-05")
def test_a_member_does_not_mount_with_the_owners_credentials() -> None:
    engine = an_engine()
    accepted(engine, access=Access.RW, volumes=(Volume(name="scratch"),))
    job = engine.machine.state.jobs[engine.machine.state.last_job_id]
    more = {
        "datasets": (Dataset(name="corpus", read_only=True),),
        "volumes": (),
        "models": (Model(name="m", path="/m"),),
    }
    for field, value in more.items():
        decided = edit(engine.machine, job, replace(job.spec, access=Access.NONE, **{field: value}), actor=BOBBY)
        assert isinstance(decided, Refusal)
        assert f"{field}: only ann changes it" in decided.message
