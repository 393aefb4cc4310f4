from __future__ import annotations

import pytest

from cockpit.model.accounts import ResourceLimits, Usage
from cockpit.model.cluster import Enforce, Partition
from cockpit.model.ids import Millis
from cockpit.model.reasons import LimitReached, NoAlternative, NoAssociation, NotEnoughFree, QosRefused
from cockpit.sched.rules.rulebook import Rulebook
from tests.sched.lab import moved, starts, submit, tree, world
from tests.sched.world import spec_of, wants

HOUR = 3600
MIXED = {"cpus": 3, "card": 2}
NIGHT = (Partition(name="night", qos="dark"),)

# what is limited, what runs already (each a call of submit), what is asked, and what must be said:
# holder, limit, resource, allowed, used, asked
CASES = {
    "wall of a user": ({"user": {"max_wall_seconds": HOUR}}, [], {"limit": HOUR + 1},
                       ("user ann of account nlp", "MaxWall", "", 3600, 0, 3601)),
    "wall of an account": ({"lab": {"max_wall_seconds": HOUR}}, [], {"limit": HOUR + 1},
                           ("account lab", "MaxWall", "", 3600, 0, 3601)),
    "wall of a QOS": ({"normal": {"limits": {"max_wall_seconds": HOUR}}}, [], {"limit": 2 * HOUR},
                      ("qos normal", "MaxWall", "", 3600, 0, 7200)),
    "cards of a job": ({"user": {"max_tres_per_job": {"gres/gpu": 1.5}}}, [], MIXED,
                       ("user ann of account nlp", "MaxTRESPerJob", "gres/gpu", 1.5, 0, 2)),
    "CPUs of a node": ({"nlp": {"max_tres_per_node": {"cpu": 2}}}, [], MIXED,
                       ("account nlp", "MaxTRESPerNode", "cpu", 2, 0, 3)),
    "too small": ({"normal": {"limits": {"min_tres_per_job": {"gres/gpu": 1}}}}, [], {"card": 0.5},
                  ("qos normal", "MinTRESPerJob", "gres/gpu", 1, 0, 0.5)),
    "jobs of a user": ({"user": {"max_jobs": 2}}, [{}, {}], {}, ("user ann of account nlp", "MaxJobs", "", 2, 2, 1)),
    "jobs of a user by the account": ({"nlp": {"max_jobs": 1}}, [{}, {"user": "bob"}], {},
                                      ("account nlp", "MaxJobs", "", 1, 1, 1)),
    "jobs of an account": ({"lab": {"grp_jobs": 2}}, [{}, {"user": "bob"}], {},
                           ("account lab", "GrpJobs", "", 2, 2, 1)),
    "jobs of everybody": ({"root": {"grp_jobs": 2}}, [{}, {"account": "other"}], {},
                          ("account root", "GrpJobs", "", 2, 2, 1)),
    "cards of an account": ({"nlp": {"grp_tres": {"gres/gpu": 4}}}, [{"card": 3, "user": "bob"}], MIXED,
                            ("account nlp", "GrpTRES", "gres/gpu", 4, 3, 2)),
    "parts of cards": ({"nlp": {"grp_tres": {"gres/gpu": 1}}}, [{"card": 0.3}, {"card": 0.4}], {"card": 0.4},
                       ("account nlp", "GrpTRES", "gres/gpu", 1, 0.7, 0.4)),
    "memory of a user": ({"user": {"grp_tres": {"mem": 2048}}}, [{}, {}], {},
                         ("user ann of account nlp", "GrpTRES", "mem", 2048, 2048, 1024)),
    "cards of one model": ({"nlp": {"grp_tres": {"gres/gpu:a100": 2}}}, [{"card": 1}], MIXED,
                           ("account nlp", "GrpTRES", "gres/gpu:a100", 2, 1, 2)),
    "nodes": ({"nlp": {"grp_tres": {"node": 1}}}, [{}], {}, ("account nlp", "GrpTRES", "node", 1, 1, 1)),
    "billing": ({"nlp": {"grp_tres": {"billing": 8}}}, [{"cpus": 6}], MIXED,
                ("account nlp", "GrpTRES", "billing", 8, 6, 3)),
    "jobs of a QOS": ({"normal": {"limits": {"grp_jobs": 2}}}, [{}, {"account": "other"}], {},
                      ("qos normal", "GrpJobs", "", 2, 2, 1)),
    "jobs of a user in a QOS": ({"normal": {"limits": {"max_jobs": 2}}}, [{}, {"account": "other"}], {},
                                ("qos normal", "MaxJobsPerUser", "", 2, 2, 1)),
    "jobs of an account in a QOS": ({"normal": {"max_jobs_per_account": 2}}, [{}, {"user": "bob"}], {},
                                    ("qos normal", "MaxJobsPerAccount", "", 2, 2, 1)),
    "CPUs of a QOS": ({"normal": {"limits": {"grp_tres": {"cpu": 8}}}}, [{"cpus": 6, "account": "other"}], MIXED,
                      ("qos normal", "GrpTRES", "cpu", 8, 6, 3)),
    "CPUs of a user in a QOS": ({"normal": {"max_tres_per_user": {"cpu": 8}}}, [{"cpus": 6, "account": "other"}], MIXED,
                                ("qos normal", "MaxTRESPerUser", "cpu", 8, 6, 3)),
    "CPUs of an account in a QOS": ({"normal": {"max_tres_per_account": {"cpu": 8}}}, [{"cpus": 6, "user": "bob"}],
                                    MIXED, ("qos normal", "MaxTRESPerAccount", "cpu", 8, 6, 3)),
}  # fmt: skip


