from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.model.accounts import Accounts, AssocKey, Qos, QosFlag, Usage, assoc_key
from cockpit.model.attempt import Attempt
from cockpit.model.cluster import Cluster, Partition, Priority, UsageReset
from cockpit.model.ids import JobId, Millis, NodeName, UserName
from cockpit.model.job import Job, JobState, Submitter
from cockpit.model.node import Allocation, CardSlice
from cockpit.sched.priority.usage import Ledger, Rules, decay_per_second, ended, moved, next_reset, passed, reset_due
from tests.sched.share_trees import account, accounts_of, some_trees, user
from tests.sched.world import node, spec_of

pytestmark = pytest.mark.req("SC-02")

WEEK = 7 * 86_400
T = Millis(1_700_000_000_000)
ACCOUNTS = accounts_of(account("lab"), account("team", 1, "lab"), user("team", "ann"), user("lab", "bob"))
NOTHING = Ledger({}, {}, T)


def rules(accounts: Accounts = ACCOUNTS, half_life: int = WEEK, **fields) -> Rules:
    cluster = Cluster(priority=Priority(decay_half_life_seconds=half_life), **fields)
    return Rules(cluster, accounts, {NodeName("n1"): node("n1", 4)})


def running(
    name: str = "ann", account: str = "team", *, since: int = 0, billing: float = 2.0, partition: str = "", **fields
) -> Job:
    """On four CPUs and two cards, started so many seconds after T."""
    placement = (Allocation(0, NodeName("n1"), 4, 1000, (CardSlice(0, None), CardSlice(1, None))),)
    placed_at = Millis(T + 1000 * since)
    attempt = Attempt(
        number=1, spec_index=0, placement=placement, placed_at=placed_at, replicas=(), partition=partition,
        billing=billing,
    )  # fmt: skip
    fields = {"state": JobState.RUNNING, **fields}
    return Job(
        id=JobId(1), spec=spec_of(), submitter=Submitter(UserName(name), 1, 1, (1,), "/home"), project="p",
        submitted_at=T, state_since=T, account=account, attempt=attempt, **fields,
    )  # fmt: skip


def after(seconds: float) -> Millis:
    return Millis(int(T + 1000 * seconds))


class TestDecay:
    def test_the_decay_is_slurms_linear_approximation(self):
        assert decay_per_second(WEEK) == 1 - 0.693 / WEEK
        assert decay_per_second(0) == 1.0

    def test_the_decay_takes_nearly_half_in_a_half_life(self):
        ledger = Ledger({assoc_key("root"): Usage(1000.0, 100.0, {"cpu": 10.0})}, {}, T)
        (left,) = passed(ledger, rules(), (), after(WEEK)).associations.values()
        assert left.raw == pytest.approx(500, rel=1e-3)
        assert left == Usage(left.raw, left.raw / 10, {"cpu": left.raw / 100})

    def test_without_a_half_life_nothing_decays(self):
        ledger = Ledger({assoc_key("root"): Usage(1000.0)}, {"high": Usage(5.0)}, T)
        assert passed(ledger, rules(half_life=0), (), after(WEEK)) == replace(ledger, at=after(WEEK))

    @given(st.integers(1, 10**9), st.integers(1, 10 * WEEK), st.floats(0, 1e12))
    def test_two_decays_of_half_the_time_equal_one(self, milliseconds: int, half_life: int, raw: float):
        ledger = Ledger({assoc_key("root"): Usage(raw)}, {}, T)
        whole, half = Millis(T + 2 * milliseconds), Millis(T + milliseconds)
        once = passed(ledger, rules(half_life=half_life), (), whole)
        twice = passed(passed(ledger, rules(half_life=half_life), (), half), rules(half_life=half_life), (), whole)
        key = assoc_key("root")
        assert twice.associations[key].raw == pytest.approx(once.associations[key].raw, rel=1e-9, abs=1e-290)

    def test_a_qos_with_no_decay_does_not_decay(self):
        accounts = replace(
            ACCOUNTS, qos={"keep": Qos(name="keep", flags=(QosFlag.NO_DECAY,)), "lose": Qos(name="lose")}
        )
        ledger = Ledger({}, {"keep": Usage(8.0), "lose": Usage(8.0), "gone": Usage(8.0)}, T)
        left = passed(ledger, rules(accounts), (), after(WEEK)).qos
        assert left["keep"].raw == 8.0
        assert left["lose"].raw == left["gone"].raw == pytest.approx(4, rel=1e-3)

    def test_the_decay_never_goes_back_in_time(self):
        ledger = Ledger({assoc_key("root"): Usage(1000.0)}, {}, T)
        assert passed(ledger, rules(), (), after(-5)) == ledger


