"""A verdict does not depend on names, comments or layout: every file of the corpus again, under a disguise."""

import ast
from dataclasses import replace

import pytest

from fib_core.adapters.device_worker import DeviceWorker
from tests.adversaries.arena import Entry, cheat_of, honest_of, judge_honest, judge_row
from tests.adversaries.catalogue import ROWS
from tests.adversaries.disguise import disguised_cpp, disguised_python
from tests.adversaries.expectations import Row
from tests.adversaries.honest_files import HONEST

pytestmark = pytest.mark.timeout(900)
CLASSES = {"h08_callable_object.py"}  # its entry is a value, not a function


def disguised(entry: Entry) -> Entry:
    change = disguised_cpp if entry.language == "cpp" else disguised_python
    source, symbol = change(entry.source, entry.symbol)
    return replace(entry, source=source, symbol=symbol)


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.file.rsplit(".", 1)[0])
def test_a_disguised_cheat_fares_no_better(worker: DeviceWorker, row: Row) -> None:
    assert judge_row(worker, row, "renamed", disguised(cheat_of(row))) == []


@pytest.mark.slow
@pytest.mark.parametrize("file", HONEST)
def test_a_disguised_honest_kernel_passes(worker: DeviceWorker, file: str) -> None:
    assert judge_honest(worker, file, "renamed", disguised(honest_of(file))) == []


def test_the_disguise_leaves_neither_comments_nor_entry_points_nor_parameters() -> None:
    for entry in [cheat_of(row) for row in ROWS] + [honest_of(file) for file in HONEST]:
        other = disguised(entry)
        assert other.symbol != entry.symbol
        assert "__tvm_ffi_run" not in other.source
        if entry.language != "cpp":
            before, after = (_names(source) for source in (entry.source, other.source))
            assert "run" not in after
            assert '"""' not in other.source
            assert len(before & after) < len(before)


def _names(source: str) -> set[str]:
    tree = ast.parse(source)
    arguments = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return arguments | {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
