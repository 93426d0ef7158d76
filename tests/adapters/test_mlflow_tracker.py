"""What was logged is read back from a real MLflow database, by MLflow itself."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fib_core.adapters.mlflow_tables import table_json
from fib_core.adapters.mlflow_tracker import MlflowTracker
from fib_core.errors import DeviceError

DIGEST = "sha256:" + "ab" * 32
ROWS = [
    {"definition": "rmsnorm_h2048", "ratio": 1.25, "interval": (1.2, 1.3), "note": None},
    {"definition": "gemm_n2048_k2048", "ratio": float("nan"), "failed": ["min_effect"], "ok": True},
]


@pytest.fixture(scope="module")
def tracker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowTracker]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        yield MlflowTracker(tmp_path_factory.mktemp("home"))


def log(tracker: MlflowTracker, **changed: Any) -> str:
    values: dict[str, Any] = {
        "name": "snapshot ab", "params": {}, "metrics": {}, "tags": {}, "documents": {}, "tables": {}, "inputs": [],
    }  # fmt: skip
    return tracker.log_run(**(values | changed))


def client_of(tracker: MlflowTracker) -> Any:
    from mlflow import MlflowClient

    return MlflowClient(tracker.tracking_uri)


def artifact(tracker: MlflowTracker, run_id: str, path: str, to: Path) -> str:
    return Path(client_of(tracker).download_artifacts(run_id, path, str(to))).read_text()


def test_parameters_metrics_and_tags_are_read_back(tracker: MlflowTracker) -> None:
    metrics = {f"ratio/key {number}": number / 7 for number in range(1500)}
    params = {f"setting.{number}": str(number) for number in range(150)}
    run_id = log(tracker, metrics=metrics | {"spoiled": float("nan")}, params=params, tags={"snapshot_digest": DIGEST})
    run = client_of(tracker).get_run(run_id)
    assert run.data.metrics == metrics
    assert run.data.params == params
    assert run.data.tags["snapshot_digest"] == DIGEST
    assert (run.info.status, run.info.run_name) == ("FINISHED", "snapshot ab")


def test_names_and_texts_that_mlflow_would_refuse_are_made_acceptable(tracker: MlflowTracker) -> None:
    run_id = log(tracker, metrics={"gemm/M=8,N=1": 2.0}, params={"env": "x" * 9000}, tags={"log": "y" * 9000})
    run = client_of(tracker).get_run(run_id)
    assert run.data.metrics == {"gemm/M_8_N_1": 2.0}
    assert run.data.params["env"].endswith("(cut)")
    assert len(run.data.params["env"]) > 5900
    assert run.data.tags["log"].endswith("(cut)")


def test_documents_and_tables_are_artifacts_that_mlflow_opens(
    tracker: MlflowTracker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = log(tracker, documents={"index.json": '{"a": 1}', "reports/summary.md": "# é"}, tables={"decisions": ROWS})
    assert artifact(tracker, run_id, "index.json", tmp_path) == '{"a": 1}'
    assert artifact(tracker, run_id, "reports/summary.md", tmp_path) == "# é"
    table = json.loads(artifact(tracker, run_id, "tables/decisions.json", tmp_path))
    assert table["columns"] == ["definition", "ratio", "interval", "note", "failed", "ok"]
    assert table["data"][1] == ["gemm_n2048_k2048", None, None, None, ["min_effect"], True]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tracker.tracking_uri)
    frame = client_of(tracker).load_table(tracker.prepare(), "tables/decisions.json", run_ids=[run_id])
    assert list(frame["definition"]) == ["rmsnorm_h2048", "gemm_n2048_k2048"]
    tagged = json.loads(client_of(tracker).get_run(run_id).data.tags["mlflow.loggedArtifacts"])
    assert tagged == [{"path": "tables/decisions.json", "type": "table"}]


@pytest.mark.parametrize(
    "source", ["https://example.org/data", "s3://bucket/home/snapshots/ab.json", "/home/somebody/dataset"]
)
def test_datasets_are_inputs_with_digest_context_and_a_source_that_mlflow_knows(
    tracker: MlflowTracker, source: str
) -> None:
    from mlflow.data import get_source

    name = f"starter {len(source)}"
    item = {"name": name, "digest": DIGEST, "source": source, "context": "train"}
    (logged,) = client_of(tracker).get_run(log(tracker, inputs=[item])).inputs.dataset_inputs
    assert (logged.dataset.name, logged.dataset.digest) == (name, "ab" * 18)
    assert json.loads(logged.dataset.profile) == {"digest": DIGEST}
    assert [(tag.key, tag.value) for tag in logged.tags] == [("mlflow.data.context", "train")]
    assert source in json.dumps(get_source(logged.dataset).to_dict())


def test_everything_lies_under_the_home_and_the_page_names_the_run(tracker: MlflowTracker) -> None:
    run_id = log(tracker, documents={"a.txt": "a"})
    home = Path(tracker.tracking_uri.removeprefix("sqlite:///")).parent
    assert home.name == "mlflow"
    assert (home / "artifacts" / run_id / "artifacts" / "a.txt").read_text() == "a"
    named = MlflowTracker(Path("/nowhere"), tracking_uri=tracker.tracking_uri)
    assert (named.folder, named.prepare()) == (home, tracker.prepare())
    page = f"http://127.0.0.1:5000/#/experiments/{tracker.prepare()}"
    assert tracker.run_url(run_id) == f"{page}/runs/{run_id}?workflowType=machine_learning"
    assert tracker.experiment_url() == f"{page}?workflowType=machine_learning"


def test_a_run_that_breaks_off_stays_visible_as_failed(tracker: MlflowTracker) -> None:
    with pytest.raises(DeviceError, match="MLflow at sqlite"):
        log(tracker, name="broken", documents={"../outside.txt": "a"})
    client = client_of(tracker)
    (run,) = client.search_runs([tracker.prepare()], "attributes.run_name = 'broken'")
    assert run.info.status == "FAILED"


def test_a_server_that_is_not_there_is_the_machines_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    with pytest.raises(DeviceError, match=r"http://127\.0\.0\.1:9"):
        log(MlflowTracker(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_importing_and_constructing_the_tracker_imports_no_mlflow(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from fib_core.adapters.mlflow_tracker import MlflowTracker;"
        f"t = MlflowTracker(Path({str(tmp_path)!r})); print(t.tracking_uri); sys.exit('mlflow' in sys.modules)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "MLFLOW_TRACKING_URI"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, f"sqlite:///{tmp_path}/mlflow/mlflow.db"), done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_two_processes_may_meet_a_fresh_home_at_once(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from fib_core.adapters.mlflow_tracker import MlflowTracker;"
        f"print(MlflowTracker(Path({str(tmp_path)!r})).prepare())"
    )
    environment = {name: value for name, value in os.environ.items() if name != "MLFLOW_TRACKING_URI"}
    command = [sys.executable, "-c", code]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(2)]
    assert [process.communicate(timeout=200)[0].strip() for process in started] == ["1", "1"]


cells = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.floats(), max_size=2)


@given(st.lists(st.dictionaries(st.sampled_from("abcd"), cells), max_size=4))
def test_any_rows_become_a_rectangular_table_of_strict_json(rows: list[dict[str, Any]]) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"a browser cannot parse {constant}")

    table = json.loads(table_json(rows), parse_constant=refuse)
    assert set(table["columns"]) == {column for row in rows for column in row}
    assert [len(line) for line in table["data"]] == [len(table["columns"])] * len(rows)
