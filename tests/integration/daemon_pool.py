"""Several daemons as processes, and load on them, for tests of what a client sees of their ends."""

import grp
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import urllib.request

from await_true import await_true

ROOT = pathlib.Path(__file__).resolve().parents[2]


def haproxy():
    """The path of the program."""
    found = shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin")
    if found is None:
        raise AssertionError("haproxy is missing: deploy/install_packages.sh --tests")
    return found


class Daemon:
    """An opserved at an address ("IPV4:PORT") that stays the same when it is started again.

    Args:
        faults: as OPSERVE_HOST_FAULTS.
        flags: more flags.
        enter: a command that runs another one where the daemon is to be.
    """

    def __init__(self, build, directory, address, *, faults="", flags=(), enter=()):
        self.address = address
        self._host = address.rpartition(":")[0]
        self._directory = directory / address.replace(":", "-")
        self._directory.mkdir()
        self._command = [*enter, build / "bin/opserved", f"--listen={address}",
                         f"--metrics_listen={self._host}:0", f"--admin_listen=unix:{self._directory}/admin",
                         "--drain_delay=2s", "--pinned_pool_bytes=16777216", *flags]
        self._environment = dict(os.environ, OPSERVE_HOST_DEVICES="1", OPSERVE_HOST_FAULTS=faults)
        self.start()

    def start(self):
        with (self._directory / "log").open("w", encoding="utf-8") as log:
            self.process = subprocess.Popen(self._command, stderr=log, env=self._environment)
        await_true(lambda: self.process.poll() is not None or self.log_entry("ready"), "ready")
        self._metrics_port = self.log_entry("ready")["metrics_port"]

    def log_entry(self, event):
        """The last such entry of its log."""
        found = None
        for line in (self._directory / "log").read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            if entry["event"] == event:
                found = entry
        return found

    def requests(self):
        """How many it has answered since its start."""
        with urllib.request.urlopen(f"http://{self._host}:{self._metrics_port}/metrics", timeout=60) as page:
            return sum(float(value) for value in re.findall(
                r"^opserve_requests_total{.*} (\S+)$", page.read().decode(), re.MULTILINE))

    def end(self, number):
        self.process.send_signal(number)
        return self.process.wait(timeout=60)

    def close(self):
        if self.process.poll() is None:
            self.end(signal.SIGKILL)


def get_calls(daemons, more=20):
    """Waits until each of `daemons` has had `more` calls."""
    wanted = [(daemon, daemon.requests() + more) for daemon in daemons]
    for daemon, number in wanted:
        await_true(lambda d=daemon, n=number: d.requests() >= n, f"{daemon.address} gets calls")


def restart_each(daemons):
    """As an upgrade does: one at a time, the next only when this one has taken its place again."""
    for daemon in daemons:
        code = daemon.end(signal.SIGTERM)
        if code != 0:
            raise AssertionError(f"{daemon.address} ended with {code}")
        daemon.start()
        get_calls([daemon])


