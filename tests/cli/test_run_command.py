"""What ``fib run`` refuses before anything is started: one sentence on stderr, exit code 2, nothing written."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.flows.standing import environment

FIB = [sys.executable, "-c", "from flows.cli import main; main()"]


@pytest.mark.parametrize(
    ("arguments", "more", "said"),
    [
        (["run"], {"FIB_DASK_ADDRESS": "tcp://127.0.0.1:1"}, "no Dask scheduler answers at 'tcp://127.0.0.1:1'"),
        (["run"], {"FIB_DASK_ADDRESS": "nonsense"}, "correct FIB_DASK_ADDRESS (tcp://HOST:PORT)"),
        (["remeasure", "--channel", "nosuch"], {}, "has no channel 'nosuch'; publish one with `fib run`"),
        (["run", "--dataset", "/nope"], {}, "/nope: not a dataset folder"),
        (["run", "--definition", "rmsnorm_h204"], {}, "no definition named 'rmsnorm_h204'; the nearest are: rmsnorm_h"),
        (["run", "--channel", "stable"], {}, "the channel stable takes no index of the profile quick"),
        (["run", "--for", "soon"], {}, "--for 'soon' is no duration; write 90s, 10m or 1h"),
    ],
)
def test_a_setting_that_cannot_work_is_one_sentence_before_anything_starts(
    tmp_path: Path, arguments: list[str], more: dict[str, str], said: str
) -> None:
    done = subprocess.run(
        [*FIB, *arguments], env=environment(tmp_path / "home", **more), capture_output=True, text=True, timeout=240,
        check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, "no traceback, no server that starts and stops"
    assert not (tmp_path / "home/store").exists()
