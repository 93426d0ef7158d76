"""KernelRunner over a plain Dask cluster: one visit is one task that holds one unit of the device resource.

In: VisitRequests as JSON. Out: VisitResults. Knows nothing of Prefect; a lost worker comes back as the machine's fault.
Dask's own retries are off (``allowed-failures`` 0): a request that killed its worker must not be replayed blindly.
"""

import json
import logging
import os
import re
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import dask
from distributed import Client, LocalCluster, get_worker
from distributed.client import FutureCancelledError
from distributed.scheduler import KilledWorker

from fib_core.errors import DeviceError
from schemas.environment import Environment
from schemas.solution import Solution
from schemas.visit import MachineFault, VisitRequest, VisitResult

_LOG = logging.getLogger(__name__)
DEVICE = "FIB_DEVICE"
_ADDRESS = re.compile(r"((?P<scheme>tcp|tls)://)?(?P<host>[^:/]+|\[[^]]+\]):(?P<port>\d+)")
CONNECT_LIMIT_S = 3.0
"""For a standing scheduler to answer: it is there or it is not."""
WORKER_WAIT_S = 120.0
"""How long a visit waits for a first or a new worker: a service manager has restarted one by then."""


class DaskPool:
    """Brings visits to whichever worker has a free device."""

    def __init__(self, client: Client, resource: str, build_dir: Path) -> None:
        self._client, self._resource, self._build_dir = client, resource, build_dir
        self._patience_s = WORKER_WAIT_S

    def describe(self) -> Environment:
        """Environment of a device worker."""
        answer = self._call(describe_on_worker)
        if isinstance(answer, MachineFault):
            raise DeviceError(f"no device worker answered ({answer.cause}): {answer.detail}")
        return Environment.model_validate_json(answer)

    def prepare(self, solutions: Sequence[Solution], build_s: float) -> None:
        """Compile ahead on a device worker; a fault here costs nothing, since a visit compiles what is missing."""
        texts = [item.model_dump_json(exclude_unset=True) for item in solutions]
        self._call(prepare_on_worker, json.dumps(texts), str(build_s))

    def visit(self, request: VisitRequest) -> VisitResult:
        """One visit; a killed or lost worker is a fault of the machine."""
        answer = self._call(visit_on_worker, request.model_dump_json(exclude_unset=True))
        if isinstance(answer, MachineFault):
            return VisitResult(evaluations=(), fault=answer, device_id="unknown", wall_s=0.0)
        return VisitResult.model_validate_json(answer)

    def _call(self, function: Any, *args: str) -> Any:
        absent = self._wait_for_worker()
        if absent is not None:
            return absent
        future = self._client.submit(
            function, *args, str(self._build_dir), resources={self._resource: 1}, pure=False, retries=0
        )
        try:
            return future.result()
        except KilledWorker as error:
            return MachineFault(cause="worker_lost", detail=str(error))
        except (FutureCancelledError, TimeoutError, OSError) as error:
            return MachineFault(cause="cluster_unreachable", detail=str(error))


    def _wait_for_worker(self) -> MachineFault | None:
        """A task for a device that nobody has would wait in silence for ever."""
        deadline, said = time.monotonic() + self._patience_s, False
        what = f"no worker with the resource {self._resource} is connected to the Dask scheduler"
        while not self._workers():
            if time.monotonic() >= deadline:
                self._patience_s = 0.0  # the rest of the run does not wait as long again for each visit
                return MachineFault(
                    cause="no_worker", detail=f"{what}; start one: dask worker ADDRESS --resources {self._resource}=1"
                )
            if not said:
                _LOG.warning("%s; waiting up to %.0f s", what, self._patience_s)
                said = True
            time.sleep(0.5)
        self._patience_s = WORKER_WAIT_S
        return None

    def _workers(self) -> list[str]:
        known = self._client.scheduler_info(n_workers=-1)["workers"]
        return [name for name, worker in known.items() if worker.get("resources", {}).get(self._resource)]


def describe_on_worker(build_dir: str) -> str:
    """Runs in a Dask worker."""
    return str(_device(build_dir).describe().model_dump_json())


