#!/bin/sh
# Creates .venv from the exact pins, once per content of the pins. Needs Python 3.11/3.12 and a C++ compiler.
#   TORCH_ARGS  extra pip arguments for torch alone (for example an index that holds CPU builds); default none
#   TORCH=host  keep the torch that the host's Python already has (GPU machines)
set -eu
cd "$(dirname "$0")/../.."
if ! command -v g++ >/dev/null 2>&1; then
    echo "missing prerequisite: g++ (C++ solutions are compiled at run time). Debian/Ubuntu: apt-get install g++" >&2
    exit 1
fi
python=$(sh infra/setup/find_python.sh)
tag=$("$python" -c 'import sys; print(f"py{sys.version_info[0]}{sys.version_info[1]}")')
pins="infra/requirements/$tag.txt"
stamp=".venv/.installed-$(cat "$pins" infra/requirements/torch-cpu.txt pyproject.toml | cksum | tr ' ' '-')-${TORCH:-pinned}"
if [ -e "$stamp" ]; then
    exit 0
fi
echo "Creating .venv with $python ($tag); a first installation takes about four minutes."
if [ "${TORCH:-pinned}" = host ]; then site=--system-site-packages; else site=; fi
"$python" -m venv --clear $site .venv
pip=".venv/bin/python -m pip --disable-pip-version-check --quiet"
echo "1/3 pinned packages ($pins)"
$pip install -r "$pins"
if [ "${TORCH:-pinned}" != host ]; then
    echo "2/3 torch (infra/requirements/torch-cpu.txt)"
    # shellcheck disable=SC2086
    $pip install ${TORCH_ARGS:-} -c "$pins" -r infra/requirements/torch-cpu.txt
fi
echo "3/3 this project"
$pip install --no-deps --no-build-isolation -e .
$pip check
touch "$stamp"
echo "Installed. Try: .venv/bin/fib --help"
