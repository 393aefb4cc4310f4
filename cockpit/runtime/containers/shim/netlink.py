"""Network interfaces of the network namespace that the caller is in, by the kernel's own protocol, without a program.

Source: rtnetlink(7), netlink(7), linux/if_link.h, linux/veth.h. Every failure is an OSError that names what failed.
"""

from __future__ import annotations

import _socket
import os
import struct

# NLM_F_REQUEST, NLM_F_ACK, NLM_F_EXCL and NLM_F_CREATE of linux/netlink.h.
_REQUEST, _ACK, _EXCLUSIVE, _CREATE = 0x1, 0x4, 0x200, 0x400
# RTM_NEWLINK, RTM_NEWADDR and RTM_NEWROUTE of linux/rtnetlink.h.
_NEW_LINK, _NEW_ADDRESS, _NEW_ROUTE = 16, 20, 24
# IFF_UP: as a flag of a link, and as the mask of the flags that the request changes.
_UP = 1
# struct nlmsghdr, ifinfomsg, ifaddrmsg, rtmsg and rtattr. Fields that are 0 in all requests are padding (x): number and
# sender of a message; family and type of a link; flags and scope of an address; lengths, tos, scope, flags of a route.
_HEADER = struct.Struct("=IHH8x")
_LINK = struct.Struct("=4xiII")
_ADDRESS = struct.Struct("=BB2xi")
_ROUTE = struct.Struct("=B3xBBxB4x")
_ATTRIBUTE = struct.Struct("=HH")
# IFLA_IFNAME, IFLA_MASTER, IFLA_LINKINFO and IFLA_NET_NS_FD; then those nested in IFLA_LINKINFO; then VETH_INFO_PEER.
_NAME, _MASTER, _INFO, _NAMESPACE_FD = 3, 10, 18, 28
_INFO_KIND, _INFO_DATA = 1, 2
_PEER = 1
# RT_TABLE_MAIN, RTPROT_STATIC and RTN_UNICAST; then RTA_GATEWAY.
_MAIN_TABLE, _STATIC, _UNICAST = 254, 4, 1
_GATEWAY = 5
_ERROR = struct.Struct("=i")
"""The beginning of struct nlmsgerr: the negative number of the error, or 0."""


def make_bridge(name: str) -> None:
    """Make a bridge, the kernel's switch, and bring it up."""
    link = _LINK.pack(0, _UP, _UP)
    info = _attribute(_INFO, _text(_INFO_KIND, "bridge"))
    _ask(_NEW_LINK, _CREATE | _EXCLUSIVE, link + _text(_NAME, name) + info, f"make the bridge {name}")


def make_pair(name: str, peer: str, namespace: int) -> None:
    """Make a veth pair: one end here, the other in the network namespace that is open as `namespace`. Both are down."""
    link = _LINK.pack(0, 0, 0)
    other = link + _text(_NAME, peer) + _number(_NAMESPACE_FD, namespace)
    info = _attribute(_INFO, _text(_INFO_KIND, "veth") + _attribute(_INFO_DATA, _attribute(_PEER, other)))
    _ask(_NEW_LINK, _CREATE | _EXCLUSIVE, link + _text(_NAME, name) + info, f"make the interface {name}")


def bring_up(name: str, *, bridge: str = "") -> None:
    """Bring the interface up, which also connects it to its bridge."""
    link = _LINK.pack(_index(name), _UP, _UP)
    plugged = _number(_MASTER, _index(bridge)) if bridge else b""
    _ask(_NEW_LINK, 0, link + plugged, f"bring up {name}")


def give(name: str, address: str, prefix: int) -> None:
    """Give the interface an IPv4 address; `prefix`: the length of the network's part in bits."""
    raw = _socket.inet_aton(address)
    # IFA_LOCAL and IFA_ADDRESS: the second is the same unless the interface is a point-to-point link.
    body = _ADDRESS.pack(_socket.AF_INET, prefix, _index(name)) + _attribute(2, raw) + _attribute(1, raw)
    _ask(_NEW_ADDRESS, _CREATE | _EXCLUSIVE, body, f"give {name} the address {address}")


def send_all_by(gateway: str) -> None:
    """Make `gateway` the default route."""
    body = _ROUTE.pack(_socket.AF_INET, _MAIN_TABLE, _STATIC, _UNICAST)
    route = body + _attribute(_GATEWAY, _socket.inet_aton(gateway))
    _ask(_NEW_ROUTE, _CREATE | _EXCLUSIVE, route, f"route by {gateway}")


def _index(name: str) -> int:
    return _socket.if_nametoindex(name)


def _attribute(kind: int, value: bytes) -> bytes:
    # Attributes begin at multiples of four bytes, which the length of one does not include.
    padding = b"\0" * (-len(value) % 4)
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), kind) + value + padding


def _text(kind: int, value: str) -> bytes:
    return _attribute(kind, value.encode() + b"\0")


def _number(kind: int, value: int) -> bytes:
    return _attribute(kind, struct.pack("=I", value))


def _ask(kind: int, flags: int, body: bytes, what: str) -> None:
    """Send one request and read its answer: a negative error number, or 0."""
    sock = _socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW | _socket.SOCK_CLOEXEC, 0)
    try:
        sock.send(_HEADER.pack(_HEADER.size + len(body), kind, _REQUEST | _ACK | flags) + body)
        # What follows repeats the request.
        answer = sock.recv(_HEADER.size + _ERROR.size)
    finally:
        sock.close()
    # The answer is one message: a header and the error of the request (NLMSG_ERROR, netlink(7)).
    (number,) = _ERROR.unpack_from(answer, _HEADER.size)
    if number:
        raise OSError(-number, f"{what}: {os.strerror(-number)}")