def with_limits(kinds: dict):
    return {kind: _limits(fields) for kind, fields in kinds.items()}


def _limits(fields: dict) -> dict:
    return {**fields, "limits": ResourceLimits(**fields["limits"])} if "limits" in fields else fields


@pytest.mark.req("SC-03")
@pytest.mark.parametrize("case", CASES)
def test_each_limit_stops_at_its_bound_and_exactly_there(case: str) -> None:
    kinds, running, asked, told = CASES[case]
    here = world(tree(**with_limits(kinds)))
    for fields in running:
        submit(here, **fields)
    here.run()
    job = submit(here, **asked)
    assert not starts(here, job)
    reason = here.reason(job)
    assert reason == LimitReached(*told)
    enough = reason.asked if reason.limit.startswith("Min") else reason.used + reason.asked
    a_little = 0.001 if reason.resource else 1
    short = enough + a_little if reason.limit.startswith("Min") else enough - a_little
    here.change_rules(accounts=moved(here.rules["accounts"], reason, short))
    assert not starts(here, job)
    here.change_rules(accounts=moved(here.rules["accounts"], reason, enough))
    assert starts(here, job)


@pytest.mark.req("SC-03")
@pytest.mark.parametrize("case", CASES)
def test_no_limit_counts_where_limits_are_not_enforced(case: str) -> None:
    kinds, running, asked, _ = CASES[case]
    here = world(tree(**with_limits(kinds)), Enforce.QOS)
    for fields in [*running, asked]:
        submit(here, **fields)
    assert len(here.cycle().starts) == len(running) + 1


@pytest.mark.req("SC-03")
def test_jobs_started_in_the_same_pass_count() -> None:
    here = world(tree(nlp={"grp_tres": {"cpu": 5}}))
    jobs = [submit(here, cpus=2) for _ in range(3)]
    assert [start.job for start in here.run().starts] == jobs[:2]
    assert here.reason(jobs[2]) == LimitReached("account nlp", "GrpTRES", "cpu", 5, 4, 2)
    assert starts(here, submit(here))


@pytest.mark.req("SC-03")
def test_a_job_that_ends_releases_what_it_used_of_a_limit() -> None:
    here = world(tree(nlp={"max_jobs": 1}))
    first, second = submit(here), submit(here)
    here.run()
    assert isinstance(here.reason(second), LimitReached)
    here.end(first)
    assert starts(here, second)


@pytest.mark.req("SC-03")
def test_a_held_container_counts_by_its_cards_but_not_as_a_job() -> None:
    here = world(tree(nlp={"grp_jobs": 2, "grp_tres": {"gres/gpu": 2}}))
    failed = submit(here, card=2)
    here.run()
    here.keep_cards(failed)
    with_cards, without = submit(here, card=1), [submit(here), submit(here)]
    assert [start.job for start in here.cycle().starts] == without
    here.change_rules(accounts=tree(nlp={"grp_tres": {"gres/gpu": 2}}))
    here.cycle()
    assert here.reason(with_cards) == LimitReached("account nlp", "GrpTRES", "gres/gpu", 2, 2, 1)


