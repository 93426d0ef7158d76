"""ObjectStore on S3 or any server that speaks it: write-once by ``If-None-Match: *``, pointer swaps by ``If-Match``.

In: keys and bytes. Out: objects under ``s3://bucket/prefix``. Knows nothing of what the bytes mean.

Before the first write the store proves that the server honours both conditions, since some accept and ignore them.
Every write carries its SHA-256, for the server to check and again as metadata for readers, since not every server gives
a checksum back; and a random ``writer`` mark: when an answer is lost and the repeated request meets our own object, the
mark tells "we won" from "somebody else did".
"""

import base64
import functools
import hashlib
import os
import random
import secrets
import threading
import time
from collections.abc import Iterator
from typing import Any

import boto3
import botocore.session
from botocore.config import Config
from botocore.exceptions import ClientError

from fib_core.adapters.s3_faults import TRANSPORT, code_of, is_failed_condition, s3_faults, status_of
from fib_core.adapters.s3_probe import prove_conditional_writes
from fib_core.adapters.store_key import checked_key, checked_prefix, is_key
from fib_core.errors import DeviceError, ObjectMissing, PublishConflict, StoreRefused
from fib_core.ports import StoredObject

CONNECT_TIMEOUT_S = 5
READ_TIMEOUT_S = 30
ATTEMPTS = 4
PAGE_KEYS = 1000
CONFLICT_ATTEMPTS = 5