class TestGrowth:
    def test_running_jobs_are_charged_up_the_tree(self):
        found = passed(NOTHING, rules(half_life=0), (running(), running("bob", "lab")), after(10)).associations
        assert {key: each.raw for key, each in found.items()} == {
            "team/ann": 20.0, "team/": 20.0, "lab/bob": 20.0, "lab/": 40.0, "root/": 40.0,
        }  # fmt: skip

    def test_usage_grows_by_billing_wall_clock_and_each_resource(self):
        found = passed(NOTHING, rules(half_life=0), (running(),), after(10)).associations[assoc_key("team", "ann")]
        assert found == Usage(
            20.0, 10.0, {"cpu": 40.0, "mem": 10_000.0, "node": 10.0, "gres/gpu": 20.0, "gres/gpu:a100": 20.0}
        )

    def test_usage_decays_within_a_step_as_if_all_was_used_at_its_start(self):
        found = passed(NOTHING, rules(half_life=600), (running(),), after(300)).associations[assoc_key("root")]
        assert found.raw == 300 * decay_per_second(600) ** 300 * 2.0

    def test_usage_counts_from_the_last_pass_or_the_start(self):
        found = passed(NOTHING, rules(half_life=0), (running(since=4), running("bob", "lab", since=-99)), after(10))
        assert found.associations[assoc_key("team", "ann")].wall_seconds == 6.0
        assert found.associations[assoc_key("lab", "bob")].wall_seconds == 10.0

    @pytest.mark.parametrize("state", [JobState.QUEUED, JobState.SUCCEEDED, JobState.ERROR])
    def test_usage_omits_jobs_without_allocated_resources(self, state: JobState):
        assert passed(NOTHING, rules(), (running(state=state),), after(10)).associations == {}

    def test_a_job_without_an_association_is_charged_to_none(self):
        nobodys = (running("eve", "team"), running(account=""), running(account="gone"))
        assert passed(NOTHING, rules(), nobodys, after(10)).associations == {}

    def test_usage_is_charged_to_the_association_of_the_partition(self):
        accounts = accounts_of(account("lab"), user("lab", "ann"), user("lab", "ann", partition="gpu"))
        found = passed(NOTHING, rules(accounts), (running(account="lab", partition="gpu"),), after(10)).associations
        assert set(found) == {"lab/ann/gpu", "lab/", "root/"}

    def test_a_qos_weighs_by_its_usage_factor(self):
        accounts = replace(ACCOUNTS, qos={"half": Qos(name="half", usage_factor=0.5)})
        found = passed(NOTHING, rules(accounts, half_life=0), (running(qos="half"),), after(10))
        assert found.qos["half"].raw == found.associations[assoc_key("root")].raw == 10.0
        assert found.qos["half"].wall_seconds == 5.0

    def test_the_partitions_qos_grows_too(self):
        accounts = replace(ACCOUNTS, qos={name: Qos(name=name) for name in ("own", "parts")})
        partitions = (Partition(name="gpu", qos="parts"), Partition(name="cpu", qos="own"))
        twice = passed(
            NOTHING, rules(accounts, partitions=partitions), (running(qos="own", partition="gpu"),), after(10)
        )
        once = passed(
            NOTHING, rules(accounts, partitions=partitions), (running(qos="own", partition="cpu"),), after(10)
        )
        assert twice.qos["own"] == twice.qos["parts"] == once.qos["own"]
        assert set(once.qos) == {"own"}

    def test_a_qos_without_decay_grows_by_the_whole_time(self):
        accounts = replace(ACCOUNTS, qos={"keep": Qos(name="keep", flags=(QosFlag.NO_DECAY,))})
        found = passed(NOTHING, rules(accounts, half_life=60), (running(qos="keep"),), after(30))
        assert found.qos["keep"].raw == 60.0 > found.associations[assoc_key("root")].raw


class TestEnd:
    def test_the_end_of_a_job_adds_what_came_after_the_last_pass(self):
        ledger = passed(NOTHING, rules(half_life=0), (running(),), after(10))
        done = ended(ledger, rules(half_life=0), running(), after(13))
        assert done.associations[assoc_key("root")].raw == 26.0
        assert done.at == ledger.at

    def test_the_end_of_a_job_that_never_ran_changes_nothing(self):
        ledger = Ledger({assoc_key("root"): Usage(1.0)}, {}, T)
        assert ended(ledger, rules(), running(state=JobState.QUEUED), after(3)) is ledger
        assert ended(ledger, rules(), running(account=""), after(3)) is ledger

    def test_the_end_of_a_job_changes_no_ledger_in_place(self):
        ledger = Ledger({assoc_key("root"): Usage(1.0)}, {}, T)
        done = ended(ledger, rules(), running(), after(3))
        assert ledger.associations == {assoc_key("root"): Usage(1.0)}
        assert done.associations is not ledger.associations


@st.composite
def histories(draw) -> list[tuple[str, int, int]]:
    """(user, start, run) in seconds after T."""
    return draw(
        st.lists(st.tuples(st.sampled_from(["ann", "bob"]), st.integers(0, 500), st.integers(0, 500)), max_size=8)
    )


