"""The only place that names adapters: settings in, a house with real store, tracker and devices out."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fib_core.adapters.dask_pool import knock, open_pool
from fib_core.adapters.device_worker import DeviceWorker
from fib_core.adapters.flashinfer_trace import CallLogs, read_call_logs, read_dataset
from fib_core.adapters.key_files import hold_signing_key
from fib_core.adapters.mlflow_tracker import MlflowTracker
from fib_core.adapters.store_url import open_store
from fib_core.inspect_dataset import Dataset
from fib_core.ports import KernelRunner, ObjectStore, RunTracker
from schemas.environment import Environment
from tasks.budget import Budget
from tasks.memory import DecisionMemory
from tasks.settings import Settings


@dataclass(frozen=True)
class House:
    """Everything outside the rooms, opened for one run."""

    settings: Settings
    store: ObjectStore
    tracker: RunTracker
    runner: KernelRunner
    environment: Environment = field(repr=False)
    budget: Budget = field(default_factory=Budget, repr=False)
    memory: DecisionMemory = field(default_factory=DecisionMemory, repr=False)


@contextmanager
def open_house(settings: Settings, budget: Budget | None = None) -> Iterator[House]:
    """Open store, tracker and devices; the local cluster, if any, ends with the block."""
    hold_signing_key()
    store = open_store(settings.store_url)
    tracker = MlflowTracker(home=settings.home, tracking_uri=settings.tracking_uri)
    # A fresh tracking database takes seconds to migrate; nothing needs it before the report.
    threading.Thread(target=tracker.prepare, name="prepare tracker", daemon=True).start()
    with open_pool(settings.dask_address, settings.device_resource, settings.build_dir, settings.device) as runner:
        yield House(settings, store, tracker, runner, runner.describe(), budget or Budget())


def reach_cluster(settings: Settings) -> None:
    """Before anything is started: raise DeviceError if a standing cluster is named and does not answer."""
    if settings.dask_address is not None:
        knock(settings.dask_address)


def prepare_tracking(settings: Settings) -> str:
    """Make the tracking database if it is not there; returns the address of the table of all runs."""
    tracker = MlflowTracker(home=settings.home, tracking_uri=settings.tracking_uri)
    tracker.prepare()
    return tracker.experiment_url()


@contextmanager
def open_device(settings: Settings) -> Iterator[KernelRunner]:
    """The device of this process, without a cluster: for one-off evaluations."""
    hold_signing_key()
    with DeviceWorker(cache_dir=settings.build_dir, device=settings.device) as device:
        yield device


def describe_device(settings: Settings) -> Environment:
    """What the device of this process is; raises DeviceError if it is not there."""
    return DeviceWorker(cache_dir=settings.build_dir, device=settings.device).describe()


def open_dataset(root: Path) -> Dataset:
    """Everything under one flashinfer-trace folder; raises ContractError if it is none."""
    return read_dataset(root)


def open_call_logs(root: Path) -> CallLogs:
    """The call logs of a dataset folder, line by line."""
    return read_call_logs(root)
