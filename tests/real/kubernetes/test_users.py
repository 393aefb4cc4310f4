"""The users of the test cluster, as RBAC knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kubernetes.aio.client import ApiException, CoreV1Api

from tests.real.kubernetes.api import ApiError
from tests.real.kubernetes.clients import client_of
from tests.real.kubernetes.cluster import ADMIN, ALICE, NOBODY, VIEWER
from tests.real.kubernetes.daemons import wait_until
from tests.real.kubernetes.pods import fake_pod

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from kubernetes.aio.client import ApiClient

    from tests.real.kubernetes.cluster import RealKubernetes

pytestmark = [pytest.mark.real, pytest.mark.real_kubernetes]


@pytest.mark.parametrize(
    ("user", "reads", "creates", "reads_elsewhere"),
    [
        (ADMIN, True, True, True),
        (ALICE, True, True, False),
        (VIEWER, True, False, True),
        (NOBODY, False, False, False),
    ],
)
async def test_each_user_may_do_what_rbac_grants(
    cluster: RealKubernetes, namespace: str, user: str, reads: bool, creates: bool, reads_elsewhere: bool
):
    async with client_of(cluster, user) as client:
        api = CoreV1Api(client)
        assert await is_allowed(api.list_namespaced_pod(namespace)) is reads
        assert await is_allowed(api.create_namespaced_pod(namespace, fake_pod("mine"))) is creates
        assert await is_allowed(api.list_namespaced_pod("kube-system")) is reads_elsewhere


async def is_allowed(call: Awaitable[object]) -> bool:
    try:
        await call
    except ApiException as error:
        if error.status != 403:
            raise
        return False
    return True


async def test_a_role_can_be_taken_away(cluster: RealKubernetes, namespace: str, alice: ApiClient):
    api = CoreV1Api(alice)
    await api.list_namespaced_pod(namespace)
    cluster.revoke(ALICE, namespace)
    wait_until("alice still reads", lambda: status_of(cluster, ALICE, namespace) == 403)
    assert await is_allowed(api.list_namespaced_pod(namespace)) is False


def status_of(cluster: RealKubernetes, user: str, namespace: str) -> int:
    try:
        cluster.api(user).get(f"/api/v1/namespaces/{namespace}/pods")
    except ApiError as error:
        return error.status
    return 200
