"""Connect a job's network to the machine's network, by network address translation (NAT).

1. The hub translates the job's addresses, so that every job can use the same ones.
2. The hub is connected to the machine. An engine of root makes a veth pair, with two addresses of its own for each job,
   and the machine translates these a second time. An ordinary user's engine uses `usernet`.

On the machine only one nftables table, cockpit's own, is changed. Forwarding is not switched on: if the machine does
not forward packets, the job's network is not connected.
"""

from __future__ import annotations

import errno
import os

from cockpit.runtime.containers.shim import linux, netlink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cockpit.runtime.containers.shim.usernet import HostSideProcess

VETH = "ckp"
"""Prefix of the names that veth pairs have at the machine's end."""
HUB_END = "up"
"""The interface of the hub that leads outward."""
# Two usable addresses, one for each end.
_PREFIX = 30
_PLACES = 1 << 14
"""Number of address pairs for cables."""
_FORWARDS = "/proc/sys/net/ipv4/ip_forward"
_NFT = ("/usr/sbin/nft", "/sbin/nft", "/usr/bin/nft")
TABLE = "cockpit_cluster"
# `table` makes what is missing and `flush` empties it, so that applying the rules again leaves exactly one.
_RULES = """\
table ip {table} {{
    chain postrouting {{
        type nat hook postrouting priority 100;
    }}
}}
flush chain ip {table} postrouting
add rule ip {table} postrouting {rule} masquerade
"""
_AT_MACHINE = f'ip saddr 198.19.0.0/16 oifname != "{VETH}*"'
_AT_HUB = f'oifname "{HUB_END}"'


def connect(machine: int, hub: int) -> str:
    """Connect two network namespaces, as root, and return the kind of connection. Raises OSError.

    `machine`, `hub`: descriptors of the namespaces. The calling process is in the hub, and is there again at the end.
    """
    program = _nftables()
    # Only for the machine's end: the other one is put into the hub while the pair is made.
    linux.setns(machine, linux.CLONE_NEWNET)
    try:
        if not _forwards():
            raise OSError(errno.ENETUNREACH, "net.ipv4.ip_forward is 0")
        place = _make_veth_pair(hub)
        _run(program, _RULES.format(table=TABLE, rule=_AT_MACHINE))
    finally:
        linux.setns(hub, linux.CLONE_NEWNET)
    # Addresses and the route of the hub's end, in which this process is again.
    netlink.give(HUB_END, _address(place, 2), _PREFIX)
    netlink.bring_up(HUB_END)
    netlink.send_all_by(_address(place, 1))
    _translate(program)
    return "NAT"


def connect_as_user(outpost: HostSideProcess) -> str:
    """Connect the hub, in which this process is, as an ordinary user; return the kind of connection. Raises OSError."""
    program = _nftables()
    by = outpost.connect()
    _translate(program)
    return by


def nftables(root: str = "/") -> str | None:
    """Return the path of the `nft` program, which is often not on a user's PATH; None if it is not installed."""
    return next((program for program in _NFT if os.path.exists(os.path.join(root, program[1:]))), None)


def _nftables() -> str:
    program = nftables()
    if program is None:
        raise OSError(errno.ENOENT, "nftables is not installed")
    return program


def _translate(program: str) -> None:
    """Switch on forwarding and NAT in the hub, in which this process is."""
    with open(_FORWARDS, "w", encoding="ascii") as stream:
        stream.write("1")
    _run(program, _RULES.format(table=TABLE, rule=_AT_HUB))


def _forwards() -> bool:
    with open(_FORWARDS, encoding="ascii") as stream:
        return stream.read().strip() == "1"


def _make_veth_pair(hub: int) -> int:
    """Make a veth pair with the first free pair of addresses, and return its number.

    The search starts at a random number, so that jobs that start at the same time rarely try the same one.
    """
    begin = int.from_bytes(os.urandom(2))
    for step in range(_PLACES):
        place = (begin + step) % _PLACES
        try:
            netlink.make_pair(f"{VETH}{place}", HUB_END, hub)
        except OSError as error:
            # Another job has this pair; any other error would meet every number.
            if error.errno != errno.EEXIST:
                raise
            continue
        netlink.give(f"{VETH}{place}", _address(place, 1), _PREFIX)
        netlink.bring_up(f"{VETH}{place}")
        return place
    raise OSError(errno.ENOSPC, "there is no address left for another job's network")


def _address(place: int, end: int) -> str:
    high, low = divmod(4 * place + end, 256)
    return f"198.19.{high}.{low}"


def _run(program: str, rules: str) -> None:
    """Let nft apply the rules, from a file in memory. Raises OSError if it refuses them."""
    fd = os.memfd_create("rules")
    os.write(fd, rules.encode())
    os.lseek(fd, 0, os.SEEK_SET)
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    try:
        actions = [(os.POSIX_SPAWN_DUP2, fd, 0), (os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, null, 2)]
        # The shim has blocked signals, and a mask is inherited.
        pid = os.posix_spawn(program, ["nft", "-f", "-"], {}, file_actions=actions, setsigmask=[])
        _, status = os.waitpid(pid, 0)
    finally:
        os.close(fd)
        os.close(null)
    if status:
        raise OSError(errno.EOPNOTSUPP, "nftables does not accept the rules for it")
