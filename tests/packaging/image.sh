#!/usr/bin/env bash
# The image of deploy/container/Dockerfile, built and run: its daemon serves, its health check passes, and it ends
# gracefully on the image's stop signal.
#
# usage, as root: tests/packaging/image.sh [PACKAGE.deb]
#                 (none: the Dockerfile builds the package, which takes long)
#
# No registry is asked: the base image is a Debian of debootstrap. Buildah builds and runs in a chroot, so no container
# runtime, cgroups or namespaces of the network are needed. Takes 4 GiB in /tmp. OPSERVE_DEBIAN_ROOT names a root that
# debootstrap made before. Packages: buildah, debootstrap.
set -euo pipefail

source=$(cd "$(dirname "$0")/../.." && pwd)
package=${1:-}
for program in buildah debootstrap; do
  command -v "$program" >/dev/null ||
    { echo "$program is not installed: deploy/install_packages.sh --long" >&2; exit 1; }
done
work=$(mktemp -d /tmp/opserve-image.XXXXXX)
daemon=
container=
engine() { buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"; }
# The daemon's process: Buildah's are around it.
process() {
  local process=$daemon child
  while child=$(pgrep --parent "$process" --oldest); do process=$child; done
  echo "$process"
}
finish() {
  [ -z "$daemon" ] || kill -KILL "$(process)" 2>/dev/null || true
  [ -z "$container" ] || engine rm "$container" >/dev/null 2>&1 || true
  rm -rf --one-file-system "$work"
}
trap finish EXIT
step() { printf '\n== %s\n' "$1"; }
fail() {
  echo "FAILED: $1" >&2
  [ ! -e "$work/log" ] || tail -20 "$work/log" >&2
  exit 1
}
# The words of a list in the configuration of the image, one a line.
setting() { engine inspect --type image --format "{{range .Docker.Config.$1}}{{.}}{{\"\\n\"}}{{end}}" opserve; }
inside() { engine run --isolation chroot "$container" "$@"; }

step "A base image"
root=${OPSERVE_DEBIAN_ROOT:-$work/root}
[ -n "${OPSERVE_DEBIAN_ROOT:-}" ] || debootstrap --variant=minbase bookworm "$root" >/dev/null
base=$(engine from scratch)
engine add --quiet "$base" "$root" / >/dev/null
engine commit --quiet "$base" docker.io/library/debian:bookworm-slim >/dev/null
engine rm "$base" >/dev/null
rm -rf --one-file-system "$work/root"

step "The image"
# What is committed or would be, without build directories.
mkdir "$work/context"
git -C "$source" ls-files -z --cached --others --exclude-standard |
  tar -C "$source" --null --files-from=- --create | tar -C "$work/context" --extract
stages=()
if [ -n "$package" ]; then
  mkdir "$work/package"
  cp "$package" "$work/package/opserve.deb"
  stages=(--build-context "build=$work/package")
fi
engine bud --isolation chroot --pull-never --format docker "${stages[@]}" \
  --file "$work/context/deploy/container/Dockerfile" --tag opserve "$work/context"
rm -rf --one-file-system "$work/context"

step "Its daemon"
mapfile -t entry < <(setting Entrypoint)
mapfile -t health < <(setting Healthcheck.Test)
[ "${health[0]}" = CMD ] || fail "the image's health check is no command: ${health[*]}"
container=$(engine from --pull-never opserve)
# The network is the machine's, where another daemon may have the port of metrics.
inside "${entry[@]}" --metrics_listen=127.0.0.1:0 >"$work/log" 2>&1 &
daemon=$!
ready=
for _ in $(seq 600); do
  kill -0 "$daemon" 2>/dev/null || fail "the daemon has ended"
  ! grep -q '"event":"ready"' "$work/log" || { ready=1; break; }
  sleep 0.1
done
[ -n "$ready" ] || fail "the daemon is not ready after 60 s"
inside "${health[@]:1}" >/dev/null || fail "the health check says that the daemon is ill"
[ "$(inside id -u)" = 970 ] || fail "the container's user is $(inside id -u), must be 970"
inside opserve run L1LossBackward --input grad_output=random:8 --input self=random:8 --input target=random:8 \
  --attr reduction=none >/dev/null || fail "a call fails"

step "Its end"
signal=$(engine inspect --type image --format '{{.Docker.Config.StopSignal}}' opserve)
[ "$(cat "/proc/$(process)/comm")" = opserved ] || fail "the daemon's process is not found"
kill -s "${signal#SIG}" "$(process)"
code=0
wait "$daemon" || code=$?
daemon=
[ "$code" -eq 0 ] || fail "the daemon ended with $code on $signal"
! inside "${health[@]:1}" >/dev/null 2>&1 || fail "the health check passes without a daemon"
echo "The image works."