@given(histories(), st.lists(st.integers(0, 1000), max_size=5), st.sampled_from([0, 600, WEEK]))
def test_usage_is_conserved_up_the_tree(jobs: list[tuple[str, int, int]], passes: list[int], half_life: int):
    """After every pass and every end: what an account used is what was used below it."""
    homes = {"ann": "team", "bob": "lab"}
    known, ledger = rules(half_life=half_life), NOTHING
    moments = sorted([(at, None) for at in passes] + [(start + run, each) for each, (_, start, run) in enumerate(jobs)],
                     key=lambda moment: moment[0])  # fmt: skip
    over: set[int] = set()
    for at, end in moments:
        alive = [
            running(name, homes[name], since=start)
            for each, (name, start, _) in enumerate(jobs)
            if each not in over and start <= at
        ]
        if end is None:
            ledger = passed(ledger, known, alive, after(at))
        else:
            over.add(end)
            name, start, _ = jobs[end]
            ledger = ended(ledger, known, running(name, homes[name], since=start), after(at))
        found = {key: each.raw for key, each in ledger.associations.items()}
        assert found.get("team/", 0) == pytest.approx(found.get("team/ann", 0))
        assert found.get("lab/", 0) == pytest.approx(found.get("team/", 0) + found.get("lab/bob", 0))
        assert found.get("root/", 0) == pytest.approx(found.get("lab/", 0))
    if half_life == 0:
        assert ledger.associations.get("root/", Usage()).wall_seconds == pytest.approx(sum(run for _, _, run in jobs))


class TestReset:
    def test_the_usage_reset_starts_at_zero_and_counts_running_jobs(self):
        ledger = Ledger({assoc_key("root"): Usage(1000.0)}, {"high": Usage(5.0)}, T)
        found = passed(ledger, rules(half_life=0), (running(),), after(10), reset=True)
        assert found.associations[assoc_key("root")].raw == 20.0
        assert found.qos == {}

    @pytest.mark.parametrize(
        ("period", "last", "following"),
        [
            (UsageReset.DAILY, "2024-02-28T15:00", "2024-02-29T00:00"),
            (UsageReset.WEEKLY, "2024-02-28T15:00", "2024-03-03T00:00"),  # Slurm's weeks begin on Sunday
            (UsageReset.WEEKLY, "2024-03-03T00:00", "2024-03-10T00:00"),
            (UsageReset.MONTHLY, "2024-01-31T15:00", "2024-02-01T00:00"),
            (UsageReset.MONTHLY, "2024-12-31T23:59", "2025-01-01T00:00"),
            (UsageReset.QUARTERLY, "2024-01-01T00:00", "2024-04-01T00:00"),
            (UsageReset.QUARTERLY, "2024-06-30T00:00", "2024-07-01T00:00"),
            (UsageReset.QUARTERLY, "2024-11-11T00:00", "2025-01-01T00:00"),
            (UsageReset.YEARLY, "2024-02-29T15:00", "2025-01-01T00:00"),
        ],
    )
    def test_the_usage_reset_is_due_at_midnights(self, period: UsageReset, last: str, following: str):
        begun, due = (
            Millis(int(datetime.fromisoformat(f"{each}+00:00").timestamp() * 1000)) for each in (last, following)
        )
        assert next_reset(period, begun) == due
        assert not reset_due(period, begun, Millis(due - 1))
        assert reset_due(period, begun, due)

    def test_the_usage_reset_uses_the_clusters_time_zone(self):
        noon = Millis(int(datetime(2024, 5, 5, 12, tzinfo=UTC).timestamp() * 1000))
        assert next_reset(UsageReset.DAILY, noon, 13 * 3600) == noon + 23 * 3_600_000

    def test_usage_is_never_reset_without_a_period(self):
        assert next_reset(UsageReset.NONE, T) is None
        assert not reset_due(UsageReset.NONE, Millis(0), T)

    def test_a_reset_now_happens_once(self):
        assert reset_due(UsageReset.NOW, Millis(0), T)
        assert not reset_due(UsageReset.NOW, T, after(10**9))

    def test_a_period_only_begins_with_the_first_pass(self):
        assert not reset_due(UsageReset.DAILY, Millis(0), T)


@given(some_trees(), st.data())
def test_a_changed_tree_conserves_usage(drawn: tuple[Accounts, dict[AssocKey, Usage]], data: st.DataObject):
    """Accounts are hung elsewhere and users leave, several at once."""
    before, used = drawn
    accounts = [each.account for each in before.associations.values() if not each.user]
    changed = {}
    for key, each in before.associations.items():
        if each.user and data.draw(st.integers(0, 3)) == 0:
            continue
        place = accounts.index(each.account)
        parent = each.parent if each.user or not place else data.draw(st.sampled_from(accounts[:place]))
        changed[key] = replace(each, parent=parent)
    after = replace(before, associations=changed)
    found = moved(used, before, after)
    assert {key: found[key].raw for key in found if changed[key].user} == pytest.approx(
        {key: used[key].raw for key in used if key in changed and changed[key].user}
    )
    assert found["root/"].raw == pytest.approx(used["root/"].raw)
    leavers = [each for key, each in before.associations.items() if key not in changed]
    for key in (key for key in found if not changed[key].user):
        name = changed[key].account
        below = sum(found[each.key].raw for each in after.children.get(name, ()) if each.key in found)
        left = sum(used[each.key].raw for each in leavers if each.account == name)
        assert found[key].raw == pytest.approx(below + left, abs=1e-6)
