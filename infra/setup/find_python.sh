#!/bin/sh
# Prints the first usable Python 3.11 or 3.12 (venv included), or says what is missing and fails.
# Honours PYTHON=/path/to/python. A name on PATH may be a broken shim, so every candidate is executed.
probe='import sys, venv, ensurepip; sys.exit(0 if (3, 11) <= sys.version_info[:2] <= (3, 12) else 1)'
for candidate in ${PYTHON:-python3.12 python3.11 python3 python}; do
    if "$candidate" -c "$probe" >/dev/null 2>&1; then
        command -v "$candidate"
        exit 0
    fi
done
echo "missing prerequisite: Python 3.11 or 3.12 with venv (looked for ${PYTHON:-python3.12, python3.11, python3, python})." >&2
echo "Install it (Debian/Ubuntu: python3 and python3-venv), or name one: make PYTHON=/path/to/python3.12 ..." >&2
exit 1
