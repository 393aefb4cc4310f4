"""What the fields of a form may have as values: which match, what taking one writes, and why one is not allowed."""

from __future__ import annotations

import msgspec
import pytest

from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.model.accounts import Association, Qos
from cockpit.model.cluster import Cluster, Enforce, Partition, PartitionState, Reservation
from cockpit.model.ids import NodeName
from cockpit.model.spec import JobSpec, NodeSpec
from cockpit.model.view import AccountRow, AccountsShown, QueueKind, QueueRow
from cockpit.present.form.candidates import Candidates
from cockpit.present.form.choices import (
    ChoiceColumns,
    FieldChoice,
    choice_line,
    is_fixed,
    matching,
    wanted,
    with_choice,
    written,
)
from cockpit.present.form.facts import ClusterFacts
from cockpit.present.form.fields import JobForm
from cockpit.present.form.node_choices import card_counts
from cockpit.present.spans import plain
from tests.doubles.catalogue import catalogue_shown
from tests.doubles.samples import node_row

FIRST = {"name": "a", "command": "true", "output": "/out", "specs": [{"cpus": 2, "memory": "1G"}]}
PARTITIONS = (
    Partition(name="gpu", default=True, max_time_seconds=7200),
    Partition(name="short", max_time_seconds=600),
    Partition(name="vision", allow_accounts=("vision",)),
    Partition(name="old", state=PartitionState.DRAIN),
)
RULES = Cluster(partitions=PARTITIONS, enforce=(Enforce.ASSOCIATIONS, Enforce.QOS))
ACCOUNTS = AccountsShown(
    tuple(
        AccountRow(each, 0, 0.0, 0, 0)
        for each in (
            Association(account="nlp", parent="root", qos=("normal",)),
            Association(account="nlp", user="ann", default=True),
            Association(account="vision", parent="root", qos=("normal", "high")),
            Association(account="vision", user="bob"),
        )
    ),
    (Qos(name="normal"), Qos(name="high", priority=100, preempt=("normal",))),
)
FACTS = ClusterFacts(user="ann", admin=False, nodes=(node_row("n07"), node_row("n08")), rules=RULES, accounts=ACCOUNTS)


def read(source: str, text: str, folder: str) -> list[JobSpec]:
    return read_jobs(source, text, folder, defaults=Defaults())


def choices(path: str, facts: ClusterFacts = FACTS, **values: object) -> dict[str, FieldChoice]:
    """The candidates of a field by value, in their order, of a form with these values."""
    form = JobForm({**FIRST, **values})
    found = Candidates(facts, lambda each: each.judge(read, "/")).of(path, form, form.readable_spec(read, "/"))
    return {each.value: each for each in found}


@pytest.mark.req("UI-31", "UI-08")
def test_a_partition_says_its_room_and_why_it_refuses_the_job() -> None:
    found = choices("partitions", time_limit="1h")
    assert list(found) == ["gpu", "short", "vision", "old"], "those that are allowed come first"
    assert found["gpu"] == FieldChoice("gpu", "2 nodes · room now on 2 · at most 2 h · the default")
    assert found["short"].why_not == "asks for 1 h, partition short allows 10 min"
    assert found["vision"].why_not == "partition vision does not serve account nlp"
    assert found["old"].why_not == "takes no new jobs now (drain)"
    assert not choices("partitions", time_limit="5m")["short"].why_not
    big = choices("partitions", specs=[{"cpus": 65, "memory": "1G"}], time_limit="5m")
    assert {each.why_not for each in big.values()} >= {"no node in it is big enough"}


@pytest.mark.req("UI-31", "UI-08")
def test_accounts_and_qos_of_others_have_the_reason() -> None:
    assert choices("account") == {
        "nlp": FieldChoice("nlp", "your default"),
        "vision": FieldChoice("vision", why_not="you are not a user of it"),
    }
    assert choices("qos")["high"] == FieldChoice(
        "high", "priority 100 · preempts normal", "not allowed to you in account nlp"
    )
    free = msgspec.structs.replace(FACTS, rules=Cluster(partitions=PARTITIONS))
    assert list(choices("account", free)) == ["nlp"]
    assert not choices("qos", free)["high"].why_not


@pytest.mark.req("UI-31", "UI-08")
def test_words_say_what_they_mean_and_which_error_they_would_make() -> None:
    assert choices("mode", nodes=2)["standalone"].why_not
    assert not choices("mode", nodes=2)["pytorch"].why_not
    assert not choices("mode", nodes=1)["standalone"].why_not
    assert choices("kind")["batch"] == FieldChoice("batch", "several tasks, each with its own command")
    assert choices("priority")["very-urgent"].why_not == "only administrators set it"
    assert list(choices("terminal")) == ["true", "false"]