@pytest.mark.req("SC-03")
def test_a_users_limit_overrides_the_accounts_and_the_nearest_account_overrides_those_above() -> None:
    tight = {"max_jobs": 1, "max_tres_per_job": {"cpu": 1}}
    here = world(tree(user={"max_jobs": 2}, nlp={"max_tres_per_job": {"cpu": 2}}, lab=tight))
    jobs = [submit(here, cpus=2), submit(here, cpus=2), submit(here)]
    assert [start.job for start in here.run().starts] == jobs[:2]
    assert here.reason(jobs[2]).holder == "user ann of account nlp"
    bob = [submit(here, user="bob"), submit(here, user="bob")]
    assert [start.job for start in here.run().starts] == bob[:1]
    assert here.reason(bob[1]) == LimitReached("account lab", "MaxJobs", "", 1, 1, 1)


@pytest.mark.req("SC-03")
def test_group_limits_hold_at_every_level() -> None:
    here = world(tree(user={"grp_jobs": 5}, nlp={"grp_jobs": 4}, lab={"grp_jobs": 3}))
    jobs = [submit(here) for _ in range(4)]
    here.run()
    assert here.reason(jobs[3]).holder == "account lab"


@pytest.mark.req("SC-03")
def test_a_qos_limit_overrides_that_limit_of_the_accounts_and_no_other() -> None:
    limits = {"grp_jobs": 1, "grp_tres": {"cpu": 1, "gres/gpu": 1}, "max_wall_seconds": 10, "max_jobs": 1}
    of_qos = _limits({"limits": {"grp_jobs": 3, "grp_tres": {"cpu": 9}, "max_wall_seconds": HOUR, "max_jobs": 3}})
    here = world(tree(nlp=limits, normal=of_qos))
    fine = submit(here, cpus=4, limit=HOUR), submit(here, cpus=4, card=1, limit=HOUR)
    assert tuple(start.job for start in here.run().starts) == fine
    third = submit(here, card=1)
    here.cycle()
    assert here.reason(third) == LimitReached("account nlp", "GrpTRES", "gres/gpu", 1, 1, 1)


@pytest.mark.req("SC-03")
@pytest.mark.parametrize(("flags", "first"), [((), "qos dark of partition night"), (("OverPartQOS",), "qos normal")])
def test_the_partitions_qos_overrides_the_jobs_unless_a_flag_reverses_it(flags, first) -> None:
    dark = _limits({"limits": {"max_jobs": 1}})
    normal = _limits({"limits": {"max_jobs": 2}, "flags": flags})
    here = world(tree(normal=normal, dark=dark), partitions=NIGHT)
    jobs = [submit(here, partitions=("night",)) for _ in range(3)]
    started = [start.job for start in here.run().starts]
    assert started == jobs[: 2 if flags else 1]
    assert here.reason(jobs[2]).holder == first


@pytest.mark.req("SC-03")
def test_an_association_bound_to_a_partition_is_that_of_the_jobs_there() -> None:
    accounts = tree()
    bound = type(accounts.associations["nlp/ann"])
    only = bound(account="nlp", user="cyd", partition="night")
    accounts = type(accounts)(associations={**accounts.associations, only.key: only}, qos=accounts.qos)
    here = world(accounts, Enforce.ASSOCIATIONS, partitions=(Partition(name="day"), Partition(name="night")))
    day = submit(here, user="cyd", partitions=("day",))
    night = submit(here, user="cyd", partitions=("night",))
    assert [start.job for start in here.run().starts] == [night]
    assert here.reason(day) == NoAssociation("cyd", "nlp", "day")


@pytest.mark.req("SC-03")
def test_a_user_without_an_association_runs_only_where_none_is_required() -> None:
    for enforce, runs in ((Enforce.ASSOCIATIONS, False), (Enforce.LIMITS, False), (Enforce.QOS, False), (None, True)):
        here = world(tree(), *[enforce] if enforce else [])
        if enforce is None:
            here.change_rules(cluster=type(here.rules["cluster"])())
        job = submit(here, user="dan")
        assert starts(here, job) is runs
        assert runs or here.reason(job) == NoAssociation("dan", "nlp")


@pytest.mark.req("SC-03")
def test_a_qos_must_be_allowed_where_qos_is_enforced_and_the_list_is_inherited() -> None:
    accounts = tree(high={}, low={})
    lab = accounts.associations["lab/"]
    accounts.associations["lab/"] = type(lab)(account="lab", parent="root", qos=("normal", "high"))
    for enforce, runs in ((Enforce.QOS, False), (Enforce.LIMITS, True)):
        here = world(accounts, enforce)
        high, low = submit(here, qos="high"), submit(here, qos="low")
        assert high in [start.job for start in here.cycle().starts]
        assert starts(here, low) is runs
        assert runs or here.reason(low) == QosRefused("low", ("normal", "high"))


