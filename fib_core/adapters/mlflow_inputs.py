"""Datasets that a run has read, as MLflow's inputs. In: name, digest, source, context. Out: MLflow entities.

MLflow keeps 36 characters of a digest, which name the dataset in lists; the whole digest is in the profile. A dataset
is one per name and digest and experiment: logged again from another place, it keeps the source of its first time.
"""

import json
from collections.abc import Sequence
from typing import Any

DIGEST_CHARS = 36
CONTEXT_TAG = "mlflow.data.context"


def dataset_inputs(inputs: Sequence[dict[str, str]]) -> list[Any]:
    """One MLflow ``DatasetInput`` for each dataset."""
    return [_dataset_input(item) for item in inputs]


def _dataset_input(item: dict[str, str]) -> Any:
    from mlflow.entities import Dataset, DatasetInput, InputTag

    kind, source = _source(item["source"])
    dataset = Dataset(
        name=item["name"],
        digest=item["digest"].removeprefix("sha256:")[:DIGEST_CHARS],
        source_type=kind,
        source=json.dumps(source),
        profile=json.dumps({"digest": item["digest"]}),
    )
    return DatasetInput(dataset, [InputTag(CONTEXT_TAG, item.get("context", "input"))])


def _source(url: str) -> tuple[str, dict[str, str]]:
    if url.startswith(("http://", "https://")):
        return "http", {"url": url}
    return ("s3" if url.startswith("s3://") else "local"), {"uri": url}