@pytest.mark.req("UI-31", "JT-46")
def test_a_card_model_says_how_many_are_free_and_waited_for() -> None:
    facts = msgspec.structs.replace(FACTS, demand={"A100": 12.0})
    assert card_counts(facts.nodes, "A100") == (16, 13.0)
    assert choices("specs[0].card_models", facts)["A100"].about == "13 of 16 free now · 12 waited for"
    many = [{"cpus": 2, "memory": "1G", "cards": 9}]
    assert choices("specs[0].card_models", specs=many)["A100"].why_not == "no node has 9 of them"


@pytest.mark.req("UI-31")
def test_queues_reservations_pools_and_images_are_candidates() -> None:
    queue = QueueRow(
        kind=QueueKind.QUOTA, path="team/main (lab)", name="main", level=1, since=None, waiting=3, running=1,
        used={}, min={}, max={}, projects=("lab",), stopped="it is stopped",
    )  # fmt: skip
    facts = ClusterFacts(
        user="ann",
        queues=(queue, msgspec.structs.replace(queue, path="team", name="team")),
        reservations=(Reservation(name="course", nodes=(NodeName("n07"),), start_at=0, end_at=9, users=("bob",)),),
        nodes=(node_row("n07", pool="fast"), node_row("n08", pool="fast")),
        images={"example/train:1": "vit"},
        host_image=False,
    )
    assert choices("partitions", facts) == {"main": FieldChoice("main", "1 running, 3 waiting", "it is stopped")}
    assert choices("reservation", facts)["course"].why_not == "over, or not for you"
    assert choices("pool", facts) == {"fast": FieldChoice("fast", "2 nodes · room now on 2")}
    assert choices("node_names", facts)["n08"] == FieldChoice("n08", "has room now")
    assert choices("image", facts) == {"example/train:1": FieldChoice("example/train:1", "the image of job vit")}
    assert list(choices("image")) == ["host"]


@pytest.mark.req("UI-31", "JT-49")
def test_an_entry_of_the_catalogue_is_written_with_its_version_and_removed_again() -> None:
    facts = ClusterFacts(catalogue=catalogue_shown().rows)
    found = choices("datasets", facts)
    assert found["coco"].about.startswith("version v2")
    text = with_choice("datasets", "", found["coco"], [*found.values()])
    assert written("datasets", text) == ["coco"]
    both = with_choice("datasets", text, found["corpus"], [*found.values()])
    assert written("datasets", both) == ["coco", "corpus"]
    assert written("datasets", with_choice("datasets", both, found["coco"], [*found.values()])) == ["corpus"]
    assert with_choice("algorithm", "./x", choices("algorithm", facts)["vit"], []).startswith('{"name": "vit"')


@pytest.mark.req("UI-31")
def test_what_is_typed_filters_the_choices() -> None:
    all_of = [FieldChoice("gpu"), FieldChoice("cpu", "the default"), FieldChoice("big-gpu")]
    assert [each.value for each in matching(all_of, "GP")] == ["gpu", "big-gpu"]
    assert [each.value for each in matching(all_of, "default")] == ["cpu"]
    assert wanted("partitions", "cpu, g", all_of) == "g"
    assert wanted("partitions", "cpu, gpu", all_of) == wanted("partitions", "cpu,", all_of) == ""
    assert with_choice("partitions", "cpu, g", all_of[0], all_of) == "cpu, gpu"
    assert with_choice("partitions", "cpu, gpu", all_of[0], all_of) == "cpu"
    assert with_choice("mode", "py", FieldChoice("pytorch"), [FieldChoice("pytorch")]) == "pytorch"
    assert is_fixed("mode")
    assert is_fixed("terminal")
    assert not is_fixed("partitions")


@pytest.mark.req("UI-31", "TR-05")
def test_a_choice_from_outside_is_drawn_harmlessly_with_its_reason_first() -> None:
    choice = FieldChoice("a\x1b[2J", "about", "why")
    columns = ChoiceColumns.of([choice])
    drawn = plain(choice_line(choice, is_chosen=True, value_columns=columns.value))
    assert drawn.startswith(" ✓ a")
    assert "\x1b" not in drawn
    assert drawn.endswith("  why  about")
    assert len(drawn) <= columns.wanted


@pytest.mark.req("UI-08")
def test_a_form_with_a_wrong_field_is_still_a_job() -> None:
    form = JobForm({**FIRST, "command": "", "time_limit": "soon", "specs": [{"cpus": 3, "memory": "2G"}]})
    spec = form.readable_spec(read, "/")
    assert spec is not None
    assert spec.specs == (NodeSpec(cpus=3, memory_mib=2048),)


@pytest.mark.req("UI-31")
@pytest.mark.parametrize("facts", [FACTS, ClusterFacts()])
@pytest.mark.parametrize("path", ["partitions", "account", "qos", "specs[0].card_models", "mode", "terminal", "name"])
def test_a_field_is_marked_just_where_it_has_choices(path: str, facts: ClusterFacts) -> None:
    form = JobForm(FIRST)
    candidates = Candidates(facts, lambda each: each.judge(read, "/"))
    assert candidates.exist_for(path) is bool(candidates.of(path, form, form.readable_spec(read, "/")))
