"""A program that stands in for `tensorboard`: takes its command line, says its words, tells the runs that it finds."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """#!/bin/sh
'''exec' {python} "$0" "$@"
' '''
import argparse, http.server, json, pathlib, sys

parser = argparse.ArgumentParser()
for option in ("--logdir", "--host", "--port"):
    parser.add_argument(option, required=True)
given = parser.parse_args()

class Runs(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        runs = sorted(each.name for each in pathlib.Path(given.logdir).iterdir() if each.is_dir())
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(runs).encode())

    def log_message(self, *_):
        pass

server = http.server.HTTPServer((given.host, int(given.port)), Runs)
print(f"TensorBoard 2.0 at http://{{given.host}}:{{server.server_port}}/ (Press CTRL+C to quit)", file=sys.stderr)
sys.stderr.flush()
server.serve_forever()
"""


def stand_in(folder: Path, text: str = PROGRAM) -> str:
    """A PATH on which `tensorboard` is this program."""
    folder.mkdir(exist_ok=True)
    program = folder / "tensorboard"
    program.write_text(text.format(python=shlex.quote(sys.executable)))  # the kernel takes no space in a first line
    program.chmod(0o755)
    return f"{folder}:/usr/bin:/bin"
