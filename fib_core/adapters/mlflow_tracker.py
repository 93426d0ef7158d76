"""RunTracker on MLflow: one run with its parameters, metrics, tags, documents, tables and input datasets.

In: plain dictionaries. Out: an MLflow run id and the page of that run. Knows nothing of kernels or decisions.

MLflow is imported inside methods only, since its import takes seconds, and with its telemetry off. The default home is
a SQLite database beside an artifact folder; ``MLFLOW_TRACKING_URI`` names another one. A fresh database takes
5-10 s to be made; :meth:`MlflowTracker.prepare` does that under a lock, once, before several processes need it.
"""

import contextlib
import fcntl
import logging
import math
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fib_core.adapters.mlflow_inputs import dataset_inputs
from fib_core.adapters.mlflow_tables import TABLES_TAG, table_json, table_tag
from fib_core.errors import DeviceError

EXPERIMENT = "fib"
SQLITE = "sqlite:///"
UI_URL = "http://127.0.0.1:5000"
BATCH_METRICS = 1000
BATCH_PARAMS = 100
PARAM_CHARS = 6000
TAG_CHARS = 8000


class MlflowTracker:
    """Writes runs of one experiment, by default into ``home/mlflow/``; ``ui_url`` is where people open that."""

    def __init__(
        self, home: Path, tracking_uri: str | None = None, ui_url: str = UI_URL, experiment: str = EXPERIMENT
    ) -> None:
        embedded = f"{SQLITE}{Path(home).absolute() / 'mlflow' / 'mlflow.db'}"
        self._uri = tracking_uri or os.environ.get("MLFLOW_TRACKING_URI") or embedded
        self._ui_url = ui_url
        self._experiment = experiment
        self._connected: tuple[Any, str] | None = None

    @property
    def tracking_uri(self) -> str:
        """The given server or database, or the embedded database."""
        return self._uri

    @property
    def folder(self) -> Path | None:
        """Where a SQLite database and its artifacts lie; None for a server, which chooses itself."""
        return Path(self._uri.removeprefix(SQLITE)).absolute().parent if self._uri.startswith(SQLITE) else None

    def prepare(self) -> str:
        """Make database and experiment if they are not there; returns the experiment id."""
        return self._open()[1]

    def log_run(
        self,
        name: str,
        params: dict[str, str],
        metrics: dict[str, float],
        tags: dict[str, str],
        documents: dict[str, str],
        tables: dict[str, Sequence[dict[str, Any]]],
        inputs: Sequence[dict[str, str]],
    ) -> str:
        """Record one finished run and return its id; a run that could not be completed stays visible as FAILED.

        ``documents`` maps artifact names to text, ``tables`` names to rows (shown as tables in the UI), ``inputs`` are
        datasets with the keys name, digest, source, context. Metrics that are not finite are left out; over-long texts
        are cut where MLflow would refuse them. Raises ``DeviceError`` when MLflow cannot take it.
        """
        client, experiment_id = self._open()
        with _faults(self.tracking_uri):
            run_id = str(client.create_run(experiment_id, run_name=name).info.run_id)
            status = "FAILED"
            try:
                _log_values(client, run_id, params, metrics, tags)
                _log_texts(client, run_id, documents)
                _log_tables(client, run_id, tables)
                client.log_inputs(run_id, dataset_inputs(inputs))
                status = "FINISHED"
            finally:
                client.set_terminated(run_id, status)
        return run_id

    def run_url(self, run_id: str) -> str:
        """Where a person opens that run: the tracking server's page, or the embedded UI's once it is started."""
        client, _ = self._open()
        with _faults(self.tracking_uri):
            experiment_id = client.get_run(run_id).info.experiment_id
        return self._page(f"experiments/{experiment_id}/runs/{run_id}")

    def experiment_url(self) -> str:
        """Where a person sees all runs as a table."""
        return self._page(f"experiments/{self._open()[1]}")

    def _page(self, place: str) -> str:
        """Without the query, MLflow 3 opens its pages for chat traces, which hold nothing of ours."""
        served = self.tracking_uri.startswith(("http://", "https://"))
        base = self.tracking_uri if served else self._ui_url
        return f"{base.rstrip('/')}/#/{place}?workflowType=machine_learning"

    def _open(self) -> tuple[Any, str]:
        if self._connected is None:
            _quiet()
            artifact_uri = (self.folder / "artifacts").as_uri() if self.folder else None
            database = Path(self._uri.removeprefix(SQLITE)).absolute() if self.folder else None
            with _alone(self.folder), _made_whole(database), _faults(self.tracking_uri):
                client = _client(self.tracking_uri)
                self._connected = client, _experiment_id(client, self._experiment, artifact_uri)
        return self._connected


