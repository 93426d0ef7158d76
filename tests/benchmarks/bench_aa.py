"""A/A campaigns with real kernels: how often does the rule promote a program over itself, does it find +2 % and +5 %?

Runs slices of ``fib run --profile full --campaigns N --for DURATION`` as a user would, on a home of its own, so that
slices accumulate over several calls of this script; then counts what the store holds. Writes build/bench/aa.json.

A campaign of the bundled calibration data is 6 contests with 28 keys, each at most 20 rounds of 3 contestants: 28
control decisions, nine of them with an A/A candidate. 150 decisions therefore need six campaigns.

After a change of the decision rule take a new home: decisions of both rules would be counted together.

    make bench NAME=aa                               16 minutes; call tests/benchmarks/bench_aa.py --minutes 5 for less
    ... --report-only --json                         counts again, measures nothing
    ... --merge A.json B.json                        adds reports of several homes up
    ... --dataset infra/calibration/data_cuda --env FIB_DEVICE=cuda:0 [--definition NAME ...]     a CUDA device

Calls with disjoint --definition lists may share a home (Triton compiles in every fresh process, so its contests take
longer: give them calls of their own). Never one definition in two different lists: its rounds would count twice.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

import aa_report  # noqa: E402

from fib_core.adapters.store_url import open_store  # noqa: E402

FIB = [sys.executable, "-c", "from flows.cli import main; main()"]
START_S = 240.0
"""Beyond its budget a slice may take this long to start, to finish its visit and to write its report."""


def command(given: argparse.Namespace, seconds: float) -> list[str]:
    """One slice, as a user would type it."""
    options = ["--dataset", str(given.dataset), "--profile", given.profile, "--channel", "aa", "--json"]
    options += [word for name in given.definition for word in ("--definition", name)]
    return [*FIB, "run", *options, "--campaigns", str(given.campaigns), "--for", f"{seconds:.0f}s"]


def environment_at(home: Path) -> dict[str, str]:
    """This process's environment with another home. Packages may lie where PYTHONPATH says, so that stays."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return os.environ | {"FIB_HOME": str(home), "PYTHONPATH": path}


def slice_of(given: argparse.Namespace, seconds: float) -> dict[str, Any]:
    """Run one slice to its end; its summary. The log goes to the home."""
    given.home.mkdir(parents=True, exist_ok=True)
    environment = environment_at(given.home) | dict(item.split("=", 1) for item in given.env)
    with (given.home / "bench_aa.log").open("a") as log:
        done = subprocess.run(
            command(given, seconds), env=environment, stdout=subprocess.PIPE, stderr=log, text=True,
            timeout=seconds + START_S, check=False,
        )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"a slice ended with exit code {done.returncode}; see {given.home / 'bench_aa.log'}")
    return dict(json.loads(done.stdout))


def accumulate(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Slices until the minutes are spent or every campaign is finished."""
    end, slices = time.monotonic() + 60 * given.minutes, []
    while (left := end - time.monotonic()) > 30:
        summary = slice_of(given, min(left, 60 * given.slice_minutes))
        slices.append({name: summary.get(name) for name in ("stopped", "stopped_at", "campaigns", "wall_s")})
        print(f"slice {len(slices)}: {summary['wall_s']:.0f} s, {summary.get('stopped_at') or 'finished'}",
              file=sys.stderr, flush=True)  # fmt: skip
        if not summary.get("stopped"):
            break
    return slices


def show(result: dict[str, Any]) -> None:
    """The figures that matter, for a person."""
    print(f"{result['decisions']} decisions of {result['contests']} contests: {result['verdicts']['total']}")
    print(f"control promoted    {_text(result['control']['keys'])} (contests: {_text(result['control']['contests'])})")
    print(f"A/A candidate       {_text(result['aa_candidate'])}")
    for name, power in result["power"].items():
        print(f"power {name:13s} {_text(power['total'])}, measured gain {_gain(power['gain'])}")
        for length, row in power["by_length"].items():
            print(f"  {length:17s} {_text(row)}, measured gain {_gain(row['gain'])}")
    for row in result["spread"]:
        sd = row["sd_of_estimates"]
        print(f"A/A {row['length']:15s} {row['decisions']} decisions, sd of estimates "
              f"{'-' if sd is None else f'{sd:.2%}'}, of a round {row['median_sd_of_a_round']:.2%}, "
              f"minimum effect {row['median_min_effect']:.2%}")  # fmt: skip


def _text(row: dict[str, Any]) -> str:
    if row["share"] is None:
        return "nothing decided"
    low, high = row["interval_95"]
    bounds = f"95 %: {low:.1%}-{high:.1%}, at most {row['upper_95']:.1%}"
    return f"{row['count']} of {row['of']} = {row['share']:.1%} ({bounds})"


def _gain(row: dict[str, Any] | None) -> str:
    return "-" if row is None else f"{row['mean']:+.2%} +- {row['standard_error']:.2%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=16.0, help="wall time for all slices")
    parser.add_argument("--slice-minutes", type=float, default=5.0, help="budget of one `fib run`")
    parser.add_argument("--campaigns", type=int, default=50, help="at most so many, counted over all slices")
    parser.add_argument("--profile", default="full", choices=("full", "quick"))
    parser.add_argument("--dataset", type=Path, default=ROOT / "infra" / "calibration" / "data")
    parser.add_argument("--definition", action="append", default=[], metavar="NAME", help="only these (repeat)")
    parser.add_argument("--home", type=Path, default=ROOT / "build" / "aa")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="for the slices (repeat)")
    parser.add_argument("--report-only", action="store_true", help="count what the store holds, measure nothing")
    parser.add_argument("--merge", nargs="+", type=Path, metavar="REPORT", help="add up reports of several homes")
    parser.add_argument("--json", action="store_true", help="print only JSON on stdout")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench" / "aa.json")
    given = parser.parse_args()
    result = merge(given.merge) if given.merge else measure(given)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if given.json:
        print(json.dumps(result, indent=1))
    else:
        for run in result.get("runs", [result]):
            show(run)


def merge(paths: list[Path]) -> dict[str, Any]:
    """One report of several; control and equal candidate are printed at once."""
    result = {"benchmark": "aa"} | aa_report.merged([json.loads(path.read_text(encoding="utf-8")) for path in paths])
    print(f"{result['decisions']} decisions of {result['contests']} contests: {result['verdicts']}", file=sys.stderr)
    print(f"control promoted    {_text(result['control']['keys'])}", file=sys.stderr)
    print(f"A/A candidate       {_text(result['aa_candidate'])}", file=sys.stderr)
    return result


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Slices, then what their store holds."""
    slices = [] if given.report_only else accumulate(given)
    store = open_store(str(given.home / "store"))
    decisions = aa_report.decisions_of(store)
    words = " ".join(command(given, 60 * given.slice_minutes)[3:]).replace(f"{ROOT}{os.sep}", "")
    how = {"command": words, "extra_environment": given.env}
    place = {"environment": aa_report.environment_of(store, decisions), "slices_of_this_call": slices}
    return {"benchmark": "aa"} | how | place | aa_report.report(decisions)


if __name__ == "__main__":
    main()
