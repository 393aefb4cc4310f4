"""`cockpit mcp` on a real engine, used by the client of the `mcp` package over standard streams."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client, StdioServerParameters

from tests.e2e.cockpit_user import CockpitUser

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = [pytest.mark.real, pytest.mark.req("UI-40", "UI-41", "TR-11")]
JOB = "name: from-a-model\noutput: out\ncommand: 'true'\nspecs: [{cpus: 1, memory: 64M}]\n"
SECONDS = 120


@asynccontextmanager
async def client_of(user: CockpitUser, *options: str) -> AsyncIterator[Client]:
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "cockpit.cli", "mcp", *options], env=user.env, cwd=user.work
    )
    async with asyncio.timeout(SECONDS), Client(server) as client:
        yield client


async def answer(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """What the tool answers, which is the same as text and as data."""
    result = await client.call_tool(tool, arguments)
    (content,) = result.content
    assert json.loads(content.text) == result.structured_content  # type: ignore[union-attr]  # texts alone
    assert result.is_error == (not result.structured_content["ok"])
    return result.structured_content


async def test_a_job_is_submitted_read_and_cancelled_after_confirmations(user: CockpitUser) -> None:
    async with client_of(user, "--allow-acts") as client:
        offered = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert offered["jobs"].annotations.read_only_hint
        assert offered["cancel"].annotations.destructive_hint
        would = await answer(client, "submit", text=JOB, hold=True)
        assert would.get("done") is False, would
        assert would["prediction"]["output"]["rows"][0]["name"] == "from-a-model"
        assert (await answer(client, "jobs"))["output"]["rows"] == []
        done = await answer(client, "submit", text=JOB, hold=True, confirm=would["confirm"])
        assert done["ok"], done
        (row,) = (await answer(client, "jobs"))["output"]["rows"]
        assert (row["name"], row["state"]) == ("from-a-model", "queued")
        job = str(row["id"])
        why = await answer(client, "explain", jobs=[job])
        assert why["output"]["rows"][0]["reason"]["type"] == "held"
        would = await answer(client, "cancel", jobs=[job])
        assert would["jobs"][0]["output"]["rows"][0]["state"] == "queued"
        await answer(client, "cancel", jobs=[job], confirm=would["confirm"])
        assert (await answer(client, "jobs"))["output"]["rows"] == []
        happened = (await answer(client, "events", job=job))["output"]["rows"]
        assert {"job_submitted", "job_ended"} <= {each["event"] for each in happened}
        refused = await answer(client, "submit", text="name: [")
        assert not refused["ok"]


async def test_without_the_option_only_reading_tools_are_offered(user: CockpitUser) -> None:
    async with client_of(user) as client:
        offered = {tool.name for tool in (await client.list_tools()).tools}
        assert {"jobs", "explain", "logs"} <= offered
        assert not {"submit", "cancel", "nodes_drain"} & offered
        result = await client.call_tool("cancel", {"jobs": ["1"]})
        assert result.is_error
        assert (await answer(client, "overview"))["ok"]
