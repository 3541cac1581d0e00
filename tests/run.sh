#!/usr/bin/env bash
# Installs what the tests need, builds, and runs them.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
usage() {
  cat <<EOF
usage: tests/run.sh [--quick | --long] [--asan | --tsan] [--lint] [--repeat] [FILTER]

  (nothing)   all tests
  --quick     unit and conformance tests only
  --long      instead of all these, the tests of the long run (label "long"): larger counts, for hours
  --asan      everything built by Clang with AddressSanitizer and UndefinedBehaviorSanitizer
  --tsan      what has threads built with ThreadSanitizer
  --lint      instead of running tests: formatting, and Clang's warnings and lock annotations as
              errors (what --asan builds)
  --repeat    a failed integration test is run once more, alone; if it passes then, it is named at the end
  FILTER      only tests whose name matches this regular expression (as ctest -R)

Build directories: build, build-asan, build-tsan. Exit code 0 if all passed.
EOF
}

sanitize= suffix= labels= configuration= lint= repeat= filter=
for argument in "$@"; do
  case "$argument" in
    --quick) labels='unit|conformance' ;;
    --long) labels=long configuration=long ;;
    --asan) sanitize=address suffix=-asan ;;
    --tsan) sanitize=thread suffix=-tsan ;;
    --lint) lint=1 sanitize=address suffix=-asan ;;
    --repeat) repeat=1 ;;
    -h | --help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) filter=$argument ;;
  esac
done

"$root/deploy/install_packages.sh" "--${configuration:-tests}"

if [ -n "$lint" ]; then
  cd "$root"
  git ls-files '*.cc' '*.h' '*.c' 'proto/opserve/*.proto' | xargs clang-format --dry-run -Werror
fi

# Clang also checks the lock annotations, so one build serves both.
[ "$sanitize" != address ] || export CC=clang CXX=clang++
build=$root/build$suffix
cmake -S "$root" -B "$build" -G Ninja -DOPSERVE_BUILD_TESTS=ON -DOPSERVE_SANITIZE="$sanitize"
cmake --build "$build"
if [ -n "$lint" ]; then
  echo "lint passed"
  exit 0
fi

# promtool judges metrics and rules, a Prometheus scrapes daemons, and an nginx stands before some; only
# the programs of these Debian packages are wanted, not their services.
export PATH="$PATH:$build/tools/usr/bin:$build/tools/usr/sbin"
get_programs() {  # of a package
  mkdir -p "$build/tools"
  (cd "$build/tools" && apt-get download -qq "$1" && dpkg-deb -x "$1"_*.deb .)
}
{ command -v prometheus && command -v promtool; } >/dev/null || get_programs prometheus
[ -x /usr/sbin/nginx ] || command -v nginx >/dev/null || get_programs nginx

# The sanitizers find what they look for in any order; a report is a failed test.
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1
export LSAN_OPTIONS=suppressions=$root/tests/lsan.supp
export UBSAN_OPTIONS=print_stacktrace=1
# gRPC was not built with ThreadSanitizer: what it hands to the system is not looked at.
export TSAN_OPTIONS=halt_on_error=1:ignore_noninstrumented_modules=1:suppressions=$root/tests/tsan.supp
tests=(ctest --test-dir "$build" --output-on-failure ${configuration:+-C "$configuration"})
# Most tests wait for one thing or another: five at once keep two processors busy, or three with a sanitizer or of
# the long run.
parallel=5
[ -z "$sanitize$configuration" ] || parallel=3
"${tests[@]}" --parallel "$parallel" ${labels:+-L "$labels"} ${filter:+-R "$filter"} && exit 0

# Integration tests meet timers of other processes, so one may fail because the machine stood still.
# It gets a second run; any other failure stands.
[ -n "$repeat" ] || exit 1
failed=$(sed 's/^[0-9]*://' "$build/Testing/Temporary/LastTestsFailed.log")
# `ctest --rerun-failed` ignores labels, so the failed tests are named.
others=$("${tests[@]}" -R "^(${failed//$'\n'/|})$" -LE integration -N | sed -n 's/^ *Test *#[0-9]*: //p')
if [ -n "$others" ]; then
  echo "failed, and not run again:" $others
  exit 1
fi
"${tests[@]}" --rerun-failed
echo "failed once and passed when run again (a fault to be found):" $failed