@contextlib.contextmanager
def _alone(folder: Path | None) -> Iterator[None]:
    """Two processes that migrate one fresh SQLite database at once break it."""
    if folder is None:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _made_whole(database: Path | None) -> Iterator[None]:
    """A process killed while it makes the database leaves half of one, which MLflow never opens again: start over.

    Nothing is lost: no run is logged before the making has ended, and a database that was once whole has no marker.
    """
    if database is None:
        yield
        return
    unfinished = database.with_name(f".{database.name}.unfinished")
    if unfinished.exists():
        for path in database.parent.glob(f"{database.name}*"):
            path.unlink()
    if not database.exists():
        unfinished.touch()
    yield
    unfinished.unlink(missing_ok=True)


def _quiet() -> None:
    """Before MLflow is imported: no telemetry, and no links on stdout, where our JSON goes."""
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    os.environ["MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"] = "true"
    os.environ.setdefault("DO_NOT_TRACK", "true")


def _client(tracking_uri: str) -> Any:
    import mlflow

    for noisy in ("alembic", "mlflow.store.db.utils"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    return mlflow.MlflowClient(tracking_uri=tracking_uri, registry_uri=tracking_uri)


def _experiment_id(client: Any, name: str, artifact_uri: str | None) -> str:
    from mlflow.exceptions import MlflowException

    found = client.get_experiment_by_name(name)
    if found is None:
        try:
            return str(client.create_experiment(name, artifact_location=artifact_uri))
        except MlflowException as error:
            found = client.get_experiment_by_name(name)
            if error.error_code != "RESOURCE_ALREADY_EXISTS" or found is None:
                raise
    return str(found.experiment_id)


def _log_values(
    client: Any, run_id: str, params: dict[str, str], metrics: dict[str, float], tags: dict[str, str]
) -> None:
    from mlflow.entities import Metric, Param, RunTag
    from mlflow.utils.time import get_current_time_millis

    now = get_current_time_millis()
    figures = [Metric(_plain(key), float(value), now, 0) for key, value in metrics.items() if math.isfinite(value)]
    for start in range(0, len(figures), BATCH_METRICS):
        client.log_batch(run_id, metrics=figures[start : start + BATCH_METRICS])
    given = [Param(_plain(key), _cut(value, PARAM_CHARS)) for key, value in params.items()]
    for start in range(0, len(given), BATCH_PARAMS):
        client.log_batch(run_id, params=given[start : start + BATCH_PARAMS])
    marks = [RunTag(_plain(key), _cut(value, TAG_CHARS)) for key, value in tags.items()]
    for start in range(0, len(marks), BATCH_PARAMS):
        client.log_batch(run_id, tags=marks[start : start + BATCH_PARAMS])


def _log_texts(client: Any, run_id: str, documents: dict[str, str]) -> None:
    for name, text in documents.items():
        client.log_text(run_id, text, name)


def _log_tables(client: Any, run_id: str, tables: dict[str, Sequence[dict[str, Any]]]) -> None:
    paths = {name: f"tables/{name.removesuffix('.json')}.json" for name in tables}
    for name, rows in tables.items():
        client.log_text(run_id, table_json(rows), paths[name])
    if paths:
        client.set_tag(run_id, TABLES_TAG, table_tag(paths.values()))


def _plain(key: str) -> str:
    """MLflow takes letters, digits and ``_-./: `` in names; keys of ours may hold ``M=8``."""
    return re.sub(r"[^\w\-./: ]", "_", key, flags=re.ASCII)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 12] + " ... (cut)"


@contextlib.contextmanager
def _faults(uri: str) -> Iterator[None]:
    from mlflow.exceptions import MlflowException

    try:
        yield
    except (MlflowException, OSError) as error:
        first = str(error).strip().splitlines()[0][:300]
        raise DeviceError(f"MLflow at {uri} failed: {first}; check that it runs and its disk has space") from error
