"""Where a store URL leads, and what is refused before anything is touched."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fib_core.adapters.store_key import checked_prefix, is_key
from fib_core.adapters.store_url import open_store
from fib_core.errors import ContractError


def test_a_path_and_its_file_url_open_the_same_place(tmp_path: Path) -> None:
    place = tmp_path / "with space"
    open_store(str(place)).put_once("a", b"1")
    assert open_store(place.as_uri()).get("a").body == b"1"
    assert open_store(str(place)).url == place.as_uri()


def test_a_relative_path_is_bound_to_where_it_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("store")
    monkeypatch.chdir("/")
    store.put_once("a", b"1")
    assert (tmp_path / "store" / "a").read_bytes() == b"1"


@pytest.mark.parametrize("url", ["s3://bucket", "s3://bucket/", "s3://bucket/pre/fix", "s3://bucket/pre/fix/"])
def test_a_bucket_url_comes_back_without_its_last_slash(url: str) -> None:
    assert open_store(url).url == url.rstrip("/")


@pytest.mark.parametrize(
    "url",
    ["", "  ", "s3://", "s3:///prefix", "s3://bucket/a/../b", "s3://bucket?x=1", "http://host/x", "gs://bucket/x",
     "file://elsewhere/x", "file:relative"],
)  # fmt: skip
def test_what_names_no_store_of_ours_is_bad_data(url: str) -> None:
    with pytest.raises(ContractError):
        open_store(url)


def test_a_secret_in_a_url_is_refused_and_not_repeated() -> None:
    for url in ("s3://key:hunter2@bucket/x", "https://key:hunter2@host/x"):
        with pytest.raises(ContractError) as refused:
            open_store(url)
        assert "hunter2" not in str(refused.value)


@given(st.lists(st.from_regex(r"[a-z0-9_=+@,-][a-z0-9_.=+@,-]{0,8}", fullmatch=True), min_size=1), st.data())
def test_every_beginning_of_a_good_key_is_a_good_prefix(segments: list[str], data: st.DataObject) -> None:
    key = "/".join(segments)
    assert is_key(key)
    assert checked_prefix(key[: data.draw(st.integers(0, len(key)))]) is not None


@given(st.text(max_size=12))
def test_no_key_leads_out_of_its_folder(text: str) -> None:
    if is_key(text):
        assert (Path("/root/store") / text).resolve().is_relative_to("/root/store")
        assert not any(part in ("", ".", "..") for part in text.split("/"))


def test_a_file_is_no_store_and_a_folder_or_nothing_yet_is_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for url in (str(tmp_path / "file"), (tmp_path / "file").as_uri()):
        with pytest.raises(ContractError, match="is a file; expected a path, file:///"):
            open_store(url)
    for place in (tmp_path, tmp_path / "later"):
        assert list(open_store(str(place)).keys("channels/")) == []
    open_store("a" * 300)
