"""What a submission leaves to the cluster, and what it is refused for: accounts, QOS, partitions, limits, urgency."""

from __future__ import annotations

import pytest

from cockpit.engine.access import Actor
from cockpit.engine.submission.submit import edit, submit
from cockpit.model import events
from cockpit.model.accounts import Accounts, Association, Qos, QosFlag, ResourceLimits
from cockpit.model.cluster import Cluster, Enforce, Partition, PartitionState, Reservation
from cockpit.model.ids import NodeName
from cockpit.model.reasons import (
    InReservation,
    LimitReached,
    NeverFits,
    NoAssociation,
    PartitionRefuses,
    PartitionRule,
    QosRefused,
    Reason,
)
from cockpit.model.refusal import Refusal
from cockpit.model.spec import Array, JobSpec, PriorityWord
from tests.builders import ANN, BOB, HOUR, a_node, a_spec
from tests.engine.driver import EngineDriver

GPU = Partition(name="gpu", default=True, default_time_seconds=3600)
CPU = Partition(name="cpu", max_time_seconds=1800, deny_accounts=("vision",))
ASSOCIATIONS = (
    Association(account="lab", parent="root", qos=("normal", "high"), default_qos="high"),
    Association(account="nlp", parent="lab"),
    Association(account="vision", parent="lab", qos=("normal", "urgent"), default_qos="normal"),
    Association(account="nlp", user="ann"),
    Association(account="vision", user="ann", default=True),
)
QOS = (Qos(name="high"), Qos(name="urgent"), Qos(name="very-urgent"))


def an_engine(cluster: Cluster, *associations: Association, qos: tuple[Qos, ...] = QOS) -> EngineDriver:
    engine = EngineDriver(a_node("n1", cpus=8))
    engine.tell(events.ClusterConfigured(cluster))
    engine.tell(events.AccountsChanged(associations or ASSOCIATIONS, qos))
    return engine


def a_cluster(*enforce: Enforce, **fields: object) -> Cluster:
    return Cluster(partitions=(GPU, CPU), enforce=enforce, **fields)


def refusal(engine: EngineDriver, *specs: JobSpec, **options: object) -> Refusal:
    refused = submit(engine.machine, specs, Actor(options.pop("by", ANN), admin=False), **options)
    assert isinstance(refused, Refusal)
    return refused


def reason(engine: EngineDriver, *specs: JobSpec, **options: object) -> tuple[str, Reason]:
    (found,) = refusal(engine, *specs, **options).reasons
    return found


@pytest.mark.req("SC-03", "JT-25")
def test_omitted_fields_have_the_defaults_of_the_user_and_the_cluster() -> None:
    engine = an_engine(a_cluster(Enforce.QOS))
    (job,) = engine.submit(a_spec())
    found = engine.job(job)
    assert (found.account, found.qos, found.partitions) == ("vision", "normal", ("gpu",))


@pytest.mark.req("SC-03", "JT-25")
def test_named_values_override_the_defaults() -> None:
    engine = an_engine(a_cluster(Enforce.QOS))
    (job,) = engine.submit(a_spec(account="nlp", partitions=("cpu", "gpu"), qos="normal"))
    found = engine.job(job)
    assert (found.account, found.qos, found.partitions) == ("nlp", "normal", ("cpu", "gpu"))


@pytest.mark.req("JT-04", "SC-03")
@pytest.mark.parametrize(
    ("account", "word", "qos"),
    [
        ("vision", PriorityWord.URGENT, "urgent"),
        ("vision", PriorityWord.VERY_URGENT, "normal"),
        ("nlp", PriorityWord.URGENT, "high"),
        ("nlp", PriorityWord.NORMAL, "high"),
    ],
)
def test_the_priority_word_selects_a_permitted_qos_else_the_default_of_the_account_above(
    account: str, word: PriorityWord, qos: str
) -> None:
    engine = an_engine(a_cluster(Enforce.QOS))
    (job,) = engine.submit(a_spec(account=account, priority=word), admin=True)
    assert engine.job(job).qos == qos


@pytest.mark.req("SC-03")
def test_without_configuration_no_job_is_charged_or_refused() -> None:
    engine = EngineDriver()
    (job,) = engine.submit(a_spec(account="any"))
    found = engine.job(job)
    assert (found.account, found.qos, found.partitions) == ("any", "normal", ())


@pytest.mark.req("JT-21", "SC-03")
def test_a_time_limit_that_was_not_set_is_the_partitions_default() -> None:
    engine = an_engine(a_cluster())
    jobs = engine.submit(
        a_spec("a", limit_by_default=True),
        a_spec("b", limit_by_default=True, partitions=("cpu", "gpu"), account="nlp"),
        a_spec("c", time_limit_seconds=7200),
    )
    assert [engine.job(job).spec.time_limit_seconds for job in jobs] == [3600, 1800, 7200]
    assert not any(engine.job(job).spec.limit_by_default for job in jobs)


