#!/usr/bin/env bash
# The Debian packages in a bare Debian 12: installed, checked, run as the unit runs it, used, removed, purged; then the
# daemon's again where systemd runs (booted_root.sh). libopserve-dev builds the README's program there.
#
# usage, as root: tests/packaging/debian_root.sh [PACKAGE.deb DEVELOPMENT_PACKAGE.deb]
#                 (none: deploy/package.sh builds them)
#
# Takes minutes and 2 GiB in /tmp; OPSERVE_DEBIAN_ROOT names a root that debootstrap made before. In the chroot, where
# systemd does not run, the unit is verified by systemd-analyze and its command is started by its user. Booting it wants
# systemd-nspawn; where that is not to be had, the script says so and passes without. Packages: debootstrap,
# systemd-container.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
case $# in
  0) mapfile -t packages < <("$here/../../deploy/package.sh") ;;
  2) packages=("$@") ;;
  *) echo "usage: $0 [PACKAGE.deb DEVELOPMENT_PACKAGE.deb]" >&2; exit 2 ;;
esac
[ "${#packages[@]}" -eq 2 ] || { echo "deploy/package.sh made no packages" >&2; exit 1; }
package=${packages[0]}
work=$(mktemp -d /tmp/opserve-debian.XXXXXX)
root=$work/root
daemon=
finish() {
  [ -z "$daemon" ] || kill -KILL "$daemon" 2>/dev/null || true
  umount "$root/proc" 2>/dev/null || true
  remove_groups
  rm -rf --one-file-system "$work"
}
trap finish EXIT
step() { printf '\n== %s\n' "$1"; }
fail() { echo "FAILED: $1" >&2; exit 1; }
# Boots the root. Without a systemd around it, nspawn makes its groups beside those of this process, and leaves them.
boot() {
  local options=(--register=no)
  [ -d /run/systemd/system ] || options+=(--keep-unit)
  timeout -k 10 600 systemd-nspawn "${options[@]}" --boot --directory="$root" --private-network --link-journal=no \
    --settings=no --resolv-conf=off --timezone=off --console=pipe </dev/null >"$work/console" 2>&1
}
remove_groups() {
  [ -d /run/systemd/system ] || ! [ -e "$work/console" ] ||
    find /sys/fs/cgroup/*/payload /sys/fs/cgroup/*/supervisor -depth -type d -exec rmdir {} + 2>/dev/null || true
}
inside() { LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"; }

step "A bare Debian"
if [ -n "${OPSERVE_DEBIAN_ROOT:-}" ]; then
  cp -a "$OPSERVE_DEBIAN_ROOT" "$root"
else
  debootstrap --variant=minbase bookworm "$root" >/dev/null
fi
cp /etc/resolv.conf /etc/hosts "$root/etc/"
mount -t proc proc "$root/proc"
# No service is started by a package.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod +x "$root/usr/sbin/policy-rc.d"
inside apt-get update -qq
# The unit is looked at by systemd's own tool, so that is there before.
inside apt-get install -y -qq --no-install-recommends systemd >/dev/null 2>&1
# apt keeps these; the package is to leave nothing else behind.
list() { inside find / -xdev \( -path /proc -o -path /var/cache -o -path /var/lib/apt -o -path /var/log -o -path /tmp \
  -o -path /run/lock -o -path /run/systemd \) -prune -o -print | sort; }
cp "$package" "$root/tmp/opserve.deb"
cp "${packages[1]}" "$root/tmp/libopserve-dev.deb"
# The dependencies first, so that the packages alone are compared.
inside apt-get install -y -qq --no-install-recommends /tmp/opserve.deb /tmp/libopserve-dev.deb g++ cmake make \
  >/dev/null 2>&1
inside apt-get purge -y -qq opserve libopserve-dev >/dev/null 2>&1
list >"$work/before"
cp "$root/etc/passwd" "$root/etc/group" "$work/"

step "Install"
inside apt-get install -y -qq --no-install-recommends /tmp/opserve.deb /tmp/libopserve-dev.deb 2>&1 | grep opserve
inside dpkg -s opserve | grep -E '^(Status|Version|Depends):'
inside id opserve

step "systemd-analyze verify"
inside systemd-analyze verify --man=no opserved.service
inside systemd-analyze security --offline=true --threshold=20 opserved.service | tail -n 1
[ -L "$root/etc/systemd/system/multi-user.target.wants/opserved.service" ] || fail "the unit is not enabled"

step "Run as the unit does"
unit=$root/usr/lib/systemd/system/opserved.service
value() { sed -n "s/^$1=//p" "$unit"; }
mkdir -m "$(value RuntimeDirectoryMode)" "$root/run/opserve"
inside chown opserve:opserve /run/opserve
# (A chroot has the network of its machine, where the port for metrics may be in use.)
# shellcheck disable=SC2046  # the command has arguments
chroot "$root" setpriv --reuid="$(value User)" --regid="$(value Group)" --clear-groups --no-new-privs --bounding-set=-all \
  --inh-caps=-all $(value ExecStart) --metrics_listen=127.0.0.1:0 2>"$work/log" &
daemon=$!
touch "$work/log"
for _ in $(seq 600); do
  grep -q '"event":"ready"' "$work/log" && break
  kill -0 "$daemon" 2>/dev/null || fail "$(cat "$work/log")"
  sleep 0.1
done
inside stat -c '%A %U:%G %n' /run/opserve/opserve.sock

step "Use it: as a member of the group, and not otherwise"
inside useradd --system member && inside useradd --system stranger && inside adduser --quiet member opserve
as() { inside setpriv --reuid="$1" --regid="$1" --init-groups opserve --target=unix:/run/opserve/opserve.sock "${@:2}"; }
as member status
as member run KlDivBackward --input grad_output=random:scalar --input self=random:64,100 \
  --input target=random:64,100 --verify | tail -n 3
if as stranger --timeout=2s status 2>/dev/null; then fail "a stranger got in"; fi
inside userdel member && inside userdel stranger

step "Write programs: the README's, by CMake and by pkg-config"
# Of the section on C++ all commands but the first, which installs without a package.
# shellcheck disable=SC2016  # the text is the README's
sed -n '/^### From C++$/,/^### From other/p' "$here/../../README.md" | sed -n '/^```sh$/,/^```$/{/^```/!p}' |
  grep -v '^cmake --install' >"$root/tmp/readme.sh"
inside env HOME=/tmp OPSERVE_TARGET=unix:/run/opserve/opserve.sock bash -euo pipefail -c 'cd /tmp && . /tmp/readme.sh' \
  >"$work/said" || fail "$(cat "$work/said")"
[ "$(grep -c '^gradient: 1 -1 0 1 1 1$' "$work/said")" -eq 2 ] || fail "$(cat "$work/said")"
rm -r "$root/tmp/l1_loss" "$root/tmp/readme.sh"

step "The command line's helpers"
gzip -dc "$root/usr/share/man/man8/opserved.8.gz" | head -n 2
inside bash -n /usr/share/bash-completion/completions/opserve

step "Stop"
kill -TERM "$daemon"
wait "$daemon" || fail "the daemon ended with $?"
daemon=
rmdir "$root/run/opserve"  # as systemd does

step "A changed configuration outlives a removal, and nothing a purge"
echo '# changed' >>"$root/etc/opserve/opserved.textproto"
inside apt-get remove -y -qq opserve libopserve-dev >/dev/null 2>&1
[ -f "$root/etc/opserve/opserved.textproto" ] || fail "remove took the configuration"
[ ! -e "$root/usr/bin/opserved" ] || fail "remove left the program"
inside apt-get purge -y -qq opserve >/dev/null 2>&1
list >"$work/after"
diff "$work/before" "$work/after" || fail "purge left (>) or took (<) files"
for file in passwd group; do
  diff "$work/$file" "$root/etc/$file" || fail "purge left something in /etc/$file"
done

step "The same under systemd"
# What boots goes as far as a unit of its own, which runs the script and ends the container with its outcome.
rm "$root/usr/sbin/policy-rc.d"
umount "$root/proc"
cp "$here/booted_root.sh" "$root/usr/local/bin/"
cp "$package" "$root/var/tmp/opserve.deb"  # (what boots has a /tmp of its own)
cat >"$root/etc/systemd/system/booted-root.service" <<'END'
[Service]
Type=idle
ExecStart=/bin/bash -c 'touch /var/tmp/booted; booted_root.sh /var/tmp/opserve.deb >/var/tmp/said 2>&1; systemctl exit $$?'
[Install]
WantedBy=multi-user.target
END
inside apt-get install -y -qq --no-install-recommends systemd-sysv >/dev/null 2>&1
inside systemctl enable -q booted-root.service
code=0
boot || code=$?
if [ ! -e "$root/var/tmp/booted" ]; then
  tail -n 5 "$work/console"
  echo "SKIPPED: systemd does not boot here (see above), so the package was not tried under it"
else
  cat "$root/var/tmp/said"
  [ "$code" -eq 0 ] || fail "booted_root.sh"
  python3 - "$root/var/tmp/journal.json" <<'END'
import json, sys
events = [json.loads(line)["event"] for line in open(sys.argv[1])]
print(f"the journal has {len(events)} lines, all JSON:", *sorted(set(events)))
assert {"ready", "config_reloaded"} <= set(events)
END
fi
echo
echo "passed"
