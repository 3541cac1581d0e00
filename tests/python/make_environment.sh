#!/usr/bin/env bash
# Makes the virtual environment of the Python tests: Debian's Python with Debian's packages, and
# what requirements.txt adds from PyPI. Does nothing if it is there already.
# usage: make_environment.sh DIRECTORY
set -euo pipefail

requirements=$(dirname "$0")/requirements.txt
directory=$1
stamp=$directory/requirements.txt
cmp -s "$requirements" "$stamp" && exit 0

/usr/bin/python3 -m venv --clear --system-site-packages "$directory"
"$directory/bin/pip" install --quiet --disable-pip-version-check --requirement "$requirements"
cp "$requirements" "$stamp"
