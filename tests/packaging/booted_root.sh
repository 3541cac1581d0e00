#!/usr/bin/env bash
# The Debian package where systemd runs: installed, started, watched, used, reloaded, upgraded, removed.
#
# debian_root.sh runs this inside the root it has booted, as root: usage: booted_root.sh PACKAGE.deb
# The package's dependencies are there. The journal of the service is left in /var/tmp/journal.json.
set -euo pipefail

package=$1
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive OPSERVE_TARGET=unix:/run/opserve/opserve.sock
trap 'echo "FAILED: line $LINENO"; systemctl status --no-pager opserved; journalctl --no-pager -n 30' ERR
step() { printf '\n-- %s\n' "$1"; }
property() { systemctl show --value -p "$1" opserved; }
# Until a command succeeds. A minute is plenty for all that is waited for here.
await() {
  for _ in $(seq 600); do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.1
  done
  echo "not within a minute: $*"
  return 1
}
quietly() { "$@" >/var/tmp/output 2>&1 || { cat /var/tmp/output; return 1; }; }

step "Installing starts it"
quietly dpkg -i "$package"
[ "$(systemctl is-active opserved)" = active ]
[ "$(systemctl is-enabled opserved)" = enabled ]
pid=$(property MainPID)
echo "$(property Type), $(property User), watchdog $(property WatchdogUSec), pid $pid"
[ "$(property Type) $(property WatchdogUSec)" = "notify 1min" ]

step "It is confined"
status() { sed -n "s/^$1:[[:space:]]*//p" "/proc/$pid/status"; }
[ "$(status NoNewPrivs) $(status Seccomp)" = "1 2" ]
[ "$(status CapEff) $(status CapBnd)" = "0000000000000000 0000000000000000" ]
[ "$(stat -c %U "/proc/$pid")" = opserve ]
inside_unit() { nsenter --target="$pid" --mount -- "$@"; }
for place in /usr /etc /var; do
  if inside_unit touch "$place/opserve-was-here" 2>/dev/null; then echo "it can write to $place"; false; fi
done
[ -z "$(inside_unit find /home /root -mindepth 1)" ]
systemd-analyze security --no-pager opserved | tail -n 1

step "Members of its group use it, others do not"
useradd --system member
useradd --system stranger
adduser --quiet member opserve
runuser -u member -- opserve status
runuser -u member -- opserve run KlDivBackward --input grad_output=random:scalar --input self=random:64,100 \
  --input target=random:64,100 --verify | tail -n 3
if runuser -u stranger -- opserve --timeout=2s status 2>/dev/null; then echo "a stranger got in"; false; fi
opserve admin drain 0
opserve admin resume 0
if runuser -u member -- opserve --timeout=2s admin status 2>/dev/null; then echo "a member is an administrator"; false; fi

step "A reload takes a new configuration, and refuses a broken one"
reloads() { journalctl -u opserved -o cat --no-pager | grep -c "\"event\":\"$1\""; }
echo 'log_level: "debug"' >>/etc/opserve/opserved.textproto
systemctl reload opserved
await reloads config_reloaded
echo 'nonsense' >>/etc/opserve/opserved.textproto
systemctl reload opserved
await reloads config_not_reloaded
sed -i '/^nonsense$/d' /etc/opserve/opserved.textproto
[ "$(property MainPID)" = "$pid" ]

step "The watchdog: signs of life are seen; a daemon that stands still is replaced"
mkdir -p /run/systemd/system/opserved.service.d
printf '[Service]\nWatchdogSec=2s\nTimeoutAbortSec=1s\n' >/run/systemd/system/opserved.service.d/hurry.conf
systemctl daemon-reload
systemctl restart opserved
last=$(property WatchdogTimestampMonotonic)
for _ in 1 2 3; do
  sign_came() { [ "$(property WatchdogTimestampMonotonic)" != "$last" ]; }
  await sign_came
  last=$(property WatchdogTimestampMonotonic)
done
pid=$(property MainPID)
kill -STOP "$pid"
is_replaced() { [ "$(property MainPID)" != "$pid" ] && [ "$(property NRestarts)" = 1 ] && systemctl is-active opserved; }
await is_replaced
journalctl -u opserved -o cat --no-pager | grep -i watchdog | head -n 1
runuser -u member -- opserve status >/dev/null
rm -r /run/systemd/system/opserved.service.d
systemctl daemon-reload

step "An upgrade restarts it"
systemctl restart opserved
pid=$(property MainPID)
quietly dpkg -i --force-confold "$package"
[ "$(systemctl is-active opserved)" = active ]
[ "$(property MainPID)" != "$pid" ]
runuser -u member -- opserve status >/dev/null

step "It stops cleanly, with nothing cut off"
systemctl stop opserved
echo "$(property ActiveState), $(property Result), exit code $(property ExecMainStatus)"
[ "$(property ActiveState) $(property Result) $(property ExecMainStatus)" = "inactive success 0" ]
[ ! -e /run/opserve ]

step "Removing stops it"
systemctl start opserved
pid=$(property MainPID)
journalctl -u opserved -t opserved -o cat --no-pager >/var/tmp/journal.json
userdel member
userdel stranger
quietly apt-get purge -y -qq opserve
[ ! -e "/proc/$pid" ]
[ "$(systemctl show --value -p LoadState opserved)" = not-found ]