@pytest.mark.req("SC-03")
def test_an_unknown_name_is_reported_with_the_known_names() -> None:
    message = refusal(an_engine(a_cluster()), a_spec(partitions=("tpu",), qos="fast")).message
    assert message.splitlines() == [
        'partitions: there is no partition "tpu"; there are: gpu, cpu',
        'qos: there is no QOS "fast"; there are: normal, high, urgent, very-urgent',
    ]


@pytest.mark.req("SC-03")
def test_of_many_partitions_the_first_ten_are_named() -> None:
    many = tuple(Partition(name=f"p{number}", default=number == 0) for number in range(12))
    message = refusal(an_engine(Cluster(partitions=many)), a_spec(partitions=("tpu",))).message
    assert message.endswith("there are: p0, p1, p2, p3, p4, p5, p6, p7, p8, p9")


@pytest.mark.req("SC-03")
def test_users_without_an_association_are_refused_where_that_is_enforced() -> None:
    engine = an_engine(a_cluster(Enforce.LIMITS))
    assert reason(engine, a_spec(), by=BOB) == ("account", NoAssociation("bob"))
    assert reason(engine, a_spec(account="chem")) == ("account", NoAssociation("ann", "chem"))
    assert not isinstance(submit(an_engine(a_cluster()).machine, [a_spec()], Actor(BOB, admin=False)), Refusal)


@pytest.mark.req("SC-03")
def test_an_association_serves_its_partition_alone() -> None:
    tree = (
        Association(account="root"),
        Association(account="nlp", parent="root"),
        Association(account="nlp", user="ann", partition="cpu", default=True),
    )
    engine = an_engine(a_cluster(Enforce.ASSOCIATIONS), *tree)
    for spec, account in ((a_spec(), ""), (a_spec(account="nlp"), "nlp")):
        assert reason(engine, spec) == ("account", NoAssociation("ann", account, "gpu"))
    assert engine.submit(a_spec(partitions=("cpu",)))


@pytest.mark.req("SC-03")
def test_a_qos_that_may_not_be_used_is_refused_where_that_is_enforced() -> None:
    spec = a_spec(qos="high")
    found = reason(an_engine(a_cluster(Enforce.QOS)), spec)
    assert found == ("qos", QosRefused("high", ("normal", "urgent")))
    assert not isinstance(
        submit(an_engine(a_cluster(Enforce.LIMITS)).machine, [spec], Actor(ANN, admin=False)), Refusal
    )


@pytest.mark.req("SC-03")
@pytest.mark.parametrize(
    ("rules", "rule", "asked"),
    [
        ({"state": PartitionState.DRAIN}, PartitionRule.STATE, ""),
        ({"state": PartitionState.INACTIVE}, PartitionRule.STATE, ""),
        ({"allow_users": ("bob",)}, PartitionRule.USER, "ann"),
        ({"allow_accounts": ("nlp",)}, PartitionRule.ACCOUNT, "vision"),
        ({"deny_accounts": ("vision",)}, PartitionRule.ACCOUNT, "vision"),
        ({"deny_qos": ("normal",)}, PartitionRule.QOS, "normal"),
    ],
)
def test_every_named_partition_must_accept_the_job(rules: dict[str, object], rule: PartitionRule, asked: str) -> None:
    engine = an_engine(Cluster(partitions=(GPU, Partition(name="odd", **rules))))
    path, found = reason(engine, a_spec(partitions=("gpu", "odd")))
    assert path == "partitions"
    assert isinstance(found, PartitionRefuses)
    assert (found.partition, found.rule, found.asked) == ("odd", rule, asked)


@pytest.mark.req("SC-03")
def test_the_qos_of_a_partition_bounds_submissions_there() -> None:
    tree = (
        Association(account="root"),
        Association(account="nlp", parent="root"),
        Association(account="nlp", user="ann"),
    )
    few = Qos(name="few", limits=ResourceLimits(max_submit=1))
    night = Partition(name="night", qos="few")
    rules = Cluster(enforce=(Enforce.LIMITS,), partitions=(GPU, night))
    engine = an_engine(rules, *tree, qos=(Qos(name="normal", limits=ResourceLimits(max_submit=3)), few))
    engine.submit(a_spec("day"), a_spec("night", partitions=("night",)))
    found = reason(engine, a_spec("more", partitions=("night",)))
    expected = LimitReached("qos few of partition night", "MaxSubmitJobsPerUser", "", 1, 1, 1)
    assert found == ("account", expected)
    engine.submit(a_spec("more"))
    found = reason(engine, a_spec("most"))
    assert found == ("account", LimitReached("qos normal", "MaxSubmitJobsPerUser", "", 3, 3, 1))


