"""Environment of the embedded services: no telemetry, no look-ups, state under FIB_HOME.

Runs before Prefect is imported. Everything is a default: a variable that is set already wins, so a standing Prefect
(``PREFECT_API_URL``) is used as it is.
"""

import os
from pathlib import Path


def prepare_environment(home: Path) -> None:
    """Point Prefect and MLflow at ``home`` and silence what calls out."""
    (home / "prefect").mkdir(parents=True, exist_ok=True)
    defaults = {
        "PREFECT_HOME": str(home / "prefect"),
        # A fresh SQLite database took 24 s to its first flow on two cores; the default of 20 s fails.
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        "PREFECT_CLI_PROMPT": "false",
        "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
        "PREFECT_LOGGING_SERVER_LEVEL": "ERROR",
        "DO_NOT_TRACK": "true",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "FIB_HOME": str(home),
    }
    for name, value in defaults.items():
        os.environ.setdefault(name, value)
