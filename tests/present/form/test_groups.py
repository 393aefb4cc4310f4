"""The groups of the form's fields: every field has one, and the heading of a folded group says what it holds."""

from __future__ import annotations

import pytest

from cockpit.formats.job.texts import FIELDS
from cockpit.present.form.fields import JobForm
from cockpit.present.form.groups import GROUPS, group_of, grouped, heading_line
from cockpit.present.spans import plain

PLACEMENT = next(group for group in GROUPS if "partitions" in group.fields)
TEXTS = {"partitions": "gpu", "account": "", "qos": " high "}


@pytest.mark.req("UI-31", "UI-08")
@pytest.mark.parametrize("path", [*FIELDS, "specs[1].cards", "tasks[0].command"])
def test_every_field_is_in_one_group(path: str) -> None:
    name = path.partition("[")[0]
    assert [group for group in GROUPS if name in group.fields] == [group_of(path)]


@pytest.mark.req("UI-31", "UI-08")
def test_fields_stay_in_the_order_of_their_group_and_spec() -> None:
    specs = [{"cpus": 1}, {"cpus": 2}]
    form = JobForm({"kind": "batch", "name": "a", "specs": specs, "tasks": [{"command": "x"}], "labels": "a=b"})
    found = {group.title: paths for group, paths in grouped(form.texts)}
    assert [*found] == ["What runs", "Resources", "Placement and queue", "Time and retries", "Data", "Description"]
    assert found["What runs"] == ["name", "tasks[0].command", "tasks[0].algorithm", "output", "kind"]
    assert found["Resources"][1:5] == [f"specs[0].{each}" for each in ("cpus", "memory", "cards", "card_models")]
    assert found["Resources"][5] == "specs[1].cpus"


@pytest.mark.req("UI-31", "UI-08")
@pytest.mark.parametrize(
    ("texts", "errors", "said"),
    [
        (TEXTS, {}, "▸ Placement and queue   partitions gpu · qos high"),
        (TEXTS, {"qos": "there is none", "name": "is missing"}, "▸ Placement and queue   ✗ qos there is none"),
        ({"account": "", "qos": ""}, {}, "▸ Placement and queue   account, qos: by default"),
    ],
)
def test_a_folded_group_says_what_it_holds(texts: dict[str, str], errors: dict[str, str], said: str) -> None:
    assert plain(heading_line(PLACEMENT, texts, errors, is_folded=True)) == said
    assert plain(heading_line(PLACEMENT, texts, errors, is_folded=False)) == "▾ Placement and queue"