class S3Store:
    """Objects under one prefix of one bucket; thread-safe; nothing is contacted before the first use."""

    def __init__(self, bucket: str, prefix: str = "") -> None:
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._client: Any = None
        self._proven = False
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """``s3://bucket/prefix``; no secrets."""
        return f"s3://{self._bucket}/{self._prefix}".rstrip("/")

    def get(self, key: str) -> StoredObject:
        """Read one object, verified against its stored checksum; raises ``ObjectMissing``."""
        checked_key(key)
        with s3_faults(f"{self.url}/{key}"):
            try:
                return self._read(key)
            except ClientError as error:
                if status_of(error) != 404 or code_of(error) == "NoSuchBucket":
                    raise
                raise ObjectMissing(f"nothing is stored under {key} in {self.url}") from None

    def put_once(self, key: str, body: bytes) -> bool:
        """Create ``key``; False if it exists already (the old bytes stay)."""
        checked_key(key)
        self._prove()
        with s3_faults(f"{self.url}/{key}"):
            return self._write(key, body, {"IfNoneMatch": "*"}) is not None

    def swap(self, key: str, body: bytes, expected_etag: str | None) -> str:
        """Replace ``key`` only if its tag is ``expected_etag`` (None = absent); raises ``PublishConflict``."""
        checked_key(key)
        self._prove()
        condition = {"IfNoneMatch": "*"} if expected_etag is None else {"IfMatch": expected_etag}
        with s3_faults(f"{self.url}/{key}"):
            etag = self._write(key, body, condition)
        if etag is None:
            was = "absent" if expected_etag is None else f"at {expected_etag}"
            raise PublishConflict(f"{key} in {self.url} is not {was}: another writer moved it first; read it again")
        return etag

    def keys(self, prefix: str) -> Iterator[str]:
        """Keys that start with ``prefix``, in lexical order; probes and foreign objects are not keys.

        Sorted here: SeaweedFS lists folder by folder, with ``b/1`` before ``b-1``.
        """
        checked_prefix(prefix)
        with s3_faults(self.url):
            pages = self._s3().get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=self._prefix + prefix, PaginationConfig={"PageSize": PAGE_KEYS}
            )
            items = [item["Key"].removeprefix(self._prefix) for page in pages for item in page.get("Contents", ())]
        yield from sorted(filter(is_key, items))

    def delete(self, key: str) -> None:
        """Remove ``key``; nothing happens if it is not there."""
        checked_key(key)
        with s3_faults(f"{self.url}/{key}"):
            self._s3().delete_object(Bucket=self._bucket, Key=self._prefix + key)

    def _write(self, key: str, body: bytes, condition: dict[str, str]) -> str | None:
        """Put under a condition; the new tag, or None if the condition failed.

        A creation refused (409 on AWS: another request is in flight) while nothing is there is asked again.
        """
        writer = secrets.token_hex(16)
        for attempt in range(CONFLICT_ATTEMPTS):
            try:
                return self._put(key, body, writer, condition)
            except ClientError as error:
                if not is_failed_condition(error):
                    raise
            etag, mark = self._standing(key)
            if mark == writer:
                return etag
            if etag is not None or "IfMatch" in condition:
                return None
            time.sleep(random.uniform(0.5, 1.0) * 0.05 * 2**attempt)
        raise DeviceError(f"{self.url}/{key} refused {CONFLICT_ATTEMPTS} creations, yet is not there; run again later")

    def _put(self, key: str, body: bytes, writer: str, condition: dict[str, str]) -> str:
        digest = hashlib.sha256(body)
        answer = self._s3().put_object(
            Bucket=self._bucket,
            Key=self._prefix + key,
            Body=body,
            ChecksumSHA256=base64.b64encode(digest.digest()).decode(),
            Metadata={"writer": writer, "sha256": digest.hexdigest()},
            **condition,
        )
        return str(answer["ETag"])

    def _standing(self, key: str) -> tuple[str | None, str]:
        """Tag and writer's mark of what is under ``key`` now; (None, "") if nothing."""
        try:
            head = self._s3().head_object(Bucket=self._bucket, Key=self._prefix + key)
        except ClientError as error:
            if status_of(error) != 404:
                raise
            return None, ""
        return str(head["ETag"]), str(head.get("Metadata", {}).get("writer", ""))

    def _read(self, key: str) -> StoredObject:
        for attempt in range(ATTEMPTS):
            try:
                answer = self._s3().get_object(Bucket=self._bucket, Key=self._prefix + key, ChecksumMode="ENABLED")
                body = answer["Body"].read()
            except TRANSPORT:
                # botocore repeats requests, but not bodies that broke off.
                if attempt == ATTEMPTS - 1:
                    raise
                continue
            if answer.get("Metadata", {}).get("sha256", _hex(body)) != _hex(body):
                raise StoreRefused(f"{self.url}/{key} fails its own checksum; restore it from a good copy")
            return StoredObject(body, str(answer["ETag"]))
        raise AssertionError("the last attempt returns or raises")

    def _prove(self) -> None:
        with self._lock:
            if not self._proven:
                with s3_faults(self.url):
                    prove_conditional_writes(self._make_client(), self._bucket, self._prefix, self.url)
                self._proven = True

    def _s3(self) -> Any:
        if self._client is None:
            with self._lock:
                self._make_client()
        return self._client

    def _make_client(self) -> Any:
        if self._client is None:
            self._client = connect()
        return self._client


def _hex(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def connect() -> Any:
    """A client for the endpoint and credentials of the environment, with bounded timeouts and retries."""
    core = botocore.session.Session()
    core.register_component("data_loader", _service_models())
    session = boto3.session.Session(botocore_session=core)
    region = session.region_name or "us-east-1"
    other = any(os.environ.get(name) for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"))
    client = session.client("s3", region_name=region, config=_config("path" if other else "auto"))
    if other or ".amazonaws.com" in client.meta.endpoint_url:
        return client
    # The endpoint came from a profile. Servers other than AWS seldom resolve bucket.host names.
    return session.client("s3", region_name=region, config=_config("path"))


@functools.cache
def _service_models() -> Any:
    """Parsed once a process: they are most of the price of a client (0.5 s against 0.1 s)."""
    return botocore.session.Session().get_component("data_loader")


def _config(addressing: str) -> Config:
    return Config(
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=READ_TIMEOUT_S,
        retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
        max_pool_connections=32,
        s3={"addressing_style": addressing},
    )