def prepare_on_worker(solutions_json: str, build_s: str, build_dir: str) -> None:
    """Runs in a Dask worker."""
    solutions = [Solution.model_validate_json(text) for text in json.loads(solutions_json)]
    _device(build_dir).prepare(solutions, float(build_s))


def visit_on_worker(request_json: str, build_dir: str) -> str:
    """Runs in a Dask worker: candidates and reference run in processes below it, never in it."""
    request = VisitRequest.model_validate_json(request_json)
    return str(_device(build_dir).visit(request).model_dump_json())


def _device(build_dir: str) -> Any:
    """One DeviceWorker per Dask worker, kept (with its zygote) until the worker ends.

    Which device it is belongs to the worker (``FIB_DEVICE`` in its environment), not to a run: two GPUs of one host are
    two workers of a standing cluster.
    """
    from fib_core.adapters.device_worker import DeviceWorker

    worker = get_worker()
    device = getattr(worker, "fib_device", None)
    if device is None:
        device = DeviceWorker(cache_dir=Path(build_dir), device=os.environ.get(DEVICE, "cpu")).__enter__()
        worker.fib_device = device
    return device


class LocalDevices:
    """A LocalCluster with one device per worker, closed on exit."""

    def __init__(self, resource: str, scratch: Path, device: str) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        dask.config.set(_QUIET_DASK | {"temporary-directory": str(scratch)})
        self._cluster = LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", host="127.0.0.1",
            resources={resource: 1}, env={"OMP_NUM_THREADS": "1", DEVICE: device},
        )  # fmt: skip

    @property
    def address(self) -> str:
        """Scheduler address."""
        return str(self._cluster.scheduler_address)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._cluster.close(timeout=10)


_QUIET_DASK = {
    "distributed.scheduler.allowed-failures": 0,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.admin.low-level-log-length": 0,
    "distributed.comm.timeouts.connect": "60s",
}


def _hush() -> None:
    """Dask narrates every connection at INFO; what matters comes back as a result or a fault."""
    for name in ("distributed", "distributed.scheduler", "distributed.nanny", "distributed.core", "distributed.worker",
                 "distributed.http.proxy", "distributed.client"):  # fmt: skip
        logging.getLogger(name).setLevel(logging.ERROR)


def knock(address: str) -> None:
    """Raise DeviceError within seconds unless somebody listens at ``address`` and speaks first, as a scheduler does.

    Dask's own client goes on trying, and where a stranger listens it waits without an end.
    """
    found = _ADDRESS.fullmatch(address)
    try:
        if found is None:
            raise ValueError("that is no address")
        place = found["host"].strip("[]"), int(found["port"])
        with socket.create_connection(place, timeout=CONNECT_LIMIT_S) as line:
            if found["scheme"] != "tls" and not line.recv(1):
                raise OSError("whoever listens there hung up")
    except (OSError, OverflowError, ValueError) as error:
        raise _nobody(address, error) from error


def _client_of(address: str) -> Client:
    knock(address)
    try:
        return Client(address, set_as_default=False, timeout=CONNECT_LIMIT_S)
    except (OSError, TimeoutError, ValueError) as error:
        raise _nobody(address, error) from error


def _nobody(address: str, error: Exception) -> DeviceError:
    return DeviceError(
        f"no Dask scheduler answers at {address!r} ({error}); start one with `dask scheduler`, correct "
        "FIB_DASK_ADDRESS (tcp://HOST:PORT), or unset it to measure on a cluster of this run's own"
    )


@contextmanager
def open_pool(address: str | None, resource: str, build_dir: Path, device: str = "cpu") -> Iterator[DaskPool]:
    """A pool on the standing cluster at ``address``, or on a local one with ``device``, made for this run."""
    _hush()
    if address is not None:
        with _client_of(address) as client:
            yield DaskPool(client, resource, build_dir)
        return
    with LocalDevices(resource, build_dir.parent / "dask", device) as devices, Client(
        devices.address, set_as_default=False
    ) as client:
        yield DaskPool(client, resource, build_dir)