@pytest.mark.req("SC-03")
def test_a_job_that_exceeds_a_limit_by_itself_waits_unless_its_qos_denies_it() -> None:
    tree = (
        Association(account="root"),
        Association(account="nlp", parent="root", limits=ResourceLimits(grp_tres={"cpu": 2})),
        Association(account="nlp", user="ann"),
    )
    broken = LimitReached("account nlp", "GrpTRES", "cpu", 2, 0, 3)
    for flags in ((), (QosFlag.DENY_ON_LIMIT,)):
        engine = an_engine(Cluster(enforce=(Enforce.LIMITS,)), *tree, qos=(Qos(name="normal", flags=flags),))
        if flags:
            assert reason(engine, a_spec(cpus=3)) == ("qos", broken)
            (small,) = engine.submit(a_spec(cpus=2))
            refused = edit(engine.machine, engine.job(small), a_spec(cpus=3))
            assert isinstance(refused, Refusal)
        else:
            assert engine.submit(a_spec(cpus=3))


@pytest.mark.req("SC-03", "SC-10")
def test_a_qos_may_serve_reservations_alone() -> None:
    flags = (QosFlag.REQUIRES_RESERVATION,)
    tree = (
        Association(account="root"),
        Association(account="nlp", parent="root"),
        Association(account="nlp", user="ann"),
    )
    engine = an_engine(Cluster(enforce=(Enforce.QOS,)), *tree, qos=(Qos(name="normal", flags=flags),))
    assert "reservation: QOS normal serves only jobs in a reservation" in refusal(engine, a_spec()).message
    (path, found) = reason(engine, a_spec(reservation="course"))
    assert (path, found) == ("reservation", InReservation("course"))


@pytest.mark.req("SC-03")
def test_a_partition_that_is_down_accepts_submissions() -> None:
    engine = an_engine(Cluster(partitions=(Partition(name="p", state=PartitionState.DOWN),)))
    assert engine.submit(a_spec())


@pytest.mark.req("SC-03")
@pytest.mark.parametrize(
    ("associations", "qos", "limit", "holder"),
    [
        ({"ann": ResourceLimits(max_submit=2)}, Qos(name="normal"), "MaxSubmitJobs", "user ann of account nlp"),
        ({"nlp": ResourceLimits(max_submit=2)}, Qos(name="normal"), "MaxSubmitJobs", "account nlp"),
        ({"root": ResourceLimits(grp_submit=2)}, Qos(name="normal"), "GrpSubmitJobs", "account root"),
        ({}, Qos(name="normal", limits=ResourceLimits(max_submit=2)), "MaxSubmitJobsPerUser", "qos normal"),
        ({}, Qos(name="normal", limits=ResourceLimits(grp_submit=2)), "GrpSubmitJobs", "qos normal"),
        ({}, Qos(name="normal", max_submit_per_account=2), "MaxSubmitJobsPerAccount", "qos normal"),
    ],
)
def test_limits_on_submission_count_queued_and_running_jobs_and_the_request_itself(
    associations: dict[str, ResourceLimits], qos: Qos, limit: str, holder: str
) -> None:
    def limits(name: str) -> ResourceLimits:
        return associations.get(name, ResourceLimits())

    tree = (
        Association(account="root", limits=limits("root")),
        Association(account="nlp", parent="root", limits=limits("nlp")),
        Association(account="nlp", user="ann", limits=limits("ann")),
    )
    engine = an_engine(Cluster(enforce=(Enforce.LIMITS,)), *tree, qos=(qos,))
    (running,) = engine.run(a_spec("running"))
    expected = LimitReached(holder, limit, "", 2, 1, 2)
    assert reason(engine, a_spec("sweep", array=Array((0, 1)))) == ("account", expected)
    assert len(refusal(engine, a_spec("a"), a_spec("b")).reasons) == 1
    engine.submit(a_spec("a"))
    engine.ended(running, code=0)
    engine.submit(a_spec("b"))
    assert isinstance(submit(engine.machine, [a_spec("c")], Actor(ANN, admin=False)), Refusal)
    engine.tell(events.ClusterConfigured(Cluster()))
    assert engine.submit(a_spec("c"))


