"""`cockpit serve` opens the cockpit to people who log in over SSH."""

from __future__ import annotations

from argparse import ArgumentParser

from cockpit.headless.arguments import Verb
from cockpit.headless.services import Call

OPTIONS = {
    "listen": ("--listen", "HOST:PORT", "where to listen; by default 127.0.0.1:8022, which only this machine reaches"),
    "authorized_keys": (
        "--authorized-keys",
        "FILE",
        "the keys that may log in; by default each user's own ~/.ssh/authorized_keys",
    ),
    "host_key": ("--host-key", "FILE", "the server's own key; made at the first start"),
    "access": ("--access", "LEVEL", "the access level of keys that name none: read, own or admin; by default own"),
    "sessions": ("--sessions", "N", "the largest number of open sessions"),
    "idle": ("--idle", "TIME", "how long a terminal may be without a key, such as 1h"),
    "tls_certificate": ("--tls-certificate", "FILE", "the certificate of the web server; with --tls-key"),
    "tls_key": ("--tls-key", "FILE", "its private key"),
    "drain": ("--drain", "TIME", "how long a stop waits for open sessions"),
}
"""By the part of the setting's name behind `serve_`."""


def serve_arguments(parser: ArgumentParser) -> None:
    for name, (option, metavar, text) in OPTIONS.items():
        parser.add_argument(option, metavar=metavar, help=text, dest=name)
    parser.add_argument(
        "--web",
        nargs="?",
        const="127.0.0.1:8023",
        metavar="HOST:PORT",
        help="serve browsers too; by default at 127.0.0.1:8023. `ssh HOST web` prints an address",
    )
    parser.add_argument(
        "--forced",
        action="store_true",
        help="serve the one session of an sshd, which has this as its ForceCommand",
    )


async def run_serve(call: Call) -> int:
    """Serve until a signal. Sessions are programs of their own, so that nothing here talks to a cluster."""
    return call.services.serve(
        {f"serve_{name}": getattr(call.args, name) for name in (*OPTIONS, "web")}, call.args.forced
    )


SERVE = Verb(
    serve_arguments,
    run_serve,
    (
        "cockpit serve",
        "cockpit serve --listen 0.0.0.0:8022 --authorized-keys /etc/cockpit-cluster/authorized_keys",
        "cockpit serve --access read --idle 8h",
    ),
)
