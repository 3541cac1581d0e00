#!/usr/bin/env bash
# Builds the Debian package. Prints its path.
#
# The build directory is build-package, or OPSERVE_BUILD_DIR.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
build=${OPSERVE_BUILD_DIR:-$root/build-package}

{
  "$root/deploy/install_packages.sh"
  cmake -S "$root" -B "$build" -G Ninja -DOPSERVE_BUILD_TESTS=OFF -DCMAKE_INSTALL_PREFIX=/usr
  cmake --build "$build"
  rm -f "$build"/opserve_*.deb
  (cd "$build" && cpack)
} >&2
echo "$build"/opserve_*.deb
