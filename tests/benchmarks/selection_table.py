"""Exact bounds of shares, and the lines that ``bench_selection`` prints."""

from typing import Any

from scipy.stats import beta


def upper(count: int, total: int) -> float:
    """Exact upper 95 % bound of a share."""
    return 1.0 if count == total else float(beta.ppf(0.95, count + 1, total - count))


def lower(count: int, total: int) -> float:
    """Exact lower 95 % bound of a share."""
    return 0.0 if count == 0 else float(beta.ppf(0.05, count, total - count + 1))


def show(name: str, row: dict[str, Any]) -> None:
    """One line of the table."""
    bias, coverage = row["bias_points"], row["coverage"]
    counts = ", ".join(f"{count} {kind}" for kind, count in row["counts"].items() if count)
    print(
        f"{name:<32} false {row['false_promotion']:7.2%} (<= {row['false_promotion_upper_95']:.2%}) "
        f"arg-max {row['argmax_false_promotion']:5.1%}  found {row.get('found', float('nan')):6.2%}  "
        f"bias {float('nan') if bias is None else bias:+5.2f}  "
        f"coverage {float('nan') if coverage is None else coverage:6.2%}  | {counts}",
        flush=True,
    )
