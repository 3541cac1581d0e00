#!/usr/bin/env bash
# Measures what this project promises about speed, as ratios within one run.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
usage() {
  cat <<EOF
usage: tests/benchmark/run.sh [--quick] [--torch] [--instructions]

  (nothing)  all targets, five repetitions each: about half an hour, best on a machine that does
             nothing else
  --quick    one repetition: about three minutes, to see whether all is in order
  --torch    next to PyTorch: kernels (target T12; installs libtorch) and steps of training (T18 to
             T20; makes build/venv-torch, several GB)
  --instructions
             also count the daemon's instructions for small requests (installs valgrind)

The Python client's part makes build/venv.

Prints a table, as Markdown, and writes build/benchmark/result.json.
EOF
}

quick= torch= instructions=
for argument in "$@"; do
  case "$argument" in
    --quick) quick=1 ;;
    --torch) torch=1 ;;
    --instructions) instructions=1 ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
done

"$root/deploy/install_packages.sh" --tests
[ -z "$torch$instructions" ] || "$root/deploy/install_packages.sh" --benchmarks

build=$root/build
out=$build/benchmark
cmake -S "$root" -B "$build" -G Ninja -DOPSERVE_BUILD_TESTS=ON >/dev/null
cmake --build "$build" --target opserved transport_benchmark shared_memory_benchmark \
  kernels_benchmark scheduler_benchmark parts_benchmark engine_benchmark overload_benchmark \
  program_benchmark raw_server \
  ${torch:+torch_benchmark}

mkdir -p "$out"
lines=$out/lines.jsonl
rm -f "$lines"
export OPSERVE_BENCHMARK_JSON=$lines

repetitions=${quick:+1}
repetitions=${repetitions:-5}
min_time=${quick:+0.02}
google=(--benchmark_repetitions="$repetitions" --benchmark_enable_random_interleaving=true
  --benchmark_out_format=json --benchmark_min_time="${min_time:-0.2}")

echo "== transport"
"$build/tests/transport_benchmark" --repetitions="$repetitions"
if [ -n "$instructions" ]; then
  echo "== instructions"
  cmake --build "$build" --target opserve
  python3 "$root/tests/benchmark/instructions.py" "$build"
fi
echo "== Python client"
"$root/tests/python/make_environment.sh" "$build/venv"
"$build/venv/bin/python" "$root/tests/benchmark/python_benchmark.py" "$build" --repetitions="$repetitions"
echo "== shared memory"
"$build/tests/shared_memory_benchmark" --repetitions="$repetitions"
echo "== programs"
missed=
"$build/tests/program_benchmark" --repetitions="$repetitions" || missed=1
echo "== kernels"
files=("$out/kernels.json")
"$build/tests/kernels_benchmark" "${google[@]}" --benchmark_out="${files[0]}" >/dev/null
if [ -n "$torch" ]; then
  files+=("$out/torch.json")
  "$build/tests/torch_benchmark" "${google[@]}" --benchmark_out="${files[1]}" >/dev/null
fi
python3 "$root/tests/benchmark/kernel_targets.py" "${files[@]}"
python3 "$root/tests/benchmark/kernel_targets.py" --json "${files[@]}" >>"$lines"
echo "== scheduler, codec, pools"
"$build/tests/scheduler_benchmark" "${google[@]}" --benchmark_out="$out/scheduler.json"
"$build/tests/parts_benchmark" "${google[@]}" --benchmark_out="$out/parts.json"
if [ -z "$quick" ]; then
  echo "== engine"
  "$build/tests/engine_benchmark"
  echo "== overload"
  "$build/tests/overload_benchmark"
fi
if [ -n "$torch" ]; then
  echo "== training"
  "$root/tests/python/make_environment.sh" "$build/venv-torch" "$root/tests/python/torch_requirements.txt"
  "$build/venv-torch/bin/python" "$root/tests/benchmark/training_benchmark.py" "$build/bin/opserved" \
    --repetitions "$repetitions"
fi

echo
python3 "$root/tests/benchmark/table.py" "$lines" "$out/result.json"
[ -z "$missed" ] || exit 1
