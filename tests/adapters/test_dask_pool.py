"""A run never waits in silence for a device that nobody has."""

import logging
import socket
import time
from pathlib import Path

import pytest
from distributed import Client, LocalCluster

from fib_core.adapters import dask_pool
from fib_core.adapters.dask_pool import DaskPool, open_pool
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


@pytest.mark.parametrize("address", ["nonsense", "http://127.0.0.1:8786", "tcp://127.0.0.1:1", "tcp://127.0.0.1:999999"])
def test_a_wrong_scheduler_address_is_one_sentence_at_once(address: str) -> None:
    started = time.monotonic()
    with pytest.raises(DeviceError, match=r"no Dask scheduler answers at .*FIB_DASK_ADDRESS"):
        open_pool(address, "device", Path("unused")).__enter__()
    assert time.monotonic() - started < 5


def test_somebody_else_at_the_schedulers_address_is_found_out_within_ten_seconds() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        started = time.monotonic()
        with pytest.raises(DeviceError, match="no Dask scheduler answers"):
            open_pool(f"tcp://127.0.0.1:{silent.getsockname()[1]}", "device", Path("unused")).__enter__()
        assert time.monotonic() - started < 10