@pytest.mark.req("SC-03")
@pytest.mark.parametrize("holder", ["user", "lab", "qos"])
def test_a_budget_of_minutes_stops_once_it_is_used_up(holder: str) -> None:
    limits = {"grp_tres_minutes": {"cpu": 100}}
    accounts = tree(normal=_limits({"limits": limits})) if holder == "qos" else tree(**{holder: limits})
    key = {"user": "nlp/ann", "lab": "lab/"}.get(holder)
    for used, runs in ((5999, True), (6000, False)):
        usage = Usage(0, 0, {"cpu": used})
        here = world(accounts, **({"usage": {key: usage}} if key else {"qos_usage": {"normal": usage}}))
        job = submit(here, limit=1000 * HOUR)
        assert starts(here, job) is runs
    reason = here.reason(job)
    assert (reason.limit, reason.resource, reason.allowed, reason.used) == ("GrpTRESMins", "cpu", 100, 100)
    here.change_rules(accounts=moved(accounts, reason, 101))
    assert starts(here, job)


@pytest.mark.req("SC-03")
def test_a_budget_of_wall_clock() -> None:
    here = world(tree(nlp={"grp_wall_seconds": 60}), usage={"nlp/": Usage(0, 60)})
    job = submit(here)
    assert not starts(here, job)
    assert here.reason(job) == LimitReached("account nlp", "GrpWall", "", 60, 60, 0)
    here.change_rules(usage={"nlp/": Usage(0, 59)})
    assert starts(here, job)


@pytest.mark.req("SC-03")
def test_under_a_qos_with_usage_factor_zero_no_minutes_are_used() -> None:
    for factor, runs in ((0, True), (0.5, False)):
        here = world(
            tree(nlp={"grp_tres_minutes": {"cpu": 1}}, normal={"usage_factor": factor}),
            usage={"nlp/": Usage(0, 0, {"cpu": 60})},
        )
        assert starts(here, submit(here)) is runs


@pytest.mark.req("SC-03")
@pytest.mark.parametrize(
    ("limits", "job", "broken"),
    [
        ({"limits": {"max_wall_seconds": 60}}, {"limit": 120}, ("MaxWall", "", 60, 120)),
        ({"limits": {"max_tres_per_job": {"cpu": 2}}}, {"cpus": 3}, ("MaxTRESPerJob", "cpu", 2, 3)),
        ({"limits": {"grp_tres": {"cpu": 2}}}, {"cpus": 3}, ("GrpTRES", "cpu", 2, 3)),
        ({"max_tres_per_user": {"cpu": 2}}, {"cpus": 3}, ("MaxTRESPerUser", "cpu", 2, 3)),
        ({"limits": {"grp_tres": {"cpu": 3}}}, {"cpus": 3}, None),
        ({"limits": {"grp_jobs": 0, "max_jobs": 0, "grp_tres_minutes": {"cpu": 0}}}, {"cpus": 3}, None),
    ],
)
@pytest.mark.parametrize("flag", ["DenyOnLimit", "denyonlimit", ""])
def test_under_deny_on_limit_the_limit_that_a_job_exceeds_by_itself_is_named(limits, job, broken, flag) -> None:
    fields = {name: ResourceLimits(**value) if name == "limits" else value for name, value in limits.items()}
    accounts = tree(normal={**fields, "flags": (flag,) if flag else ()})
    here = world(accounts)
    rules = Rulebook(here.snapshot().cluster, accounts, 0)
    told = rules.denied(here.jobs[submit(here, **job)], "")
    assert told == (LimitReached("qos normal", *broken[:3], 0, broken[3]) if broken and flag else None)


@pytest.mark.req("SC-03")
@pytest.mark.parametrize(("flags", "fits"), [((), 60), (("UsageFactorSafe",), 120)])
def test_safe_starts_only_jobs_that_the_remaining_budget_covers(flags, fits) -> None:
    """100 minutes: 20 are used, 20 may still be used by what runs; a job at half price may be twice as long."""
    accounts = tree(nlp={"grp_tres_minutes": {"cpu": 100}}, normal={"usage_factor": 0.5, "flags": flags})
    here = world(accounts, Enforce.SAFE, usage={"nlp/": Usage(0, 0, {"cpu": 1200})})
    submit(here, user="bob", limit=60 * (20 if not flags else 40))
    here.run()
    long, right = submit(here, limit=60 * fits + 1), submit(here, limit=60 * fits)
    assert [start.job for start in here.cycle().starts] == [right]
    assert here.reason(long).limit == "GrpTRESMins"


