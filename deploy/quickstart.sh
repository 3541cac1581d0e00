#!/usr/bin/env bash
# From a fresh Debian 12 to gradients from a daemon: installs what is needed, builds, starts opserved
# with two devices on this machine's CPU, runs the operators through the command line next to
# the same formulas in numpy, shows a few metrics, and stops what it started.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
build=${OPSERVE_BUILD_DIR:-$root/build}
step() { printf '\n\033[1m== %s\033[0m\n' "$1"; }

step "Packages"
"$root/deploy/install_packages.sh"
echo "all there"

step "Build (in $build)"
cmake -S "$root" -B "$build" -G Ninja -DOPSERVE_BUILD_TESTS=OFF >"$build.configure.log" 2>&1 || {
  cat "$build.configure.log" >&2
  exit 1
}
mv "$build.configure.log" "$build/configure.log"
cmake --build "$build" --target opserved opserve_cli

step "Start the daemon"
work=$(mktemp -d)
daemon=
stop() {
  if [ -n "$daemon" ]; then
    kill "$daemon" 2>/dev/null || true
    wait "$daemon" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap stop EXIT
OPSERVE_HOST_DEVICES=2 "$build/bin/opserved" --listen="unix:$work/opserve.sock" \
  --metrics_listen=127.0.0.1:0 --drain_delay=0s 2>"$work/opserved.log" &
daemon=$!
until grep -q '"event":"ready"' "$work/opserved.log"; do
  kill -0 "$daemon" 2>/dev/null || { cat "$work/opserved.log" >&2; exit 1; }
  sleep 0.05
done
cat "$work/opserved.log"

export OPSERVE_TARGET="unix:$work/opserve.sock"
export PATH="$build/bin:$PATH"
step "opserve status"
opserve status
step "opserve ops"
opserve ops

/usr/bin/python3 "$root/deploy/quickstart_demo.py" "$work"

step "Metrics"
port=$(sed -n 's/.*"metrics_port":\([0-9]*\).*/\1/p' "$work/opserved.log")
/usr/bin/python3 - "$port" <<'PYTHON'
import sys
import urllib.request
shown = ("opserve_requests_total", "opserve_device_state", "opserve_request_duration_seconds_sum",
         "opserve_workspace_pool_reserved_bytes")
with urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/metrics") as page:
    for line in page.read().decode().splitlines():
        is_part = "stage=" in line and 'stage="total"' not in line
        if line.startswith(shown) and not is_part and not line.endswith(" 0"):
            print(line)
PYTHON

step "Stop the daemon"
kill "$daemon"
wait "$daemon" && echo "stopped"
daemon=
cat <<EOF

To serve yourself:  $build/bin/opserved        (--help explains it)
and in another terminal:  $build/bin/opserve ops
EOF
