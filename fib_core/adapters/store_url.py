"""From the text that people write to an open store. In: a path, ``file://`` or ``s3://`` URL. Out: an ObjectStore.

Knows no credentials: S3 adapters take them, and the endpoint, from the usual ``AWS_*`` variables and files.
"""

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from fib_core.adapters.store_key import checked_key
from fib_core.errors import ContractError
from fib_core.ports import ObjectStore

ACCEPTED = "a path, file:///absolute/path or s3://bucket/prefix"


def open_store(url: str) -> ObjectStore:
    """Open the store that ``url`` names; writes nothing and asks no network before the first use.

    Raises ContractError for what cannot be a store: another scheme, a file where a folder is expected.
    """
    if url.startswith("s3://"):
        return _open_s3(url)
    if url.startswith("file:"):
        return _open_directory(_path_of(url))
    if "://" in url or not url.strip():
        raise ContractError(f"cannot open the store {_harmless(url)!r}; expected {ACCEPTED}")
    return _open_directory(Path(url).expanduser())


def _open_directory(root: Path) -> ObjectStore:
    from fib_core.adapters.directory_store import DirectoryStore

    if os.path.isfile(root):  # noqa: PTH113 - Path.is_file raises where a folder may not be searched
        raise ContractError(f"the store {root} is a file; expected {ACCEPTED}")
    return DirectoryStore(root)


def _open_s3(url: str) -> ObjectStore:
    from fib_core.adapters.s3_store import S3Store

    parts = urlsplit(url)
    if not parts.netloc or "@" in parts.netloc or ":" in parts.netloc or parts.query or parts.fragment:
        raise ContractError(
            f"cannot open the store {_harmless(url)!r}; expected s3://bucket/prefix, with credentials and endpoint in "
            "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_ENDPOINT_URL"
        )
    prefix = parts.path.strip("/")
    return S3Store(parts.netloc, checked_key(prefix) if prefix else "")


def _path_of(url: str) -> Path:
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.netloc not in ("", "localhost") or not path.startswith("/"):
        raise ContractError(f"cannot open the store {url!r}; expected {ACCEPTED}")
    return Path(path)


def _harmless(url: str) -> str:
    """The URL without what may be a password."""
    head, mark, tail = url.rpartition("@")
    return f"...@{tail}" if mark and head else url
