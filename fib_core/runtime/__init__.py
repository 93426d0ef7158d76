"""What a serving process imports: pull an index, apply it. Costs milliseconds; torch, pydantic and boto3 come later.

    import fib_core.runtime as fib
    fib.load()                          # what `fib pull` fetched; or fib.use(fib.pull(url, channel))
    @fib.apply("rmsnorm_h2048")
    def my_rms_norm(hidden_states, weight): ...

Knows no Prefect, MLflow, pandas, pandera, Dask, polars or scipy.
"""

from fib_core.runtime.index_client import pull
from fib_core.runtime.process import apply, load, prepare, reset, stats, use
from fib_core.runtime.pulled import PulledIndex

__all__ = ["PulledIndex", "apply", "load", "prepare", "pull", "reset", "stats", "use"]
