#!/usr/bin/env bash
# Builds the Debian packages, opserve and libopserve-dev. Prints their paths, one a line.
#
# The build directory is build-package, or OPSERVE_BUILD_DIR.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
build=${OPSERVE_BUILD_DIR:-$root/build-package}

{
  "$root/deploy/install_packages.sh"
  cmake -S "$root" -B "$build" -G Ninja -DOPSERVE_BUILD_TESTS=OFF -DCMAKE_INSTALL_PREFIX=/usr
  cmake --build "$build"
  rm -f "$build"/*opserve*.deb
  (cd "$build" && cpack)
} >&2
printf '%s\n' "$build"/opserve_*.deb "$build"/libopserve-dev_*.deb