@pytest.mark.req("SC-03")
def test_under_safe_a_running_job_counts_only_what_the_last_pass_over_usage_did_not() -> None:
    here = world(tree(nlp={"grp_tres_minutes": {"cpu": 60}}), Enforce.SAFE)
    submit(here, limit=HOUR)
    here.run()
    here.now = Millis(1000 * HOUR // 2)
    here.change_rules(usage={"nlp/": Usage(0, 0, {"cpu": 0})}, usage_at=here.now)
    assert starts(here, submit(here, limit=HOUR // 2))
    late = submit(here, limit=HOUR // 2 + 60)
    assert not starts(here, late)


@pytest.mark.req("SC-03")
def test_a_limit_excludes_only_the_alternatives_that_exceed_it() -> None:
    here = world(tree(nlp={"grp_tres": {"gres/gpu": 2}}))
    job = here.submit_spec(spec_of(wants(4000), wants(2000)), account="nlp", qos="normal")
    (start,) = here.run().starts
    assert (start.job, start.spec_index) == (job, 1)
    both = here.submit_spec(spec_of(wants(4000), wants(2000)), account="nlp", qos="normal")
    here.cycle()
    wants_of_each = [LimitReached("account nlp", "GrpTRES", "gres/gpu", 2, 2, asked) for asked in (4, 2)]
    assert here.reason(both) == NoAlternative(tuple(wants_of_each))


@pytest.mark.req("SC-03", "SC-13")
def test_the_reason_names_the_limit_that_a_later_start_of_the_pass_used_up_for_one_alternative() -> None:
    here = world(tree(nlp={"grp_tres": {"gres/gpu": 7}}))
    submit(here, card=6, account="other")
    here.run()
    waits = here.submit_spec(spec_of(wants(7000), wants(3000)), account="nlp", qos="normal")
    shorter = submit(here, card=1, limit=60)
    assert [each.job for each in here.run().starts] == [shorter]
    first, second = here.reason(waits).specs
    assert first == LimitReached("account nlp", "GrpTRES", "gres/gpu", 7, 1, 7)
    assert isinstance(second, NotEnoughFree)


@pytest.mark.req("SC-03")
def test_an_exclusive_job_counts_the_whole_node_that_it_gets() -> None:
    here = world(tree(nlp={"grp_tres": {"cpu": 63}}))
    job = submit(here, exclusive=True)
    assert not starts(here, job)
    assert here.reason(job) == LimitReached("account nlp", "GrpTRES", "cpu", 63, 0, 64)


@pytest.mark.req("SC-03")
def test_a_job_that_needs_none_of_a_resource_is_not_stopped_by_its_exceeded_limit() -> None:
    here = world(tree(nlp={"grp_tres": {"gres/gpu": 4}}))
    submit(here, card=4)
    here.run()
    here.change_rules(accounts=tree(nlp={"grp_tres": {"gres/gpu": 1}}))
    assert starts(here, submit(here))


@pytest.mark.req("SC-03", "SC-13")
def test_a_job_stopped_by_a_limit_delays_no_other_job() -> None:
    here = world(tree(user={"max_jobs": 0}))
    first, second = submit(here, cpus=64), submit(here, cpus=64, user="bob")
    third = submit(here, user="bob")
    assert [start.job for start in here.run().starts] == [second]
    assert here.plan.reservation.job == third
    assert isinstance(here.reason(first), LimitReached)
    assert isinstance(here.reason(third), NotEnoughFree)


@pytest.mark.req("SC-03")
def test_billing_is_as_the_partition_weighs_it() -> None:
    weighs = Partition(name="gpu", billing_weights={"cpu": 1.0, "gres/gpu": 2.5})
    here = world(tree(nlp={"grp_tres": {"billing": 10}}), partitions=(weighs,))
    submit(here, cpus=2, card=2, partitions=("gpu",))
    (start,) = here.run().starts
    assert (start.partition, start.billing) == ("gpu", 7.0)
    job = submit(here, cpus=1, card=1, partitions=("gpu",))
    here.cycle()
    assert here.reason(job) == LimitReached("account nlp", "GrpTRES", "billing", 10, 7, 3.5)


def test_fractional_amounts_in_use_return_exactly_to_zero() -> None:
    here = world(tree(nlp={"grp_tres": {"gres/gpu": 1}}))
    for share in (0.1, 0.2, 0.7):
        submit(here, card=share)
    assert len(here.run().starts) == 3
    for job in list(here.occupied):
        here.end(job)
    here.cycle()
    assert here.index.counters.used == {}
