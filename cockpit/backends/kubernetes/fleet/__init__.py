"""A fleet of Kubernetes clusters as its host tells of it: policies, bindings, members, and their own objects.

Sources: `policy.karmada.io`, `work.karmada.io` and `cluster.karmada.io` of Karmada, and `policy.one.alibabacloud.com`
of ACK One, which is made of it.
"""
