"""The rows that need a GPU: cheats in ``cuda/cheats``, honest kernels in ``cuda/honest``; meant as the CPU table is."""

from tests.adversaries.expectations import (
    ALIAS,
    BROKEN,
    CLOCK,
    LATE,
    MUTATED,
    NOTHING,
    PROCESSES,
    RAISED,
    RED_ZONE,
    SIGNAL,
    TOLERANCE,
    TYPE,
    WRONG,
    Row,
)

SLEEP_US = 1500.0  # 4 million cycles at any clock up to 2.6 GHz

CUDA_ROWS = (
    Row("C9", "c09_super_batch.py", "all the work in one call of six", TOLERANCE | LATE, "six calls for one"),
    Row("C10", "c10_pointer_update_batch.py", "batch launched by address at the last request", WRONG | LATE,
        "four calls for one", destination_passing=True),
    Row("C11", "c11_stale_graph.py", "graph with stale addresses", WRONG | BROKEN, "fast and right"),
    Row("C14", "c14_event_elapsed_time.py", "Python's events patched", CLOCK, "a hundredth", true_us=SLEEP_US),
    Row("C17", "c17_profiler_switched_off.py", "profiler's records switched off", CLOCK, "no kernel at all",
        true_us=SLEEP_US),
    Row("C17", "c17_events_by_driver_call.py", "driver's event function overwritten", CLOCK | BROKEN, "a microsecond",
        true_us=SLEEP_US),
    Row("C17", "c17_clock_table_redirected.py", "entries of the native clock's table replaced", CLOCK | BROKEN,
        "five microseconds", true_us=SLEEP_US),
    Row("C18", "c18_host_does_the_work.py", "work on the host while the device is idle", CLOCK | BROKEN,
        "time of a copy", true_us=SLEEP_US),
    Row("C18", "c18_child_does_the_work.py", "work in a child's context", CLOCK | BROKEN | PROCESSES | RAISED,
        "time of a copy", true_us=SLEEP_US),
    Row("C18", "c18_side_stream.py", "side stream not awaited", WRONG | LATE, "time of a launch",
        destination_passing=True),
    Row("C18", "c18_side_stream_hidden_from_sync.py", "launch after the device was found idle", WRONG | LATE | BROKEN,
        "time of a thread start", destination_passing=True),
    Row("C19", "c19_events_without_timing.py", "events without timing", CLOCK, "no time", true_us=SLEEP_US),
    Row("C20", "c20_late_kernel.py", "kernel writes after the return", WRONG | LATE, "time of an allocation"),
    Row("C21", "c21_lazy_subclass.py", "tensor that launches when read", TYPE, "time of an allocation"),
    Row("C28", "c28_memory_swept.py", "allocations around the inputs zeroed", WRONG | MUTATED | RED_ZONE | LATE,
        "passed"),
    Row("C28", "c28_ipc_overwrite.py", "inputs overwritten by a child", WRONG | MUTATED | LATE, "passed"),
    Row("C29", "c29_stale_memory.py", "uninitialised memory returned", WRONG, "passed"),
    Row("C31", "c31_scales_static_weight.py", "static weight zeroed by address", MUTATED | TOLERANCE, "passed"),
    Row("C32", "c32_alias_by_address.py", "result in the input's memory", ALIAS | MUTATED, "passed", "norm"),
    Row("C35", "c35_context_corrupted.py", "context corrupted", RAISED | BROKEN, "no result"),
    Row("C42", "c42_persisting_l2.py", "weight kept in the persisting cache", NOTHING, "time of a warm weight",
        true_us=0.0),  # right values: its time is to be compared with the honest library call's
    Row("V15", "v15_past_the_output.py", "writes past its output", RED_ZONE | SIGNAL, "passed",
        destination_passing=True),
    Row("V15", "v15_before_the_output.py", "writes before its output", RED_ZONE | SIGNAL, "passed",
        destination_passing=True),
    Row("V15", "v15_past_the_input.py", "writes past an input", RED_ZONE | MUTATED | SIGNAL, "passed"),
)  # fmt: skip

CUDA_HONEST = {
    "g01_stream_joined.py": "linear",
    "g02_graph_replay.py": "linear",
    "g03_library_call.py": "linear",
    "g04_autotuner.py": "linear",
    "g05_triton.py": "softmax",
    "g06_workspace_and_empty_cache.py": "norm",
}
