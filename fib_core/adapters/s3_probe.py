"""Does this server honour conditional writes? In: a client, a bucket, a prefix. Out: nothing, or ``StoreRefused``.

Some servers accept ``If-None-Match`` and ``If-Match`` and ignore them, so that every racing writer wins. The probe
writes one object under ``.probe/<random>`` in ways that must fail, and in one that must not, then deletes it.
"""

import contextlib
import secrets
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from fib_core.adapters.s3_faults import is_failed_condition
from fib_core.errors import StoreRefused

WRONG_ETAG = f'"{"0" * 32}"'


def prove_conditional_writes(client: Any, bucket: str, prefix: str, url: str) -> None:
    """Raise ``StoreRefused`` naming the conditions that the server ignored or cannot meet."""
    where = {"Bucket": bucket, "Key": f"{prefix}.probe/{secrets.token_hex(12)}"}
    try:
        ignored = _ignored(client, where)
    finally:
        # Deleting is a courtesy: without the right to delete, a tiny probe object stays behind.
        with contextlib.suppress(ClientError, BotoCoreError):
            client.delete_object(**where)
    if ignored:
        raise StoreRefused(
            f"{url} ignores {' and '.join(ignored)}, so two writers could both win and publishing would not be safe; "
            "use a server that honours conditional writes (AWS S3, SeaweedFS) or a directory"
        )


def _ignored(client: Any, where: dict[str, str]) -> list[str]:
    created = _put(client, where, b"first", IfNoneMatch="*")
    if created is None:
        return ["the absence of an object (a first If-None-Match: * write failed)"]
    ignored = []
    if _put(client, where, b"second", IfNoneMatch="*") is not None:
        ignored.append("If-None-Match: *")
    if _put(client, where, b"third", IfMatch=WRONG_ETAG) is not None:
        ignored.append("If-Match")
    if not ignored and client.get_object(**where)["Body"].read() != b"first":
        ignored.append("its own refusal (a refused write changed the object)")
    if not ignored and _put(client, where, b"fourth", IfMatch=created) is None:
        ignored.append("a true If-Match (the right tag was refused)")
    return ignored


def _put(client: Any, where: dict[str, str], body: bytes, **condition: str) -> str | None:
    """The new tag, or None if the server says that the condition failed."""
    try:
        return str(client.put_object(**where, Body=body, **condition)["ETag"])
    except ClientError as error:
        if not is_failed_condition(error):
            raise
        return None
