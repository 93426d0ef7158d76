"""What a public static checker's rules say about a source: a reading of KernelBench's published rules, not its code.

In: Python source. Out: the names of the rules that reject it, and of those that only warn. The rules look at text, so
they see neither what is built at run time nor what has another spelling; the ones that ask for a kernel in a certain
language are left out, since the corpus's kernels are library calls on purpose.
"""

import re

_TIMERS = r"torch\.cuda\.Event(\.record|\.elapsed_time)?|torch\.cuda\.synchronize|time\.perf_counter|time\.time"
REJECTS = {
    "code_bypass": r"\btry\s*:|\bexcept\b|\bpass\b",
    "timing_event_patch": rf"(?:{_TIMERS})\s*=",
    "thread_injection": r"import\s+threading|threading\.Thread|import\s+multiprocessing|multiprocessing\.\w"
    r"|concurrent\.futures|(?:Thread|Process)PoolExecutor",
    "lazy_eval": r"_make_subclass|class\s+\w+.*\((?:torch\.)?Tensor\)|torch\.Tensor\.__new__",
}
WARNS = {
    "stream_injection": r"cuda\.Stream\s*\(|with\s+torch\.cuda\.stream|\.(?:wait|record)_stream\s*\(",
    "precision_downgrade": r"\.(?:half|float16)\s*\(|\.to\s*\(\s*(?:dtype\s*=\s*)?torch\.(?:float16|half)\b",
    "torch_ops": r"torch\.nn\.functional\.\w|torch\.(?:mm|bmm|matmul|einsum|softmax|logsumexp|rms_norm|clamp)\s*\(",
}


def reading(source: str) -> dict[str, list[str]]:
    """Rejecting and warning rules that apply; a ``#`` starts a comment for them, even inside a string."""
    text = "\n".join(re.split(r"#|//", line, maxsplit=1)[0] for line in source.splitlines())
    return {
        "rejects": [name for name, pattern in REJECTS.items() if re.search(pattern, text)],
        "warns": [name for name, pattern in WARNS.items() if re.search(pattern, text)],
    }
