#!/usr/bin/env bash
# Measures opserve's Open Inference door beside Triton's, with Triton's own load tool (targets T13a to T13c).
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
case "${1:-}" in
  -h | --help)
    cat <<EOF
usage: tests/benchmark/triton.sh [--repetitions=N] [--seconds=S]

Serves one model with tritonserver and with opserved, and has perf_analyzer ask both, turn by turn. Installs Triton
from PyPI (150 MB) into build/venv-triton. N repetitions (default: 5) of S seconds (default: 3) for each server and
row: half an hour by default, best on a machine that does nothing else.

Prints a row for each target, and appends it to the file OPSERVE_BENCHMARK_JSON, if that is set.
EOF
    exit 0
    ;;
esac

"$root/deploy/install_packages.sh" --tests
build=$root/build
cmake -S "$root" -B "$build" -G Ninja -DOPSERVE_BUILD_TESTS=ON >/dev/null
cmake --build "$build" --target opserved

environment=$build/venv-triton
requirements=$root/tests/benchmark/triton_requirements.txt
if ! cmp -s "$requirements" "$environment/requirements.txt"; then
  /usr/bin/python3 -m venv --clear "$environment"
  "$environment/bin/pip" install --quiet --disable-pip-version-check --no-deps --requirement "$requirements"
  cp "$requirements" "$environment/requirements.txt"
fi

# A model repository, with the backend beside its model.
model=$build/benchmark/triton/KlDivBackward
mkdir -p "$model/1"
# Triton's makers tell authors of backends to optimize; a server for one machine may use all of it.
"${CXX:-c++}" -std=c++20 -O3 -march=native -shared -fPIC -o "$model/libtriton_kl_div.so" \
  "$root/tests/benchmark/triton_backend.cc"
cat >"$model/config.pbtxt" <<EOF
backend: "kl_div"
max_batch_size: 0
input [
  { name: "grad_output" data_type: TYPE_FP32 dims: [ -1 ] },
  { name: "self" data_type: TYPE_FP32 dims: [ -1 ] },
  { name: "target" data_type: TYPE_FP32 dims: [ -1 ] }
]
output [ { name: "grad_input" data_type: TYPE_FP32 dims: [ -1 ] } ]
instance_group [ { kind: KIND_CPU count: $(nproc) } ]
EOF

"$environment/bin/python" -B "$root/tests/benchmark/triton_benchmark.py" "$build" "$(dirname "$model")" "$@"
