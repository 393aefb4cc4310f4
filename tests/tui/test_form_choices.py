"""A person fills in the form by choosing: what a field may have is listed below it, with why something is refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cockpit.model.catalogue import DatasetEntry, EntryChange
from cockpit.model.ids import JobId
from tests.backends.kubernetes.test_editing import PODS, PYTORCH, a_pod_of, a_pytorch_job
from tests.doubles.kubernetes_api import FakeApi
from tests.tui.lab import a_lab, job, the_lab
from tests.tui.test_kubernetes import at_kubernetes
from tests.tui.test_slurm_acts import cluster

if TYPE_CHECKING:
    from tests.tui.driver import Cockpit

SLURM_QOS = "urgent  priority 500 · preempts normal"
RULED = str(Path(__file__).with_name("ruled.toml"))
READY = "Give a name"


def into(cockpit: Cockpit, title: str, about: str) -> Cockpit:
    """Goes down to the field, until what is said of it is there."""

    async def go() -> None:
        for _ in range(30):
            if about in await cockpit.player.screen():
                return
            await cockpit.player.press("Down")
        raise AssertionError(f"there is no field {title} on\n{await cockpit.player.screen()}")

    return cockpit._then(go)


@pytest.mark.req("UI-31", "UI-08")
async def test_a_partition_is_chosen_from_those_that_the_job_may_use() -> None:
    async with a_lab(fixture=RULED) as lab:
        cockpit = lab.cockpit.press("n").sees("New job", READY, "room now on")
        cockpit = into(cockpit.type("mine"), "partitions", "Acceptable partitions").press("Enter")
        screen = await cockpit.sees("2 nodes · room now on 2", "the default", "does not serve account nlp")
        assert "asks for 1 h, partition short allows 30 min" in screen
        assert screen.index("cpu     1 node") < screen.index("vision  partition"), "those that are refused come last"
        await cockpit.press("Down", "Enter").misses("does not serve").sees("partitions    gpu")
        await cockpit.type(", c").sees("1 node · room now on 1").press("Enter").sees("partitions    gpu, cpu")
        await cockpit.press("Ctrl-s").sees("submitted")
        assert (await lab.backend.job(JobId(1))).job.spec.partitions == ("gpu", "cpu")


@pytest.mark.req("UI-31", "UI-08")
async def test_accounts_and_qos_say_why_they_are_not_allowed() -> None:
    async with a_lab(fixture=RULED) as lab:
        cockpit = lab.cockpit.press("n").sees(READY, "room now on")
        await (
            into(cockpit, "account", "The account that is charged")
            .press("Enter")
            .sees("nlp     your default", "vision  you are not a user of it")
        )
        # Enter takes the first and goes on, and Esc would only have closed the list.
        await cockpit.press("Enter").misses("you are not a user of it").sees("account       nlp")
        await cockpit.press("Up").press("Enter").sees("✓ nlp").press("Esc").misses("✓ nlp").sees("New job")


@pytest.mark.req("UI-31", "UI-08")
async def test_a_mode_is_filtered_by_typing_and_taken_with_enter() -> None:
    async with the_lab(size=(80, 24)) as lab:
        cockpit = lab.cockpit.press("n").sees(READY, "room now on").type("mine")
        cockpit = into(cockpit, "mode", "How its nodes find").press("Enter").sees("torchrun", "with a hostfile")
        await (
            cockpit.type("deep")
            .misses("torchrun")
            .sees("with a hostfile")
            .press("Enter")
            .sees("mode          deepspeed")
        )
        await cockpit.misses("with a hostfile", "fields are wrong")


@pytest.mark.req("UI-31", "JT-46")
async def test_a_card_model_is_chosen_with_what_is_free_of_it() -> None:
    async with a_lab(job("train", cards=3)) as lab:
        cockpit = lab.cockpit.press("n").sees(READY, "room now on").type("mine")
        cockpit = into(cockpit, "cards", "Cards per node").type("2").press("Down", "Enter")
        await cockpit.sees("A100  5 of 8 free now").press("Down", "Enter").sees("card models   A100", "Starts now.")
        await cockpit.press("Enter").sees("✓ A100").press("Down", "Enter").misses("card models   A100")


@pytest.mark.req("UI-31", "JT-49")
async def test_a_dataset_is_chosen_and_free_text_stays_possible() -> None:
    async with a_lab() as lab:
        entry = DatasetEntry(name="corpus", project="alice", owner="alice", path="/data/corpus", about="web texts")
        await lab.backend.change_catalogue([EntryChange(None, entry)])
        cockpit = lab.cockpit.press("n").sees(READY, "room now on").type("mine")
        await into(cockpit, "datasets", "Datasets that the job sees").press("Enter")
        await cockpit.sees("corpus  web texts").press("Down", "Enter").sees('datasets      [{"name": "corpus"}]')
        await cockpit.press("Enter").sees("✓ corpus").press("Down", "Enter").misses('"corpus"')
        await cockpit.type("corp").sees("corpus  web texts").press("Tab").sees("datasets      corp").misses("web texts")


@pytest.mark.req("UI-31", "UI-26")
async def test_a_choice_is_clicked() -> None:
    async with a_lab() as lab:
        cockpit = lab.cockpit.press("n").sees(READY, "room now on")
        screen = await into(cockpit, "mode", "How its nodes find").press("Enter").sees("pytorch")
        y = next(number for number, line in enumerate(screen.splitlines()) if "pytorch" in line)
        await cockpit.player._pilot.click(offset=(screen.splitlines()[y].index("pytorch"), y))
        await cockpit.sees("mode          pytorch").misses("horovod")


@pytest.mark.req("UI-31", "SL-20")
async def test_partitions_and_qos_of_a_slurm_cluster_are_chosen() -> None:
    async with cluster("alice") as cockpit:
        await into(cockpit.press("n").sees(READY, "room now on"), "qos", "The QOS; by").press("Enter").sees(SLURM_QOS)
        await cockpit.type("sca").misses(SLURM_QOS).press("Enter").sees("qos           scav")


@pytest.mark.req("UI-31", "KU-07")
async def test_the_image_of_another_job_is_chosen_on_kubernetes(tmp_path: Path) -> None:
    async with FakeApi() as server:
        server.create(PODS, a_pod_of(server.create(PYTORCH, a_pytorch_job(suspend=False))))
        async with at_kubernetes(server, tmp_path) as cockpit:
            await cockpit.sees("train").press("n").sees(READY, "a pod needs an image").type("mine")
            await into(cockpit, "image", "The root file system").press("Enter")
            await cockpit.sees("img:1  the image of job train").misses("a pod needs an image").press("Enter")
            await cockpit.sees("image         img:1").misses("the image of job train", "a pod needs an image")


@pytest.mark.req("UI-31", "UI-24")
async def test_groups_are_folded_on_a_low_screen_and_say_what_they_hold() -> None:
    async with a_lab(size=(80, 24)) as lab:
        cockpit = lab.cockpit.press("n").sees(READY, "room now on", "▾ What runs", "▾ Resources").type("mine")
        cockpit = into(cockpit, "group", "Enter shows the fields of this group")
        await cockpit.sees("▸ Placement and queue", "▸ Time and retries   time limit 1h · terminal true")
        await cockpit.press("Down", "Enter").sees("▾ Time and retries", "Run-time limit").type("2h")
        await cockpit.press("F2").sees("▸ Time and retries   time limit 2h").press("F2").sees("▾ Time and retries")
        # A field that is hidden with an error is shown by its heading, and found by Ctrl-s.
        await cockpit.type("soon").sees("1 field is wrong").press("F2").sees("▸ Time and retries   ✗ time limit")
        await cockpit.press("Ctrl-s").sees("▾ Time and retries", "time limit    soon", '"soon" is no time; write')
        focused = cockpit.app.focused
        assert focused is not None
        assert focused.value == "soon"  # type: ignore[attr-defined]  # an input
        await cockpit.type("1h").press("Ctrl-s").sees("submitted")


@pytest.mark.req("UI-31", "UI-24")
async def test_a_high_screen_shows_every_group_and_a_click_folds_one() -> None:
    async with a_lab() as lab:
        screen = await lab.cockpit.press("n").sees(READY, "▾ Placement and queue", "▾ Data", "datasets")
        y = next(number for number, text in enumerate(screen.splitlines()) if "▾ Data" in text)
        await lab.cockpit.player._pilot.click(offset=(3, y))
        await lab.cockpit.sees("▸ Data   datasets: by default", "Enter shows the fields of this group")


@pytest.mark.req("UI-31", "UI-08", "JT-46")
async def test_what_is_free_is_shown_while_another_field_is_still_wrong() -> None:
    async with a_lab(job("train", cards=3)) as lab:
        cockpit = lab.cockpit.press("n").sees(READY, "room now on").type("a/b").sees("1 field is wrong")
        cockpit = into(cockpit, "cards", "Cards per node").type("2")
        await cockpit.sees("room now on  1 node, 1 tight", "cards free now  A100 5 of 8; it takes 2 cards")
        await cockpit.sees("Once every field can be read", "1 field is wrong")
