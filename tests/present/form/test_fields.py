"""The words of a form: which error belongs to which field, and how its sentences fold."""

from __future__ import annotations

import pytest

from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.formats.job.texts import FIELDS, GROUPS
from cockpit.model.spec import NodeSpec
from cockpit.present.form.fields import JobForm, take_entry, title, with_named_specs
from cockpit.present.spans import plain, worded
from tests.doubles.catalogue import catalogue_shown

FIRST = {"name": "a", "command": "true", "output": "./out", "specs": [{"cpus": 2}]}


def read(source: str, text: str, folder: str) -> list:
    return read_jobs(source, text, folder, defaults=Defaults())


@pytest.mark.req("UI-08")
def test_every_error_is_at_its_field_and_others_are_listed_separately():
    form = JobForm({**FIRST, "specs": [{"cpus": 0, "card_models": ["A100"]}], "time_limit": "soon"})
    judged = form.read_spec(read, "/home/ann")
    assert judged.spec is None
    assert set(judged.errors) == {"specs[0].cpus", "time_limit"}
    told = form.errors_by_field(
        ["specs[0].cards: asks for 9", "nodes[*]: too many", "the queue is closed", "env.A: is empty"]
    )
    assert told.errors == {"specs[0].cards": "asks for 9", "nodes": "too many"}
    assert told.others == ("the queue is closed", "env.A: is empty")


@pytest.mark.req("UI-08")
def test_a_form_is_parsed_to_the_spec_of_its_texts():
    form = JobForm(FIRST)
    form.texts |= {"specs[0].cards": "0.5", "partitions": "short, long"}
    form.add("env")
    form.texts["env"] = "{A: 1}"
    spec = form.read_spec(read, "/home/ann").spec
    assert spec is not None
    assert (spec.output, spec.specs[0].card_milli, spec.partitions) == ("/home/ann/out", 500, ("short", "long"))
    assert spec.env == {"A": "1"}


@pytest.mark.req("UI-08", "KU-07")
def test_an_image_has_a_field_from_the_beginning_where_jobs_need_one():
    assert "image" not in JobForm(FIRST).texts
    form = JobForm(FIRST, needs_image=True)
    assert [*form.texts][:4] == ["name", "command", "algorithm", "image"]
    assert JobForm({**FIRST, "image": "example/train:1"}, needs_image=True).texts["image"] == "example/train:1"
    told = form.errors_by_field(["jobs[0].image: a pod needs an image"])
    assert told.errors == {"image": "a pod needs an image"}


@pytest.mark.req("UI-08", "JT-09")
def test_several_specs_are_listed_field_by_field_under_their_numbers():
    form = JobForm({**FIRST, "specs": [{"cpus": 1}, {"cpus": 2, "cards": 1}]})
    assert [form.lead(path) for path in form.texts if form.lead(path)] == ["spec 1", "or spec 2"]
    assert form.add("specs") == "specs[2].cpus"
    order = [*form.texts]
    assert order.index("specs[2].cpus") == order.index("specs[1].card_models") + 1
    form.texts["specs[2].memory"] = "2G"
    spec = form.read_spec(read, "/").spec
    assert spec is not None
    assert [(each.cpus, each.memory_mib) for each in spec.specs] == [(1, 1024), (2, 1024), (1, 2048)]


@pytest.mark.req("UI-08", "JT-09")
def test_a_blank_spec_is_ignored_and_errors_are_shown_at_their_spec():
    form = JobForm({**FIRST, "specs": [{"cpus": 1}, {"cpus": 2}, {"cpus": 3}]})
    form.texts |= {"specs[1].cpus": "", "specs[2].cpus": "none"}
    assert set(form.read_spec(read, "/").errors) == {"specs[2].cpus"}
    form.texts["specs[2].cpus"] = "4"
    spec = form.read_spec(read, "/").spec
    assert spec is not None
    assert [each.cpus for each in spec.specs] == [1, 4]
    assert form.errors_by_field(["specs[1].cpus: too many"]).errors == {"specs[2].cpus": "too many"}


@pytest.mark.req("UI-08", "JT-46")
def test_chosen_specs_replace_the_existing_ones():
    form = JobForm({**FIRST, "specs": [{"cpus": 1}], "terminal": True})
    form.put_specs([{"name": "small"}, {"cpus": 8, "cards": 1, "card_models": ["A100"]}])
    order = [path for path in form.texts if path.startswith("specs")]
    assert order == ["specs[0].name", *(f"specs[1].{each}" for each in ("cpus", "memory", "cards", "card_models"))]
    assert form.values()["specs"] == [{"name": "small"}, {"cpus": 8, "cards": 1, "card_models": ["A100"]}]
    assert "specs[0].cpus" in form.absent
    assert form.choice("specs[0].cpus") == "spec 1: cpus"
    assert form.choice("specs") == "another spec"


def test_words_are_not_split_where_they_fit():
    assert [plain(each) for each in worded("no node has room", 11)] == ["no node has", "room"]
    assert [plain(each) for each in worded("训练 训练 x", 5)] == ["训练", "训练", "x"]
    assert [plain(each) for each in worded("a abcdefgh", 4)] == ["a", "abcd", "efgh"]


