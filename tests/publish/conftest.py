"""The S3 servers of the store tests, and an environment without keys."""

import pytest

from fib_core.adapters import key_files
from fib_core.runtime import notices
from tests.adapters.conftest import liar, moto_endpoint, seaweedfs_endpoint, use_server
from tests.fakes.memory_store import MemoryStore

__all__ = ["liar", "moto_endpoint", "seaweedfs_endpoint", "use_server"]


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch, tmp_path):
    names = ("FIB_SIGNING_KEY", "FIB_SIGNING_KEY_FILE", "FIB_TRUSTED_KEYS", "FIB_PUBLISHED_AFTER", "FIB_STORE",
             "FIB_CHANNEL", "FIB_CACHE", "FIB_INDEX")  # fmt: skip
    for name in names:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FIB_HOME", str(tmp_path / "home"))
    key_files.release_signing_key()
    notices.forget()
    yield
    key_files.release_signing_key()


@pytest.fixture
def store():
    return MemoryStore()