class Bench:
    """`opserve bench` until stop(): calls none of which is ever repeated by its sender."""

    def __init__(self, build, target, rate, size):
        self._process = subprocess.Popen(
            [build / "bin/opserve", f"--target={target}", "--format=json", "bench", "L1LossBackward",
             f"--shape={size}", f"--rate={rate}", "--duration=10m", "--warmup=100ms"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def stop(self):
        """Its report, a run as in the JSON."""
        self._process.send_signal(signal.SIGINT)
        output, errors = self._process.communicate(timeout=60)
        if not output:
            raise AssertionError(errors)
        return json.loads(output)["runs"][0]

    def close(self):
        self._process.kill()
        self._process.communicate()


def summary(run):
    return (f"{run['answered']} answered, {run['failed']} failed, {run['refused']} refused, "
            f"{run['requests_per_second']:.0f} a second, p99 {run['latency_ns']['p99'] / 1e6:.1f} ms")


def shipped(name, changes):
    """The text of a configuration in deploy/proxy, changed.

    Args:
        changes: pairs of a part of the text and its replacement.
    """
    text = (ROOT / "deploy/proxy" / name).read_text(encoding="utf-8")
    for old, new in changes:
        if old not in text:
            raise AssertionError(f"{name} has no {old}")
        text = text.replace(old, new)
    return text


class Proxy:
    """A proxy as a process, until close(). Its output goes to NAME.log in `directory`."""

    def __init__(self, directory, name, command):
        with (directory / f"{name}.log").open("w", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=directory)

    def close(self):
        # SIGTERM first: nginx's workers would outlive a killed parent.
        self.process.terminate()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class HaProxy(Proxy):
    """HAProxy at `address`, with the configuration that is shipped and these daemons in it, and more hurry.

    Args:
        certificate: of the hardened configuration, the chain and the key in one file; None: the other one.
    """

    def __init__(self, directory, address, daemons, enter=(), certificate=None):
        changes = [(f"npu{i + 1}.example.com:8470", daemon.address) for i, daemon in enumerate(daemons)]
        changes += [("bind :8470 ", f"bind {address} "), (" inter 1s ", " inter 200ms ")]
        if certificate:
            changes += [("/etc/haproxy/opserve.pem", str(certificate))]
        configuration = directory / "haproxy.cfg"
        configuration.write_text(shipped("haproxy_hardened.cfg" if certificate else "haproxy.cfg", changes),
                                 encoding="utf-8")
        super().__init__(directory, "haproxy", [*enter, haproxy(), "-db", "-f", configuration])


class Nginx(Proxy):
    """nginx at `address`, with the configuration that is shipped and these daemons in it."""

    def __init__(self, directory, address, daemons):
        program = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
        if program is None:
            raise AssertionError("nginx is not installed: tests/run.sh provides it")
        changes = [(f"npu{i + 1}.example.com:8470", daemon.address) for i, daemon in enumerate(daemons)]
        # Debian's nginx keeps its temporary files in /var/lib/nginx, which only its package makes.
        places = "".join(f"    {kind}_temp_path {directory / 'nginx'};\n"
                         for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        changes += [("listen 8470 http2", f"listen {address} http2"), ("http {\n", "http {\n" + places)]
        configuration = directory / "nginx.conf"
        configuration.write_text(shipped("nginx.conf", changes), encoding="utf-8")
        # "user": the directory belongs to the user of the test, which nginx's workers may enter.
        user = pwd.getpwuid(os.getuid())
        command = [program, "-e", "stderr", "-c", configuration, "-g",
                   f"daemon off; pid {directory / 'nginx.pid'}; user {user.pw_name} "
                   f"{grp.getgrgid(user.pw_gid).gr_name};"]
        subprocess.run([*command, "-t"], check=True, timeout=60)
        super().__init__(directory, "nginx", command)


class Envoy(Proxy):
    """Envoy at `address`, with the configuration that is shipped and these daemons in its endpoints.yaml."""

    def __init__(self, program, directory, address, daemons):
        self._directory = directory
        host, _, port = address.rpartition(":")
        changes = [("address: 0.0.0.0, port_value: 8470", f"address: {host}, port_value: {port}"),
                   ("path: endpoints.yaml", f"path: {directory / 'endpoints.yaml'}"),
                   ("interval: 1s", "interval: 0.2s")]
        configuration = directory / "envoy.yaml"
        configuration.write_text(shipped("envoy.yaml", changes), encoding="utf-8")
        self.set_daemons(daemons)
        command = [program, "--config-path", configuration, "--disable-hot-restart"]
        subprocess.run([*command, "--mode", "validate"], check=True, timeout=60)
        super().__init__(directory, "envoy", [*command, "--log-level", "warning"])

    def set_daemons(self, daemons):
        """Moves a new endpoints.yaml over the old one."""
        changes = [(f"address: 192.0.2.{i + 1}, port_value: 8470",
                    "address: {}, port_value: {}".format(*daemon.address.split(":")))
                   for i, daemon in enumerate(daemons)]
        new = self._directory / "endpoints.new"
        new.write_text(shipped("endpoints.yaml", changes), encoding="utf-8")
        new.replace(self._directory / "endpoints.yaml")
