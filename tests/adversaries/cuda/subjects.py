"""What is judged on a CUDA device: the files made for it, and the files of the CPU corpus that run there.

Out: :class:`Subject` rows; the CPU corpus as it is in the same form, for whoever tabulates both. A file of the CPU
corpus stays out for one of the reasons of ``NOT_PORTED``.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from tests.adversaries.arena import Entry, cheat_of, entry_of, honest_of
from tests.adversaries.catalogue import ROWS
from tests.adversaries.catalogue_cuda import CUDA_HONEST, CUDA_ROWS
from tests.adversaries.cuda.port import ported
from tests.adversaries.expectations import Row
from tests.adversaries.honest_files import DESTINATION_PASSING, HONEST

HERE = Path(__file__).parent
CORPUS = HERE.parent

NOT_PORTED = {
    "c10_pointer_update_batch.py": "reads host memory by address; cuda/cheats has its twin",
    "c11_stale_recording.py": "reads host memory by address; cuda/cheats/c11_stale_graph.py is its twin",
    "c21_lazy_pages.py": "pages of the host that fault; a device has none",
    "c21_lazy_buffer.py": "pages of the host that fault; a device has none",
    "c20_child_of_a_thread.py": "burns time of the host between calls, which no call on a device gains from",
    "c28_poisoned_expectation.py": "zeroes shared mappings, which on a CUDA host are the driver's registers",
    "c31_scales_static_weight.py": "writes host memory by address; cuda/cheats has its twin",
    "c32_alias_by_address.py": "writes host memory by address; cuda/cheats has its twin",
    "c38_rival_overwritten.py": "its victim is compiled for the host",
    "v15_past_the_output.py": "writes host memory by address; cuda/cheats has its twin",
    "v15_before_the_output.py": "writes host memory by address; cuda/cheats has its twin",
    "v15_past_the_input.py": "writes host memory by address; cuda/cheats has its twin",
    "h05_library_by_ctypes.py": "copies host memory through the C library",
    "h10_triton.py": "cuda/honest/g05_triton.py is the same",
}


@dataclass(frozen=True)
class Subject:
    """One file for the device; ``row`` is None for an honest kernel."""

    file: str
    origin: str  # "cuda", "ported" or "cpu"
    title: str
    entry: Entry
    row: Row | None = None

    @property
    def honest(self) -> bool:
        return self.row is None


def subjects() -> list[Subject]:
    """The device's own cheats and honest kernels first, then the ported ones."""
    own = [_own_cheat(row) for row in CUDA_ROWS]
    own += [_own_honest(file, definition) for file, definition in CUDA_HONEST.items()]
    taken = {one.file for one in own} | NOT_PORTED.keys()
    cheats = [_ported_cheat(row) for row in ROWS if row.language == "python" and row.file not in taken]
    honest = [_ported_honest(file) for file in HONEST if file.endswith(".py") and file not in taken]
    return own + cheats + honest


def cpu_subjects() -> list[Subject]:
    """The CPU corpus, cheats first."""
    cheats = [Subject(row.file, "cpu", row.title, cheat_of(row), row) for row in ROWS]
    return cheats + [Subject(file, "cpu", _said(honest_of(file).source), honest_of(file)) for file in HONEST]


def bystander_of(subject: Subject) -> Entry | None:
    """The honest entry that shares the subject's visit."""
    row = subject.row
    if row is None or row.bystander is None:
        return None
    entry = entry_of("bystanders", row.bystander, row.definition, row.bystander.endswith(".cc"))
    return entry if subject.origin == "cpu" else replace(entry, source=ported(entry.source))


def _own_cheat(row: Row) -> Subject:
    entry = Entry((HERE / "cheats" / row.file).read_text(), row.definition, row.language, row.destination_passing)
    return Subject(row.file, "cuda", row.title, entry, row)


def _own_honest(file: str, definition: str) -> Subject:
    source = (HERE / "honest" / file).read_text()
    entry = Entry(source, definition, "triton" if "triton" in file else "python")
    return Subject(file, "cuda", _said(source), entry)


def _ported_cheat(row: Row) -> Subject:
    source = ported((CORPUS / "cheats" / row.file).read_text())
    entry = Entry(source, row.definition, "python", row.destination_passing)
    return Subject(row.file, "ported", row.title, entry, row)


def _ported_honest(file: str) -> Subject:
    source = (CORPUS / "honest" / file).read_text()
    entry = Entry(ported(source), HONEST[file], "python", file in DESTINATION_PASSING)
    return Subject(file, "ported", _said(source), entry)


def _said(source: str) -> str:
    """The first line of a file about itself."""
    first = source.split("\n", maxsplit=1)[0]
    return first.strip('"/ ').rstrip(".")
