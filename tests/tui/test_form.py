"""A job as a form: written, judged while one types, foretold, edited elsewhere, submitted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cockpit.backends.demo.backend import DemoBackend
from cockpit.model.capabilities import ENGINE
from cockpit.model.catalogue import DatasetEntry, EntryChange
from cockpit.model.ids import JobId
from cockpit.model.reasons import Held
from cockpit.model.spec import Mode, WorkerPool
from cockpit.tui.screens.form import FormScreen
from tests.tui.editor import an_editor
from tests.tui.lab import a_lab, job, the_lab

PAIR = str(Path(__file__).parents[1] / "backends/demo/pair.toml")
READY = "Give a name"
"""What the form says of its first field, once that has the keys."""


@pytest.mark.req("UI-31", "UI-08")
async def test_after_submitting_the_cursor_is_on_the_new_job_and_the_next_form_has_a_free_name() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        for name in ("my-job", "my-job-2"):
            await (
                cockpit.press("n").sees("New job", READY, name).press("Ctrl-s").sees("submitted").stands_on(f"{name} ")
            )
            await cockpit.press("g").stands_on("train")
        await cockpit.press("n").sees("New job", READY, "my-job-3").press("Esc")


@pytest.mark.req("UI-31", "UI-21")
async def test_a_notice_says_that_the_filter_hides_the_new_job() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press("/").type("name:train").press("Enter").sees("train").press("n").sees(READY)
        await lab.cockpit.press("Ctrl-s").sees("filtered out; Esc shows all jobs").stands_on("train")


@pytest.mark.req("UI-08", "JT-32")
async def test_a_new_job_shows_its_predicted_start_and_is_submitted() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("n").sees("New job", READY, "rank 0", "my-job-0 in /workspace/algorithm")
        await cockpit.type("mine").press("Down").type("sleep 60").sees("mine-0 in", "sleep 60", "Starts now.")
        await cockpit.press("Ctrl-s").sees("submitted 8").misses("New job")
        job = (await lab.backend.job(JobId(8))).job
        assert (job.spec.name, job.spec.command) == ("mine", "sleep 60")


@pytest.mark.req("UI-08", "JT-06")
async def test_a_missing_folder_is_reported_and_does_not_prevent_submission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DemoBackend, "capabilities", ENGINE)
    async with the_lab() as lab:
        await lab.cockpit.press("n").sees(READY).type("mine").press("Down").type("true").press("Down")
        await lab.cockpit.type(f"{tmp_path}/lost").sees("algorithm:", "is not there now", "submit   Starts now.")
        (tmp_path / "lost").mkdir()
        await lab.cockpit.type("/").misses("is not there now").sees("submit   Starts now.")
        await lab.cockpit.type("gone").sees("is not there now").press("Ctrl-s").sees("submitted 8")


@pytest.mark.req("UI-08")
async def test_what_stands_beside_the_fields_has_its_whole_width_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with the_lab(size=(80, 24)) as lab:
        monkeypatch.setattr(lab.cockpit.app.backend, "predict", _never)
        await lab.cockpit.press("n").sees("asking when it would start", "room now on  ")
        await lab.cockpit.resize(120, 40).sees("room now on  ").resize(80, 24).sees("room now on  ")


@pytest.mark.req("UI-08", "TR-04")
async def test_no_nodes_are_counted_before_the_cluster_has_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    async with the_lab() as lab:
        monkeypatch.setattr(lab.cockpit.app.backend, "nodes", _never)
        await lab.cockpit.press("n").sees("What each rank runs").misses("room now on")


async def _never(*_specs: object) -> list[object]:
    """Answer as a cluster does that takes its time."""
    await asyncio.Event().wait()
    return []


@pytest.mark.req("UI-08")
async def test_an_error_is_shown_below_its_field_and_no_job_is_submitted() -> None:
    async with the_lab(size=(80, 24)) as lab:
        cockpit = lab.cockpit
        await cockpit.press("n").sees(READY, "unique in the\n project among live jobs.")
        await cockpit.type("a/b").sees("name          a/b", "1 field is wrong")
        await cockpit.press(*["Down"] * 5).type("none").sees("write a whole number", "2 fields are wrong")
        await cockpit.press("Ctrl-s").sees("New job")
        focused = cockpit.app.focused
        assert focused is not None
        assert focused.value == "a/b"  # type: ignore[attr-defined]  # the first wrong field
        await cockpit.type("fine").sees("1 field is wrong").misses("name          a/b")
        assert len(await lab.backend.jobs(ended=True)) == 7


@pytest.mark.req("UI-08", "JT-32")
async def test_a_refusal_of_the_cluster_is_shown_at_its_field() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("n").sees(READY).type("train").sees("name", "already", "1 field is wrong")
        await cockpit.type("other").sees("Starts now.").press(*["Down"] * 5).type("900")
        await cockpit.sees("nodes         900", "without one it is standalone", "1 field is wrong")
        await cockpit.press(*["Down"] * 5).type("pytorch").sees("only", "1 field is wrong")


@pytest.mark.req("UI-08", "JT-46")
async def test_the_form_shows_free_nodes_and_the_queued_demand_beside_it() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press("n").sees("room now on", "cards waited for", "A100 0", "any model 11")
        await lab.cockpit.press("Ctrl-t").sees("Nodes it may be on", "n01   ○ idle", "1/32")
        await lab.cockpit.press("Ctrl-t").sees("name: my-job")
        await lab.cockpit.press("Ctrl-t").sees("#SBATCH --job-name=my-job", "does not say all of")
        await lab.cockpit.press("Ctrl-t").sees("kind: PyTorchJob", "name: my-job")
        await lab.cockpit.press("Ctrl-t").sees("rank 0")


@pytest.mark.req("UI-08", "JT-46", "JT-09")
async def test_specs_are_chosen_by_card_model_and_several_are_alternatives() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("n").sees(READY).type("mine").press("Ctrl-g")
        await cockpit.sees("Node specs", "1 □ A100", "queued for", "4 × A100", "◉ 2 tight")
        await cockpit.press("1").sees("1 ■ A100").press("Space", "Space", "Enter").misses("Node specs")
        await cockpit.sees("spec 1", "or spec 2", "cards         4", "cards         2", "card models   A100")
        await cockpit.press("Ctrl-s").sees("submitted 8")
        job = (await lab.backend.job(JobId(8))).job
        assert [each.card_milli for each in job.spec.specs] == [4000, 2000]


@pytest.mark.req("UI-08")
async def test_leaving_the_form_asks_only_after_a_change() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("n").sees("New job").press("Esc").misses("New job").stands_on("train")
        await cockpit.press("n").sees(READY).type("x").press("Esc").sees("Leave the form?").press("n")
        await cockpit.misses("Leave the form?").press("Esc").sees("Leave the form?").press("y").misses("New job")
        assert len(await lab.backend.jobs(ended=True)) == 7


@pytest.mark.req("UI-08", "UI-24")
async def test_an_added_field_is_visible_on_a_small_screen() -> None:
    async with the_lab(size=(80, 24)) as lab:
        entry = DatasetEntry(name="corpus", project="alice", owner="alice", path="/data/corpus")
        await lab.backend.change_catalogue([EntryChange(None, entry)])
        cockpit = lab.cockpit.press("n").sees("New job", READY, "room now on").press("Ctrl-n").sees("dataset corpus")
        await cockpit.press("Enter").sees('datasets      [{"name": "corpus"}]')


@pytest.mark.req("UI-08", "JT-49")
async def test_a_name_of_the_catalogue_is_chosen_and_not_typed() -> None:
    async with the_lab() as lab:
        entry = DatasetEntry(name="corpus", project="alice", owner="alice", path="/data/corpus")
        await lab.backend.change_catalogue([EntryChange(None, entry)])
        cockpit = lab.cockpit.press("n").sees("New job", READY, "room now on").press("Ctrl-n")
        await cockpit.sees("From the catalogue", "dataset corpus", "path=/data/corpus").press("Enter")
        await cockpit.sees('[{"name": "corpus"}]', "Starts now.").press("Ctrl-s").sees("submitted 8")
        (mounted,) = (await lab.backend.job(JobId(8))).job.spec.datasets
        assert mounted.folder == "/data/corpus"


@pytest.mark.req("UI-08")
async def test_any_other_field_can_be_added() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("n").sees("New job").press("Ctrl-o").sees("Another field", "grace period")
        absent = cockpit.app.screen_stack[-2]
        assert isinstance(absent, FormScreen)
        await cockpit.press("G", "Enter").misses("Another field")
        await cockpit.press("Ctrl-o").sees("Another field").press("Esc").sees("New job")


@pytest.mark.req("UI-08", "JT-33")
async def test_a_clone_has_a_free_name_and_the_same_other_fields() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("G", "k").stands_on("eval").press("N").sees("A copy of eval", "eval-2", "cards         2")
        await cockpit.press("Ctrl-s").sees("submitted 8").press("N").sees("eval-3").press("Esc").misses("A copy of")
        job = (await lab.backend.job(JobId(8))).job
        assert (job.spec.name, job.spec.specs[0].card_milli) == ("eval-2", 2000)


@pytest.mark.req("UI-08", "JT-42")
async def test_an_edited_job_keeps_its_id_and_its_position() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("G", "k").stands_on("eval").press("e").sees("Job 6 eval", READY).type("renamed")
        await cockpit.sees("renamed-0").press("Ctrl-s").sees("edited 6").stands_on("6  renamed")
        assert not isinstance((await lab.backend.job(JobId(6))).row.reason, Held)


@pytest.mark.req("UI-08", "JT-42")
async def test_a_job_that_starts_while_edited_shows_a_message_and_keeps_the_typed_text() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("G", "k").stands_on("eval").press("e").sees("Job 6 eval", READY).type("renamed")
        await cockpit.sees("renamed-0")
        for job in (1, 4, 5):
            await lab.backend.cancel(JobId(job), grace_seconds=0)
        await lab.demo.elapse(5)
        await cockpit.press("Ctrl-s").sees(
            "Job 6 is running; only a queued job can be edited.", "name          renamed"
        )
        assert (await lab.backend.job(JobId(6))).job.spec.name == "eval"


@pytest.mark.req("UI-08")
async def test_the_form_has_the_text_of_the_editor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    change = "sed -i 's/^name: .*/name: written-here/; s/^}$//; $a env: {A: 1}' $1"
    editor = an_editor(monkeypatch, tmp_path, "echo '}' >>$1", change, "true")
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("n").sees("New job").press("Ctrl-e").sees("written-here", "env           {", "Starts now.")
        await cockpit.press("Ctrl-e").sees("written-here").press("Ctrl-s").sees("submitted 8")
        assert (await lab.backend.job(JobId(8))).job.spec.env == {"A": "1"}
    first, second, _ = editor.seen
    assert first.startswith("# Save and leave")
    assert second.startswith("#! "), "what cannot be read comes back with the reason"
    assert second.endswith("}\n")


async def test_a_missing_editor_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "/nowhere/editor")
    async with the_lab() as lab:
        await lab.cockpit.press("n").sees("New job").press("Ctrl-e").sees("/nowhere/editor", "EDITOR")


@pytest.mark.req("JT-03", "UI-08")
async def test_a_job_becomes_a_batch_while_the_user_types() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("n").sees(READY).type("sweep").press("Down").type("sleep 60").press(*["Down"] * 3)
        await cockpit.type("batch").sees("#0 command", "sleep 60", "writes into", "sweep-0", "Starts now.")
        await cockpit.press("Ctrl-o").sees("another task").press("Enter").sees("#1 command")
        await cockpit.type("sleep 70").sees("task 1", "Starts now.").press("Ctrl-s").sees("submitted 8")
        tasks = (await lab.backend.job(JobId(9))).tasks
        assert [row.command for row in tasks] == ["sleep 60", "sleep 70"]


SCRIPT = """#!/bin/bash
#SBATCH --job-name=vit --nodes=2 --gres=gpu:A100:4
#SBATCH --mail-type=END
srun python train.py
"""
ARENA = 'arena submit pytorchjob --name=bert --gpus=1 --image=host --workers=2 --namespace=lab "python t.py"'


@pytest.mark.req("LA-70", "UI-08")
async def test_existing_commands_and_scripts_are_pasted_into_the_form() -> None:
    async with the_lab(size=(80, 24)) as lab:
        cockpit = lab.cockpit
        await cockpit.press("n").sees(READY).paste(SCRIPT)
        await cockpit.sees("name          vit", "command       srun python train.py", "nodes         2")
        await cockpit.sees(
            "Taken over from a script for sbatch", "1 thing of it could not be carried over", "mail-type"
        )
        await cockpit.paste(ARENA).sees("Fill in an arena command line?").press("y")
        await (
            cockpit.sees("name          bert", "Taken over from an arena").paste("better").sees("name          better")
        )
        await cockpit.press("Esc").sees("Leave the form?")


@pytest.mark.req("LA-70", "UI-08")
async def test_a_file_of_the_folder_or_of_any_other_fills_the_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    monkeypatch.chdir(here)
    (here / "vit.sh").write_text(SCRIPT)
    (here / "notes.txt").write_text("buy\nmilk\n")
    (there / "job.yaml").write_text("name: other\ncommand: x\noutput: out\n")
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("n").sees(READY).press("Ctrl-f")
        await cockpit.sees("What you have here", "vit.sh  a script for sbatch").misses("notes.txt").press("Enter")
        await (
            cockpit.sees("name          vit", "mail-type")
            .press("Esc")
            .sees("Leave the form?")
            .press("y")
            .misses("Taken over")
        )
        await cockpit.type(f":new {there}/job.yaml").press("Enter").sees("name          other", "output        /")
        await cockpit.misses("Taken over").press("Esc").misses("output")
        await cockpit.type(f":new {here}/notes.txt").press("Enter").sees("CustomJob")


@pytest.mark.req("LA-70", "UI-08")
@pytest.mark.parametrize(("tasks", "nodes"), [(50, 2), (100, None)])
async def test_a_script_whose_tasks_do_not_fit_on_one_node_names_a_remedy(
    tmp_path: Path, tasks: int, nodes: int | None
) -> None:
    """The lab has two nodes of 32 CPUs."""
    script = tmp_path / "wide.sh"
    script.write_text(f"#!/bin/bash\n#SBATCH -J broad -n {tasks}\nsrun ./a.out\n")
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.type(f":submit {script}").press("Enter").sees(f"asks for {tasks} CPUs")
        await (cockpit.sees(f"add -N {nodes}") if nodes else cockpit.misses("add -N"))


@pytest.mark.req("UI-08", "LA-60")
async def test_worker_pools_are_shown_rank_by_rank_and_as_a_custom_job() -> None:
    pools = (WorkerPool(replicas=1), WorkerPool(replicas=1, command="python w.py"))
    spec = job("pools", command="python c.py", mode=Mode.WORKER_POOLS, worker_pools=pools)
    async with a_lab(spec) as lab:
        await lab.cockpit.press("N").sees("rank 1  pools-2-1", "python w.py")
        await lab.cockpit.press(*["Ctrl-t"] * 4).sees("As a manifest", "workerPoolSpecs")


@pytest.mark.req("JT-27", "FL-05")
async def test_on_a_fleet_a_job_is_divided_only_where_its_form_requests_it(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("name: wide\ncommand: x\noutput: out\nnodes: 2\nspecs: [{cpus: 1, memory: 1G}]\n")
    async with a_lab(fixture=PAIR) as lab:
        cockpit = lab.cockpit
        await cockpit.type(f":new {path}").press("Enter").sees("without one it is standalone")
        path.write_text(path.read_text() + "divide_over_clusters: true\n")
        await cockpit.press("Esc").misses("New job").type(f":new {path}").press("Enter").sees("divide over   true")
        await cockpit.press("Ctrl-s").sees("submitted")
        (row,) = [each for each in await lab.backend.jobs() if each.name == "wide"]
        assert (await lab.backend.job(row.id)).job.spec.divide_over_clusters
