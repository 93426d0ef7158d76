"""Kill -9 at every step of publish, beside other publishers and collections: a reader never sees half an index."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(900)
HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]


def run(task: str, url: str, *more: int) -> dict:
    """What the helper script found; it forks the publishers that are killed and the reader that looks on."""
    command = [sys.executable, str(HERE / "killed_publisher.py"), task, url, *map(str, more)]
    environment = os.environ | {"PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=880, cwd=CHECKOUT, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


def test_killed_before_and_after_every_write_to_a_directory(tmp_path):
    found = run("boundaries", (tmp_path / "store").as_uri())
    assert found["problem"] == ""
    assert found["kills"] >= 14
    assert found["moved"] >= 1, "the kill after the swap had moved the pointer"
    assert found["reads"] > 3


def test_the_reader_does_catch_a_publisher_that_moves_the_pointer_first(tmp_path):
    assert "nothing is stored under indexes" in run("torn", (tmp_path / "store").as_uri())["problem"]


@pytest.mark.slow
def test_killed_at_random_moments_in_a_directory(tmp_path):
    found = run("moments", (tmp_path / "store").as_uri(), 60)
    assert (found["problem"], found["kills"]) == ("", 60)
    assert found["moved"] > 5
    assert found["reads"] > 10


@pytest.mark.slow
@pytest.mark.parametrize("server", ["moto", "seaweedfs"])
def test_killed_before_and_after_every_write_to_s3(server, request, use_server):
    found = run("boundaries", use_server(request.getfixturevalue(f"{server}_endpoint")))
    assert found["problem"] == ""
    assert found["kills"] >= 14
    assert found["moved"] >= 1


@pytest.mark.slow
def test_killed_at_random_moments_on_s3(seaweedfs_endpoint, use_server):
    found = run("moments", use_server(seaweedfs_endpoint), 30)
    assert (found["problem"], found["kills"]) == ("", 30)
    assert found["reads"] > 3