@pytest.mark.req("SC-11", "JT-34")
def test_urgent_jobs_of_a_user_in_a_project_are_bounded() -> None:
    engine = EngineDriver()
    engine.tell(events.ClusterConfigured(Cluster(urgent_jobs=2)))
    urgent = {"priority": PriorityWord.URGENT}
    (first,) = engine.run(a_spec("a", **urgent))
    (second,) = engine.submit(a_spec("b", hold=True, **urgent))
    refused = refusal(engine, a_spec("c", **urgent))
    assert refused.message.startswith("priority: at most 2 of a user's jobs in a project")
    assert f"now they are {first}, {second}." in refused.message
    assert engine.submit(a_spec("c", project="other", **urgent))
    assert engine.submit(a_spec("c", **urgent), by=BOB)
    engine.ended(first, code=0)
    assert engine.act(edit(engine.machine, engine.job(second), a_spec("b", cpus=2, **urgent))) is None
    assert engine.submit(a_spec("d", **urgent))
    (normal,) = engine.submit(a_spec("e"))
    over = edit(engine.machine, engine.job(normal), a_spec("e", **urgent))
    assert isinstance(over, Refusal)
    assert "at most 2" in over.message


@pytest.mark.req("SC-11", "JT-34")
def test_the_urgent_jobs_of_one_request_and_of_an_array_count_each() -> None:
    engine = EngineDriver()
    engine.tell(events.ClusterConfigured(Cluster(urgent_jobs=2)))
    urgent = {"priority": PriorityWord.URGENT}
    message = refusal(engine, a_spec("a", **urgent), a_spec("b", **urgent), a_spec("c", **urgent)).message
    assert message.startswith("jobs[2].priority: ")
    assert "asks for 3" in refusal(engine, a_spec("a", array=Array((0, 1, 2)), **urgent)).message


@pytest.mark.req("JT-04", "JT-25")
def test_only_administrators_raise_a_job_ahead_of_others() -> None:
    engine = EngineDriver()
    pushed = a_spec(nice=-1, priority=PriorityWord.VERY_URGENT)
    assert [line.split(":")[0] for line in refusal(engine, pushed).message.splitlines()] == ["nice", "priority"]
    (job,) = engine.submit(pushed, admin=True)
    kept = a_spec(nice=-1, priority=PriorityWord.VERY_URGENT, cpus=2)
    assert engine.act(edit(engine.machine, engine.job(job), kept)) is None
    assert isinstance(edit(engine.machine, engine.job(job), a_spec(nice=-2)), Refusal)


@pytest.mark.req("SC-10")
def test_a_deadline_that_cannot_be_met_is_refused() -> None:
    engine = EngineDriver()
    spec = a_spec(time_limit_seconds=3600, deadline_at=engine.now + HOUR - 1)
    assert refusal(engine, spec, now=engine.now).message.startswith("deadline: ")
    assert engine.submit(a_spec(time_limit_seconds=3600, deadline_at=engine.now + HOUR))


@pytest.mark.req("SC-10")
def test_a_named_reservation_must_exist_and_admit_the_user() -> None:
    engine = EngineDriver()
    later = {"start_at": engine.now + HOUR, "end_at": engine.now + 2 * HOUR, "nodes": (NodeName("n1"),)}
    engine.tell(events.ReservationMade(Reservation(name="course", users=("ann",), **later)))
    assert engine.submit(a_spec(reservation="course"))
    assert reason(engine, a_spec(reservation="course"), by=BOB) == ("reservation", InReservation("course"))
    assert reason(engine, a_spec("b", reservation="none")) == ("reservation", InReservation("none"))
    engine.tell(events.ReservationMade(Reservation(name="both", users=("ann",), accounts=("nlp",), **later)))
    assert reason(engine, a_spec("c", reservation="both")) == ("reservation", InReservation("both"))


@pytest.mark.req("JT-42", "SC-03")
def test_an_edit_computes_the_cluster_defaults_again() -> None:
    engine = an_engine(a_cluster(Enforce.QOS))
    (job,) = engine.submit(a_spec(account="nlp"))
    assert engine.act(edit(engine.machine, engine.job(job), a_spec(partitions=("gpu",)))) is None
    found = engine.job(job)
    assert (found.account, found.qos, found.partitions) == ("vision", "normal", ("gpu",))
    refused = edit(engine.machine, found, a_spec(partitions=("cpu",)))
    assert isinstance(refused, Refusal)
    assert isinstance(refused.reasons[0][1], PartitionRefuses)


def test_new_accounts_have_the_qos_normal() -> None:
    """What every rule above builds upon."""
    assert list(Accounts().qos) == ["normal"]


@pytest.mark.req("SC-03", "SC-04")
def test_a_job_too_large_for_every_node_of_its_partitions_is_refused() -> None:
    small = Partition(name="small", nodes=(NodeName("n1"),))
    engine = EngineDriver(a_node("n1", cpus=2), a_node("n2", cpus=8))
    engine.tell(events.ClusterConfigured(Cluster(partitions=(small, Partition(name="all")))))
    path, found = reason(engine, a_spec(cpus=4, partitions=("small",)))
    assert (path, type(found)) == ("specs[0].cpus", NeverFits)
    assert engine.submit(a_spec(cpus=4, partitions=("small", "all")))
