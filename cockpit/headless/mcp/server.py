"""Serves the tools over standard input and output with the `mcp` package, until the client closes them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from concurrent.futures import Future
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from cockpit import __version__
from cockpit.headless.mcp.calls import NOTE
from cockpit.headless.mcp.tools import ACTING_TOOLS, description, input_schema, tools

if TYPE_CHECKING:
    from cockpit.headless.mcp.calls import ToolCalls

DESTRUCTIVE: Final = frozenset({"cancel", "delete", "requeue", "holds end", "reclaim", "staged remove"})
INSTRUCTIONS: Final = (
    "Reads clusters through cockpit: jobs, why they wait, nodes, cards, queues, logs. "
    "Start with overview, jobs and explain. " + NOTE
)


Question = tuple[str, Mapping[str, Any], "Future[dict[str, Any]]"]


def serve(calls: ToolCalls, *, acts: bool) -> None:
    """Answer the client of this process's standard streams until it closes them.

    The protocol has a thread of its own. Verbs run in this one, one after the other: some backends need the main
    thread, where signals arrive.
    """
    questions: Queue[Question | None] = Queue()
    thread = Thread(target=_talk, args=(questions, acts), daemon=True)
    thread.start()
    while (question := questions.get()) is not None:
        verb, arguments, answer = question
        try:
            answer.set_result(calls(verb, arguments))
        except Exception as defect:  # noqa: BLE001 - one call fails, and the server goes on
            answer.set_exception(defect)


def _talk(questions: Queue[Question | None], acts: bool) -> None:
    try:
        asyncio.run(_serve(questions, acts))
    finally:
        questions.put(None)


async def _serve(questions: Queue[Question | None], acts: bool) -> None:
    offered = tools(acts=acts)

    async def list_tools(_: object, __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_tool(name, verb) for name, verb in offered.items()])

    async def call_tool(_: object, params: CallToolRequestParams) -> CallToolResult:
        verb = offered.get(params.name)
        if verb is None:
            return _result({"ok": False, "messages": f"There is no tool {params.name!a}."})
        answer: Future[dict[str, Any]] = Future()
        questions.put((verb, params.arguments or {}, answer))
        return _result(await asyncio.wrap_future(answer))

    server: Server[Any] = Server(
        "cockpit",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _tool(name: str, verb: str) -> Tool:
    acts = verb in ACTING_TOOLS
    hints = ToolAnnotations(read_only_hint=not acts, destructive_hint=acts and verb in DESTRUCTIVE)
    return Tool(name=name, description=description(verb), input_schema=input_schema(verb), annotations=hints)


def _result(answer: dict[str, Any]) -> CallToolResult:
    text = json.dumps(answer, ensure_ascii=True)
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=answer, is_error=not answer["ok"]
    )
