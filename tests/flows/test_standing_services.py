"""Services that stand already are used as they are: a Dask cluster, a Prefect server, a deployment with its worker."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.flows import tiny_dataset
from tests.flows.standing import BIN, CHECKOUT, ask, dask_cluster, environment, prefect_server, running, summary_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
TABLES = {"decisions", "failures", "snapshot", "dispatch-index", "report", "quarantine"}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with prefect_server(tmp_path_factory.mktemp("server")) as address:
        yield address


def _forked(worker: int) -> list[str]:
    below = psutil.Process(worker).children(recursive=True)
    return [" ".join(child.cmdline()) for child in below if "fib_core.device.zygote" in child.cmdline()]


def _state(api: str, flow_run_id: str) -> dict[str, Any]:
    answer: dict[str, Any] = ask(f"{api}/flow_runs/{flow_run_id}")
    return answer


def _artifacts(api: str, flow_run_id: str) -> set[str]:
    chosen = {"artifacts": {"flow_run_id": {"any_": [flow_run_id]}}}
    return {item["key"] for item in ask(f"{api}/artifacts/filter", chosen)}


def test_a_run_measures_on_the_standing_dask_cluster_and_leaves_it_standing(tmp_path: Path) -> None:
    home, dataset = tmp_path / "home", tiny_dataset.write(tmp_path / "dataset")
    with dask_cluster(tmp_path, environment(home)) as (address, worker):
        assert _forked(worker) == []
        summary = summary_of(dataset, environment(home, FIB_DASK_ADDRESS=address))
        assert len(_forked(worker)) == 2, "the fork server of that worker, and its warden, made the candidates"
    assert {item["solution"] for item in summary["promoted"]} == {"direct"}
    assert "INVALID" not in summary["evaluations"]
    assert not (home / "dask").exists(), "no cluster of its own was made"


def test_a_run_reports_to_the_standing_prefect_server_and_starts_none(api: str, tmp_path: Path) -> None:
    home, dataset = tmp_path / "home", tiny_dataset.write(tmp_path / "dataset")
    summary = summary_of(dataset, environment(home, PREFECT_API_URL=api))
    assert _state(api, summary["flow_run_id"])["state"]["type"] == "COMPLETED"
    assert _artifacts(api, summary["flow_run_id"]) >= TABLES
    assert not list((home / "prefect").glob("*.db")), "no database of its own was made"


def test_a_deployment_runs_on_a_worker_with_the_parameters_that_it_is_given(api: str, tmp_path: Path) -> None:
    home, dataset = tmp_path / "home", tiny_dataset.write(tmp_path / "dataset")
    env = environment(home, PREFECT_API_URL=api, PREFECT_HOME=str(tmp_path / "p"), FIB_CHECKOUT=str(CHECKOUT))

    def prefect(*words: str) -> str:
        done = subprocess.run(
            [f"{BIN}/prefect", "--no-prompt", *words], env=env, cwd=CHECKOUT, capture_output=True, text=True,
            timeout=500, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    prefect("work-pool", "create", "kernels", "--type", "process")
    prefect("deploy", "--all")
    with running([f"{BIN}/prefect", "worker", "start", "--pool", "kernels"], env, tmp_path / "worker.log"):
        prefect("deployment", "run", "pipeline/on-demand", "--param", f"dataset={dataset}", "--watch")
    (run,) = ask(f"{api}/flow_runs/filter", {"deployments": {"name": {"any_": ["on-demand"]}}})
    assert run["state"]["type"] == "COMPLETED"
    assert run["parameters"]["dataset"] == str(dataset)
    assert _artifacts(api, run["id"]) >= TABLES
    assert (home / "store/channels/quick.json").exists()