@pytest.mark.req("JT-03", "UI-08")
def test_a_batchs_tasks_have_a_line_for_each_of_their_fields():
    batch = {"name": "tune", "kind": "batch", "output": "/o", "tasks": [{"command": "a", "algorithm": "/algo"}]}
    form = JobForm(batch)
    assert not {"command", "algorithm"} & form.texts.keys()
    assert (form.absent[0], {"command", "algorithm"} & set(form.absent)) == ("tasks", set())
    form.add("tasks")
    assert [title(path) for path in form.texts][2:6] == ["#0 command", "#0 algorithm", "#1 command", "#1 algorithm"]
    form.texts["tasks[1].command"] = "b && c"
    assert set(form.read_spec(read, "/").errors) == {"tasks[1].command"}
    form.texts["tasks[1].command"] = "b"
    spec = form.read_spec(read, "/").spec
    assert spec is not None
    assert [(each.command, each.algorithm and each.algorithm.path) for each in spec.tasks] == [
        ("a", "/algo"),
        ("b", None),
    ]
    form.texts |= {"tasks[0].command": "", "tasks[0].algorithm": ""}
    assert set(form.read_spec(read, "/").errors) == {"tasks[0].command"}


ROWS = {row.entry.name: row for row in catalogue_shown().rows}


@pytest.mark.req("JT-49", "UI-08")
@pytest.mark.parametrize(
    ("name", "path", "text"),
    [
        ("corpus", "datasets", '[{"name": "corpus"}]'),
        ("coco", "datasets", '[{"name": "coco", "source": "annotation", "version": "v2", "read_only": true}]'),
        ("vit", "algorithm", '{"name": "vit", "source": "favorite", "read_only": true}'),
        ("bert", "models", '[{"name": "bert", "source": "pretrained"}]'),
        ("scratch", "volumes", '[{"name": "scratch"}]'),
        ("torch", "image", "torch"),
        ("big", "specs[0].name", "big"),
        ("fast", "pool", "fast"),
        ("nlp", "project", "nlp"),
    ],
)
def test_an_entry_of_the_catalogue_fills_its_field(name: str, path: str, text: str) -> None:
    form = JobForm(FIRST)
    assert take_entry(form, ROWS[name]) == path
    assert form.texts[path] == text
    assert form.read_spec(read, "/home/ann").errors == {}


def test_entries_of_one_field_are_listed_in_order() -> None:
    form = JobForm({**FIRST, "datasets": [{"path": "/own"}], "specs": [{"cpus": 1}, {"cpus": 2}]})
    for name in ("corpus", "big"):
        take_entry(form, ROWS[name])
    spec = form.read_spec(read, "/home/ann").spec
    assert spec is not None
    assert [each.name for each in spec.datasets] == ["own", "corpus"]
    assert spec.specs == (NodeSpec(name="big"),)
    meant = with_named_specs(spec, (row.entry for row in ROWS.values()))
    assert (meant.specs[0].cpus, with_named_specs(meant, ())) == (8, meant)


@pytest.mark.req("JT-03", "UI-08")
def test_the_command_of_a_job_is_its_first_tasks_once_it_is_a_batch():
    form = JobForm({**FIRST, "algorithm": "/algo"})
    assert not form.follow_kind()
    form.texts["kind"] = "batch"
    assert form.follow_kind()
    spec = form.read_spec(read, "/").spec
    assert spec is not None
    assert [(each.command, each.algorithm and each.algorithm.path) for each in spec.tasks] == [("true", "/algo")]
    assert list(form.texts)[:3] == ["name", "tasks[0].command", "tasks[0].algorithm"]
    form.texts["kind"] = ""
    assert form.follow_kind()
    assert (form.texts["command"], form.texts["algorithm"]) == ("true", "/algo")
    form.texts["kind"] = "batch"
    assert form.follow_kind()
    form.add("tasks")
    form.texts["kind"] = "regular"
    assert not form.follow_kind(), "the second would be lost"


@pytest.mark.req("UI-08")
@pytest.mark.parametrize(
    "text",
    [
        "2:00:00",
        "08",
        "1e9",
        ".inf",
        "0x1F",
        "1_000",
        "2020-01-01",
        pytest.param("9" * 5000, id="digits"),
        "{A: [1:30, .nan]}",
        '"\\ud800"',
    ],
)
def test_any_text_typed_into_a_field_is_validated_there(text):
    fields = (*FIELDS, *(f"{group}[0].{name}" for group, names in GROUPS.items() for name in names))
    for path in fields:
        form = JobForm(FIRST)
        form.texts[path] = text
        form.read_spec(read, "/home/ann")


@pytest.mark.req("UI-08")
def test_words_that_some_parsers_read_as_numbers_are_text_in_a_form():
    form = JobForm(FIRST)
    form.texts |= {"env": "{AT: 2:00:00, MAC: 08}", "specs[0].cpus": "08"}
    assert set(form.read_spec(read, "/home/ann").errors) == {"specs[0].cpus"}
    form.texts["specs[0].cpus"] = "8"
    spec = form.read_spec(read, "/home/ann").spec
    assert spec is not None
    assert spec.env == {"AT": "2:00:00", "MAC": "08"}


@pytest.mark.req("UI-08", "JT-46")
def test_chosen_specs_keep_the_place_of_the_specs_before_them():
    form = JobForm({**FIRST, "specs": [{"cpus": 1}]})
    before = [path for path in form.texts if not path.startswith("specs")]
    form.put_specs([{"name": "small"}, {"name": "big"}])
    order = [*form.texts]
    at = order.index("specs[0].name")
    assert order[at - 1 : at + 3] == ["nodes", "specs[0].name", "specs[1].name", "mode"]
    assert [path for path in order if not path.startswith("specs")] == before
