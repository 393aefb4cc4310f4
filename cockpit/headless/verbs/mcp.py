"""`cockpit mcp`: the verbs as tools for language models, over the Model Context Protocol."""

from __future__ import annotations

import gc
from argparse import ArgumentParser

from cockpit.errors import RuntimeMissing
from cockpit.headless.arguments import Verb
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.services import Call

MISSING = "`cockpit mcp` needs the package mcp: pip install 'cockpit-cluster[mcp]'"


def mcp_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--allow-acts", action="store_true", help="also offer the verbs that change something, each after a dry run"
    )


async def run_mcp(call: Call) -> int:
    from cockpit.headless.mcp.calls import ToolCalls

    try:
        from cockpit.headless.mcp.server import serve
    except ImportError as missing:
        raise RuntimeMissing(MISSING) from missing
    gc.enable()  # commands switch it off because they end soon
    acts = call.args.allow_acts
    serve(ToolCalls(call.services, call.streams.now, call.args.cluster, acts=acts), acts=acts)
    return ExitCode.OK


MCP = Verb(mcp_arguments, run_mcp, ("cockpit mcp", "cockpit -c lab-a mcp --allow-acts"))
