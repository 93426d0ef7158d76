"""Call logs: every whole line with its place, torn files without a crash."""

import gzip
import json
import zlib
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fib_core.adapters.flashinfer_trace import read_call_logs
from fib_core.ports import TraceSource
from tests.adapters.flashinfer_trace_samples import put

CALL = json.dumps({"definition": "gemm_n8_k4", "axes": {"M": 1}})


def test_lines_come_in_file_order_with_their_place(tmp_path: Path) -> None:
    put(tmp_path, "calls/b/x.jsonl", CALL, "", CALL)
    put(tmp_path, "calls/a/x.jsonl.gz", gzip.compress((CALL + "\n").encode() * 2))
    put(tmp_path, "calls/notes.txt", "not a log")
    source: TraceSource = read_call_logs(tmp_path)
    found = [(file.as_posix(), line) for file, line, text in source.lines() if text == CALL]
    packed, plain = "calls/a/x.jsonl.gz", "calls/b/x.jsonl"
    assert found == [(packed, 1), (packed, 2), (plain, 1), (plain, 3)]


def test_a_torn_archive_yields_its_whole_part_and_one_quarantined_place(tmp_path: Path) -> None:
    lines = "".join(json.dumps({"definition": str(number * 7919)}) + "\n" for number in range(20_000))
    packed = gzip.compress(lines.encode())
    put(tmp_path, "calls/x.jsonl.gz", packed[: len(packed) // 2])
    put(tmp_path, "calls/y.jsonl", CALL)
    logs = read_call_logs(tmp_path)
    seen = list(logs.lines())
    assert 1000 < len(seen) < 20_000
    assert seen[-1][0].as_posix() == "calls/y.jsonl"
    (problem,) = logs.quarantined
    assert (problem.file, problem.line, problem.kind) == ("calls/x.jsonl.gz", len(seen), "call")
    assert "ends early or is damaged" in problem.reason


def test_what_is_not_text_or_not_a_file_is_quarantined(tmp_path: Path) -> None:
    put(tmp_path, "calls/plain.jsonl.gz", b"not gzip at all")
    put(tmp_path, "calls/line.jsonl", b"\xff\n" + CALL.encode())
    (tmp_path / "calls" / "dir.jsonl").mkdir()
    logs = read_call_logs(tmp_path)
    assert [line for _, line, _ in logs.lines()] == [2]
    assert {item.file: item.line for item in logs.quarantined} == {
        "calls/plain.jsonl.gz": 0,
        "calls/line.jsonl": 1,
        "calls/dir.jsonl": 0,
    }


def test_reading_twice_gives_the_same_and_does_not_double_the_problems(tmp_path: Path) -> None:
    put(tmp_path, "calls/a.jsonl", b"\xff\n" + CALL.encode())
    logs = read_call_logs(tmp_path)
    assert list(logs.lines()) == list(logs.lines())
    assert len(logs.quarantined) == 1


def test_no_logs_are_no_lines(tmp_path: Path) -> None:
    assert list(read_call_logs(tmp_path).lines()) == []


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(position=st.integers(0, 400), byte=st.integers(0, 255))
def test_no_damaged_byte_makes_reading_raise(tmp_path: Path, position: int, byte: int) -> None:
    packed = bytearray(gzip.compress("".join(f"{zlib.crc32(bytes([n]))}\n" for n in range(100)).encode(), mtime=0))
    packed[position % len(packed)] = byte
    put(tmp_path, "calls/x.jsonl.gz", bytes(packed))
    logs = read_call_logs(tmp_path)
    assert len(list(logs.lines())) + len(logs.quarantined) >= 1
