"""Fails when a Python file is over 250 lines without a stated reason (``# long file: ...`` in its first 30 lines)."""

import subprocess
import sys
from pathlib import Path

LIMIT = 250


def main() -> int:
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"],
        capture_output=True, text=True, check=True,
    ).stdout.split()
    long = [name for name in tracked if Path(name).exists() and _too_long(Path(name))]
    for name in long:
        print(f"{name}: over {LIMIT} lines and no `# long file: reason`; split it by idea", file=sys.stderr)
    return 1 if long else 0


def _too_long(path: Path) -> bool:
    lines = path.read_text(encoding="utf-8").splitlines()
    return len(lines) > LIMIT and not any(line.startswith("# long file:") for line in lines[:30])


if __name__ == "__main__":
    raise SystemExit(main())
