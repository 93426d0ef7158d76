"""The adversary corpus: every row of the catalogue of cheats and gaps, or the reason why it has no file here."""

from tests.adversaries.rows_process import PROCESS
from tests.adversaries.rows_timing import REPLAY, TIME
from tests.adversaries.rows_values import VALUES

ROWS = REPLAY + TIME + PROCESS + VALUES

LEFT_OUT = {
    "C34": "a library call with right values at its true time is a legitimate contestant",
    "C41": "near copies are a matter of many submissions, not of one: fib_core.dedup removes them before any visit",
}
CUDA_ONLY = {
    "C42": "only a GPU has a persisting part of its cache; see cuda/cheats/c42_persisting_l2.py",
}
