"""The kernels of the calibration datasets: what is computed, in which language, at which sizes. Data only.

In: nothing. Out: ``SETS``, one dataset per device kind. ``make.py`` writes them, ``verify.py`` measures them.
"""

from dataclasses import dataclass
from typing import Any

VARIANTS = {"aa": 0, "slow2": 2, "slow5": 5}
"""Percent of its work that the incumbent does twice."""

RMSNORM = '''import torch


def run(x, weight):
    wide = torch.promote_types(x.dtype, torch.float32)
    value = x.to(wide)
    return (value * torch.rsqrt(value.pow(2).mean(dim=-1, keepdim=True) + 1e-6) * weight.to(wide)).to(x.dtype)
'''
GEMM = '''def run(A, B):
    return A @ B.T
'''
SERIES = '''import torch


def run(x, weight):
    wide = torch.promote_types(x.dtype, torch.float32)
    t = x.to(wide) / (1 + x.to(wide).abs())
    return (weight.to(wide) * (1 - t**{terms}) / (1 - t)).to(x.dtype)
'''
MADE_UP = "Kernels, shapes and the differences between them are ours and made up for one purpose: the true"
README = f"""# Calibration data (synthetic)

Written by `infra/calibration/make.py`; do not edit by hand. {MADE_UP}
gain of every candidate in here is known (none, 2 %, 5 % of the rows), so the share of false and of missed promotions can be counted. No traffic was recorded.
"""
README_CUDA = f"""# Calibration data for a CUDA device (synthetic)

Written by `infra/calibration/make.py`; do not edit by hand. {MADE_UP}
gain of every candidate in here is known (none, 2 %, 5 % of the terms), so the share of false and of missed promotions can be counted. No traffic was recorded.

One operator, a geometric series of {{terms}} terms a value, as CUDA C++ and as a Triton kernel of other width. Both are chains of multiply-adds that wait
for each other: 110 blocks of one warp or 130 of two, never more than one for each of an H200's 132 multiprocessors, whatever `M` is. So time grows in equal steps
with `M / 5` and there is no last wave that could hide the work done twice. By 4 clocks a multiply-add at 1,980 MHz a step takes 2.4 us: the sizes here should
take 2.4 us to 970 us, and what starting a kernel and its first load take comes on top. That part is not done twice: at `M = 5` it may be as long as
the work itself, so the true gain of a short call is a share of its arithmetic alone, not of its time. `infra/calibration/verify.py --device cuda:0` measures what it is,
and counts on the device how many terms were done twice. Both forms do a dozen more twice than is said: with none at all the plain form, in CUDA C++ on an H200, was
slower than the one with 2 % done twice.

Nine sizes are nine shape families; with the default split key one of them is held out for each definition, so a campaign decides 48 keys. Triton compiles in
every fresh process, so give its three definitions runs of their own (`--definition`).
"""


@dataclass(frozen=True)
class Kernel:
    """One kernel in one language; ``unit`` names what the slowed form does twice."""

    op_type: str
    language: str
    hardware: str
    files: tuple[str, ...]
    entry_point: str
    axes: dict[str, int]
    inputs: dict[str, Any]
    outputs: dict[str, Any]
    reference: str
    constraint: str
    sizes: tuple[int, ...]
    unit: str
    options: tuple[str, ...] = ()

    @property
    def comment(self) -> str:
        """What starts a comment in this language."""
        return "#" if self.language == "triton" else "//"


def tensor(*shape: str) -> dict[str, Any]:
    """A float32 tensor of named axes."""
    return {"shape": list(shape), "dtype": "float32"}


def _cpp(file: str, **given: Any) -> Kernel:
    return Kernel(
        language="cpp", hardware="cpu", files=(file,), entry_point=f"{file}::run", unit="rows",
        constraint="M % 100 == 0", sizes=(100, 200, 400, 800, 1600, 3200), **given,
    )  # fmt: skip


def _series(language: str, files: tuple[str, ...], columns: int, terms: int = 1200) -> Kernel:
    options = (f"-DCOLUMNS={columns}", f"-DTERMS={terms}") if language == "cuda" else ()
    return Kernel(
        op_type="series", language=language, hardware="cuda", files=files, entry_point=f"{files[0]}::run",
        axes={"columns": columns, "terms": terms}, options=options, unit="terms",
        inputs={"x": tensor("M", "columns"), "weight": tensor("columns")}, outputs={"out": tensor("M", "columns")},
        # Five rows at once fill the device; neither a power of two up to 128 nor 13 is a multiple of five.
        reference=SERIES.format(terms=terms), constraint="M % 5 == 0", sizes=(5, 10, 20, 40, 80, 160, 320, 640, 2000),
    )  # fmt: skip


SETS: dict[str, dict[str, Kernel]] = {
    "data": {
        "rmsnorm_h60": _cpp(
            "rmsnorm.cc", op_type="rmsnorm", axes={"hidden_size": 60}, options=("-DHIDDEN_SIZE=60",),
            inputs={"x": tensor("M", "hidden_size"), "weight": tensor("hidden_size")},
            outputs={"out": tensor("M", "hidden_size")}, reference=RMSNORM,
        ),
        "gemm_n16_k36": _cpp(
            "gemm.cc", op_type="gemm", axes={"N": 16, "K": 36}, options=("-DWIDTH=16", "-DDEPTH=36"),
            inputs={"A": tensor("M", "K"), "B": tensor("N", "K")},
            outputs={"C": tensor("M", "N")}, reference=GEMM,
        ),
    },
    "data_cuda": {
        "series_c704": _series("cuda", ("series.cu", "series.cuh"), columns=704),
        "series_c1664_triton": _series("triton", ("series.py",), columns=1664),
    },
}  # fmt: skip
READMES = {"data": README, "data_cuda": README_CUDA.format(terms="1,200")}
