"""Do published gains hold? Every promoted key of a home's channel is measured again, in fresh processes, and compared.

Runs ``fib remeasure`` as a user would, on the home that ``bench_aa.py`` filled (or any other). At least 90 % of the
promoted keys have to agree within 1.96 joint standard errors, and none may reverse. Writes build/bench/remeasure.json;
exit code 1 if it fails.

    make bench NAME=remeasure
    .venv/bin/python tests/benchmarks/bench_remeasure.py --home .fib --channel quick --dataset infra/starter/data
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from fib_core.decision.agreement import shares  # noqa: E402
from schemas.remeasurement import KeyAgain  # noqa: E402

FIB = [sys.executable, "-c", "from flows.cli import main; main()"]


def command(given: argparse.Namespace) -> list[str]:
    """As a user would type it."""
    return [*FIB, "remeasure", "--channel", given.channel, "--dataset", str(given.dataset), "--json"]


def once(given: argparse.Namespace) -> dict[str, Any]:
    """One remeasurement under a campaign number of its own."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = os.environ | {"FIB_HOME": str(given.home), "PYTHONPATH": path}
    environment |= dict(item.split("=", 1) for item in given.env)
    with (given.home / "bench_remeasure.log").open("a") as log:
        done = subprocess.run(
            command(given), env=environment, stdout=subprocess.PIPE, stderr=log, text=True,
            timeout=given.limit_minutes * 60, check=False,
        )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"fib remeasure ended with {done.returncode}; see {given.home / 'bench_remeasure.log'}")
    return dict(json.loads(done.stdout))


def summed(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """The counts of all repeats together; every repeat is an independent comparison with the same index."""
    rows = [KeyAgain.model_validate(row) for answer in answers for row in answer["keys"]]
    head = {name: answers[0][name] for name in ("index_digest", "channel", "profile", "device_class")}
    return head | shares(rows) | {"campaigns": [answer["campaign"] for answer in answers]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, default=ROOT / "build" / "aa", help="FIB_HOME of the published index")
    parser.add_argument("--channel", default="aa")
    parser.add_argument("--dataset", type=Path, default=ROOT / "infra" / "calibration" / "data")
    parser.add_argument("--repeats", type=int, default=1, help="remeasurements, one after the other")
    parser.add_argument("--limit-minutes", type=float, default=30.0, help="of one remeasurement")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="for the runs (repeat)")
    parser.add_argument("--json", action="store_true", help="print only JSON on stdout")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench" / "remeasure.json")
    given = parser.parse_args()
    answers = [once(given) for _ in range(given.repeats)]
    result = {"benchmark": "remeasure", "command": " ".join(command(given)[3:]), "extra_environment": given.env}
    result |= summed(answers) | {"keys": [row for answer in answers for row in answer["keys"]]}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if given.json:
        print(json.dumps(result, indent=1))
    else:
        print(f"{result['agreeing']} of {result['compared']} promoted keys agree, {result['reversing']} reverse, "
              f"{result['not_compared']} not compared: {'holds' if result['holds'] else 'DOES NOT HOLD'}")  # fmt: skip
    sys.exit(0 if result["holds"] else 1)


if __name__ == "__main__":
    main()
