"""The kinds of a fleet's host as definitions of the tests' own, out of the fields that Karmada and ACK One document.

Karmada's policy has no `customSchedulingType` and no `suspension.scheduling`; that of ACK One has both.
"""

from __future__ import annotations

from typing import Any

TEXT = {"type": "string"}
NUMBER = {"type": "integer", "format": "int32"}
FLAG = {"type": "boolean"}
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def a_list(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of}


def an_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def a_choice(*words: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


def definition(group: str, version: str, kind: str, spec: dict[str, Any], scope: str = "Namespaced") -> dict[str, Any]:
    plural = f"{kind.lower()}s".replace("ys", "ies")
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    schema = {"openAPIV3Schema": an_object(spec=spec, status=ANYTHING)}
    served = {"name": version, "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": scope, "names": names, "versions": [served]},
    }


def policy_spec(*, purge: tuple[str, ...], gang: bool) -> dict[str, Any]:
    own = {"customSchedulingType": a_choice("Gang")} if gang else {}
    suspended = {"scheduling": FLAG} if gang else {}
    application = an_object(decisionConditions=an_object(tolerationSeconds=NUMBER), purgeMode=a_choice(*purge))
    return an_object(
        resourceSelectors=a_list(
            an_object(apiVersion=TEXT, kind=TEXT, name=TEXT, namespace=TEXT, labelSelector=ANYTHING)
        ),
        propagateDeps=FLAG,
        priority=NUMBER,
        suspension=an_object(dispatching=FLAG, dispatchingOnClusters=ANYTHING, **suspended),
        failover=an_object(application=application, cluster=ANYTHING),
        placement=an_object(
            clusterAffinity=an_object(clusterNames=a_list(TEXT), exclude=a_list(TEXT)),
            clusterTolerations=a_list(ANYTHING),
            spreadConstraints=a_list(an_object(spreadByField=TEXT, minGroups=NUMBER, maxGroups=NUMBER)),
            replicaScheduling=an_object(
                replicaSchedulingType=a_choice("Divided", "Duplicated"),
                replicaDivisionPreference=a_choice("Aggregated", "Weighted"),
                weightPreference=ANYTHING,
                **own,
            ),
        ),
    )


ACK_SPEC = policy_spec(purge=("Immediately", "Graciously", "Never"), gang=True)
KARMADA_SPEC = policy_spec(purge=("Directly", "Gracefully", "Never"), gang=False)
REFERENCE = an_object(apiVersion=TEXT, kind=TEXT, namespace=TEXT, name=TEXT, uid=TEXT, resourceVersion=TEXT)
BINDING_SPEC = an_object(
    resource=REFERENCE,
    propagateDeps=FLAG,
    replicas=NUMBER,
    clusters=a_list(an_object(name=TEXT, replicas=NUMBER, components=a_list(an_object(name=TEXT, replicas=NUMBER)))),
    suspension=an_object(dispatching=FLAG, scheduling=FLAG),
    failover=ANYTHING,
    placement=ANYTHING,
    gracefulEvictionTasks=a_list(ANYTHING),
)
CLUSTER_SPEC = an_object(id=TEXT, apiEndpoint=TEXT, syncMode=a_choice("Push", "Pull"), taints=a_list(ANYTHING))
ACK_POLICY = definition("policy.one.alibabacloud.com", "v1alpha1", "PropagationPolicy", ACK_SPEC)
KARMADA_POLICY = definition("policy.karmada.io", "v1alpha1", "PropagationPolicy", KARMADA_SPEC)
OF_HOST = (
    definition("work.karmada.io", "v1alpha2", "ResourceBinding", BINDING_SPEC),
    definition("cluster.karmada.io", "v1alpha1", "Cluster", CLUSTER_SPEC, scope="Cluster"),
)
