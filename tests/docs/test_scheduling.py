"""docs/scheduling.md says what the code does."""

from __future__ import annotations

import re
from datetime import UTC
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.engine.views.ranking import ranked, tried_order
from cockpit.formats.cluster.file import read_cluster
from cockpit.formats.typed_values import NAMES, read_weights
from cockpit.headless.output import grid_lines
from cockpit.model.accounts import Usage
from cockpit.model.cluster import BackfillKind
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job, Submitter
from cockpit.model.view import Priorities
from cockpit.present.columns import Context
from cockpit.present.reasons import REASON_TYPES
from cockpit.present.tables.priority import table_of
from cockpit.sched.priority.priorities import PriorityTable, prioritised
from cockpit.sched.snapshot import Snapshot
from tests.builders import ANN, BOB, HOUR, NOON, a_node, a_spec
from tests.present.events.test_fleet import REASONS as FLEET_SENTENCES
from tests.present.test_reasons import SENTENCES
from tests.present.test_rule_reasons import SENTENCES as RULE_SENTENCES

PAGE = (Path(__file__).parents[2] / "docs/scheduling.md").read_text()
WHY = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*) \|$", PAGE.split("## Why does my job wait?")[1], re.MULTILINE)
(CLUSTER,) = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
SETUP = read_cluster(a_node(), CLUSTER)


def submitted(number: int, who: Submitter, partition: str, hours: float) -> Job:
    since = Millis(int(NOON - hours * HOUR))
    return Job(
        id=JobId(number),
        spec=a_spec(f"run-{number}"),
        submitter=who,
        project="p",
        submitted_at=since,
        state_since=since,
        accrues_from=since,
        account="nlp",
        partitions=(partition,),
    )


QUEUE = (submitted(4709, BOB, "batch", 24), submitted(4710, BOB, "course", 0.5), submitted(4711, ANN, "batch", 12))
SNAPSHOT = Snapshot(
    version=1,
    now=NOON,
    nodes={node.name: node for node in SETUP.nodes},
    nodes_version=1,
    queue=QUEUE,
    occupied={},
    ends={},
    changes=(),
    changes_from=0,
    cluster=SETUP.cluster,
    accounts=SETUP.accounts,
    usage={key: Usage(raw=1e6) for key, each in SETUP.accounts.associations.items() if each.user in {"bob", ""}},
    usage_at=NOON,
)


def listed(table: PriorityTable, snapshot: Snapshot = SNAPSHOT, before: PriorityTable | None = None) -> list[str]:
    rows = tuple(ranked(table, {job.id: job for job in QUEUE}, lambda _: True, before))
    priority = snapshot.cluster.priority
    shown = table_of(Priorities(priority.kind, priority.weights, rows), tried=before is not None)
    return grid_lines(shown.default, rows, Context(now=NOON, zone=UTC), header=True, limit=None)


@pytest.mark.req("SC-01", "SC-02")
def test_the_example_is_scheduled_as_printed() -> None:
    assert "\n".join(listed(prioritised(SNAPSHOT))) in PAGE


@pytest.mark.req("SC-01")
def test_the_example_with_other_weights_is_scheduled_as_printed() -> None:
    (asked,) = re.findall(r"^cockpit priority --weights (\S+)$", PAGE, re.MULTILINE)
    snapshot, table = tried_order(SNAPSHOT, read_weights(asked))
    assert "\n".join(listed(table, snapshot, prioritised(SNAPSHOT))) in PAGE


def test_age_decides_between_equal_jobs_and_fair_share_between_users() -> None:
    older = replace(QUEUE[0], accrues_from=Millis(NOON - 96 * HOUR))
    table = prioritised(replace(SNAPSHOT, queue=(older, *QUEUE[1:])))
    assert next(job.id for job, _ in table.order) == 4711


@pytest.mark.req("SC-13")
def test_every_reason_is_explained_by_a_sentence_of_the_program() -> None:
    assert sorted(kind for kind, _, _ in WHY) == sorted(REASON_TYPES)
    said = {
        (str(reason.__struct_config__.tag), sentence)
        for reason, sentence in [*SENTENCES, *RULE_SENTENCES, *FLEET_SENTENCES]
    }
    assert {(kind, sentence) for kind, sentence, _ in WHY} - said == set()


def test_every_kind_of_backfill_and_every_weight_is_named() -> None:
    assert set(re.findall(r'^\| `type = "(\w+)"`', PAGE, re.MULTILINE)) == set(BackfillKind)
    headless = (Path(__file__).parents[2] / "docs/headless.md").read_text()
    assert [name for name in NAMES if f"{name}=" not in headless] == []
