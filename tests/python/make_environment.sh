#!/usr/bin/env bash
# Makes a virtual environment of Debian's Python for the Python tests, with what REQUIREMENTS (default:
# requirements.txt, to which Debian's packages are added) lists of PyPI. Does nothing if it is there already.
# usage: make_environment.sh DIRECTORY [REQUIREMENTS]
set -euo pipefail

directory=$1
requirements=${2:-$(dirname "$0")/requirements.txt}
options=()
[ $# -gt 1 ] || options=(--system-site-packages)
stamp=$directory/requirements.txt
cmp -s "$requirements" "$stamp" && exit 0

/usr/bin/python3 -m venv --clear "${options[@]}" "$directory"
"$directory/bin/pip" install --quiet --disable-pip-version-check --requirement "$requirements"
cp "$requirements" "$stamp"
