"""A job network's way to the world: network address translation in its hub, so that every job may have the same
addresses, and one way out of that. For root that is a cable to the machine, which translates once more: nothing of the
machine is changed but for one table of cockpit's own, and where the machine forwards nothing, neither does this. For
others it is `usernet`.
"""

from __future__ import annotations

import errno
import os

from cockpit.runtime.containers.shim import linux, netlink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cockpit.runtime.containers.shim.usernet import Outpost

CABLE = "ckp"
"""What the names of the cables begin with at the machine's end."""
HUB_END = "up"
"""The interface of the hub that leads outward."""
_PREFIX = 30
_PLACES = 1 << 14
"""So many pairs of addresses there are for cables."""
_FORWARDS = "/proc/sys/net/ipv4/ip_forward"
_NFT = ("/usr/sbin/nft", "/sbin/nft", "/usr/bin/nft")
TABLE = "cockpit_cluster"
_RULES = """\
table ip {table} {{
    chain postrouting {{
        type nat hook postrouting priority 100;
    }}
}}
flush chain ip {table} postrouting
add rule ip {table} postrouting {rule} masquerade
"""
_AT_MACHINE = f'ip saddr 198.19.0.0/16 oifname != "{CABLE}*"'
_AT_HUB = f'oifname "{HUB_END}"'


def connect(machine: int, hub: int) -> str:
    """By root, between these two open network namespaces; the caller is in the hub and stays there. What it goes out
    by. Raises OSError where it cannot be done."""
    program = _nftables()
    linux.setns(machine, linux.CLONE_NEWNET)
    try:
        if not _forwards():
            raise OSError(errno.ENETUNREACH, "net.ipv4.ip_forward is 0")
        place = _lay_cable(hub)
        _run(program, _RULES.format(table=TABLE, rule=_AT_MACHINE))
    finally:
        linux.setns(hub, linux.CLONE_NEWNET)
    netlink.give(HUB_END, _address(place, 2), _PREFIX)
    netlink.bring_up(HUB_END)
    netlink.send_all_by(_address(place, 1))
    _translate(program)
    return "NAT"


def connect_as_user(outpost: Outpost) -> str:
    """Likewise by anybody, from within the hub. Raises OSError."""
    program = _nftables()
    by = outpost.connect()
    _translate(program)
    return by


def nftables(root: str = "/") -> str | None:
    """Where its program is below that folder; the PATH of a user often does not lead there."""
    return next((program for program in _NFT if os.path.exists(os.path.join(root, program[1:]))), None)


def _nftables() -> str:
    program = nftables()
    if program is None:
        raise OSError(errno.ENOENT, "nftables is not installed")
    return program


def _translate(program: str) -> None:
    """From within the hub."""
    with open(_FORWARDS, "w", encoding="ascii") as stream:
        stream.write("1")
    _run(program, _RULES.format(table=TABLE, rule=_AT_HUB))


def _forwards() -> bool:
    with open(_FORWARDS, encoding="ascii") as stream:
        return stream.read().strip() == "1"


def _lay_cable(hub: int) -> int:
    """At the first free place, looked for from anywhere on."""
    begin = int.from_bytes(os.urandom(2))
    for step in range(_PLACES):
        place = (begin + step) % _PLACES
        try:
            netlink.make_pair(f"{CABLE}{place}", HUB_END, hub)
        except OSError as error:
            if error.errno != errno.EEXIST:
                raise
            continue
        netlink.give(f"{CABLE}{place}", _address(place, 1), _PREFIX)
        netlink.bring_up(f"{CABLE}{place}")
        return place
    raise OSError(errno.ENOSPC, "there is no address left for another job's network")


def _address(place: int, end: int) -> str:
    high, low = divmod(4 * place + end, 256)
    return f"198.19.{high}.{low}"


def _run(program: str, rules: str) -> None:
    """nft reads them from a file in memory. Raises OSError where it does not take them."""
    fd = os.memfd_create("rules")
    os.write(fd, rules.encode())
    os.lseek(fd, 0, os.SEEK_SET)
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    try:
        actions = [(os.POSIX_SPAWN_DUP2, fd, 0), (os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, null, 2)]
        pid = os.posix_spawn(program, ["nft", "-f", "-"], {}, file_actions=actions, setsigmask=[])
        _, status = os.waitpid(pid, 0)
    finally:
        os.close(fd)
        os.close(null)
    if status:
        raise OSError(errno.EOPNOTSUPP, "nftables does not take the rules for it")
