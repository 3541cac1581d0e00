#!/bin/sh
# Builds the custom operator package with the vendor's toolchain: build_out/custom_opp_*.run. Usage: build.sh [JOBS]
set -eu
cd "$(dirname "$0")"

missing() {
  echo "build.sh: $1" >&2
  exit 1
}

[ -n "${ASCEND_HOME_PATH:-}" ] ||
  missing "ASCEND_HOME_PATH is not set. Install the CANN toolkit (8.3 or later) and source its set_env.sh."
[ -d "$ASCEND_HOME_PATH" ] || missing "ASCEND_HOME_PATH=$ASCEND_HOME_PATH is not a directory."
for part in compiler/tikcpp/ascendc_kernel_cmake tools/opbuild/op_build include/aclnn/aclnn_base.h; do
  [ -e "$ASCEND_HOME_PATH/$part" ] ||
    missing "$ASCEND_HOME_PATH/$part does not exist: the toolkit is older than CANN 8.3, or without its development files."
done
for tool in cmake make python3 g++; do
  command -v "$tool" >/dev/null || missing "$tool is not installed."
done

cmake --preset default
cmake --build build_out --target binary -- -j "${1:-4}"
cmake --build build_out --target package
ls build_out/*.run
