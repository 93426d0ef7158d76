"""A run never waits in silence for a device that nobody has."""

import logging
from pathlib import Path

import pytest
from distributed import Client, LocalCluster

from fib_core.adapters import dask_pool
from fib_core.adapters.dask_pool import DaskPool
from fib_core.errors import DeviceError


def _pool(client: Client, resource: str) -> DaskPool:
    return DaskPool(client, resource, Path("unused"))


def test_a_cluster_without_the_device_is_named_with_what_to_start(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(dask_pool, "WORKER_WAIT_S", 1.0)
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, resources={"other": 1}
    ) as cluster, Client(cluster, set_as_default=False) as client, caplog.at_level(logging.WARNING):
        with pytest.raises(DeviceError, match=r"no_worker.*--resources device=1"):
            _pool(client, "device").describe()
        assert "waiting up to 1 s" in caplog.text
        assert _pool(client, "other")._wait_for_worker() is None
