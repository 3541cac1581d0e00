#!/usr/bin/env bash
# Builds the fuzz targets with Clang and runs them.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
build=$root/build-fuzz
seconds=600
targets=()

all_targets() { (cd "$root/tests/fuzz/targets" && ls ./*.cc | sed 's,^\./,,; s,\.cc$,,'); }

usage() {
  cat <<EOF
usage: tests/fuzz/run.sh [--seconds=N] [TARGET...]

  --seconds=N   how long each target runs (default 600); two run at a time
  TARGET        $(all_targets | tr '\n' ' ')(default: all)

Build directory: build-fuzz. What is found new goes to build-fuzz/corpus/TARGET. Exit code 0 if no
target failed; for each that did, the input is named and how to run it again.

To take what was found into the checked-in corpus, as few files as cover the same:
  build-fuzz/fuzz/fuzz_TARGET -merge=1 -use_counters=0 tests/fuzz/corpus/TARGET build-fuzz/corpus/TARGET
EOF
}

for argument in "$@"; do
  case "$argument" in
    --seconds=*) seconds=${argument#*=} ;;
    -h | --help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *)
      [ -f "$root/tests/fuzz/targets/$argument.cc" ] || { usage >&2; exit 2; }
      targets+=("$argument")
      ;;
  esac
done
case "$seconds" in '' | *[!0-9]* | 0) usage >&2; exit 2 ;; esac
[ "${#targets[@]}" -gt 0 ] || mapfile -t targets < <(all_targets)

"$root/deploy/install_packages.sh" --tests
CC=clang CXX=clang++ cmake -S "$root" -B "$build" -G Ninja -DOPSERVE_BUILD_TESTS=ON \
  -DOPSERVE_SANITIZE=address -DOPSERVE_FUZZ=ON >/dev/null
cmake --build "$build" --target fuzz
rm -rf "$build/seeds"
"$build/fuzz/fuzz_make_seeds" "$build/seeds"

export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1
export LSAN_OPTIONS=suppressions=$root/tests/lsan.supp:print_suppressions=0
export UBSAN_OPTIONS=print_stacktrace=1

run_target() {
  local target=$1
  local log=$build/fuzz/$target.log
  mkdir -p "$build/corpus/$target" "$build/crashes" "$root/tests/fuzz/corpus/$target"
  "$build/fuzz/fuzz_$target" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=4096 \
    -max_len=4096 -print_final_stats=1 -artifact_prefix="$build/crashes/$target-" \
    "$build/corpus/$target" "$root/tests/fuzz/corpus/$target" "$build/seeds/$target" \
    >"$log" 2>&1 &
  local fuzzer=$! waited=0
  while kill -0 "$fuzzer" 2>/dev/null; do
    sleep 1
    waited=$((waited + 1))
    [ $((waited % 30)) -ne 0 ] || echo "$target: $waited s: $(grep -a 'cov:' "$log" | tail -n 1)"
  done
  if wait "$fuzzer"; then
    echo "$target: passed: $(grep -a 'cov:' "$log" | tail -n 1)"
    return 0
  fi
  tail -n 40 "$log"
  local input
  input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
  echo "$target: FAILED; log $log"
  [ -z "$input" ] || echo "again: $build/fuzz/fuzz_$target $input
mended, keep it as a test: cp $input tests/fuzz/corpus/$target/"
  return 1
}

failed=0
running=0
for target in "${targets[@]}"; do
  if [ "$running" -eq 2 ]; then
    wait -n || failed=1
    running=$((running - 1))
  fi
  run_target "$target" &
  running=$((running + 1))
done
while [ "$running" -gt 0 ]; do
  wait -n || failed=1
  running=$((running - 1))
done
exit "$failed"
