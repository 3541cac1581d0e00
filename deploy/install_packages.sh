#!/usr/bin/env bash
# Installs the Debian packages opserve needs: to build and run (default), also to test (--tests), for the
# tests of the long run, too (--long), or also to compare its speed with others' (--benchmarks).
# Does nothing, and needs no rights, if all are there already.
set -euo pipefail

build_packages=(
  g++ cmake ninja-build ccache pkg-config
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc
  libabsl-dev prometheus-cpp-dev zlib1g-dev nlohmann-json3-dev libcli11-dev libzip-dev zipcmp zipmerge ziptool libisal-dev libeigen3-dev libffi-dev libssl-dev libsystemd-dev
  python3 python3-numpy
)
test_packages=(make libgtest-dev libgmock-dev libbenchmark-dev clang clang-format libclang-rt-dev openssl python3-seccomp
  python3-venv python3-pip python3-pytest python3-protobuf python3-torch python3-sklearn python3-matplotlib
  libb64-0d
  haproxy iproute2 man-db python3-yaml chromium-headless-shell python3-pil)
# One from elsewhere is as good, and in the way of Debian's.
command -v kubectl >/dev/null || test_packages+=(kubernetes-client)
# They build and run the container image, and count instructions.
long_packages=(buildah debootstrap valgrind)
benchmark_packages=(libtorch-dev valgrind)

packages=("${build_packages[@]}")
case "${1:-}" in
  "") ;;
  --tests) packages+=("${test_packages[@]}") ;;
  --long) packages+=("${test_packages[@]}" "${long_packages[@]}") ;;
  --benchmarks) packages+=("${test_packages[@]}" "${benchmark_packages[@]}") ;;
  *) echo "usage: $0 [--tests | --long | --benchmarks]" >&2; exit 2 ;;
esac

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
  [ "$status" = "install ok installed" ] || missing+=("$package")
done
[ "${#missing[@]}" -eq 0 ] && exit 0

echo "Installing ${#missing[@]} Debian packages: ${missing[*]}"
run_as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "$0: not root and no sudo; run as root: apt-get install ${missing[*]}" >&2
    exit 1
  }
  run_as_root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${run_as_root[@]}" apt-get update -qq
"${run_as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
