"""A fleet of embedded clusters: an engine whose nodes are its members' nodes, and which hands its jobs to them.

The fleet's own cycle binds jobs to members. What it decides comes to them as submissions (`orders`); each member's own
cycle starts what was bound to it, and the fleet hears of that (`reports`). Everything here is a function of the
machines: nothing is remembered beside them.
"""
