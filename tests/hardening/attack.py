"""Mounts attacks on opserved beside a healthy tenant, and prints a table of what they cost it.

usage: attack.py BUILD_DIR [--whole] [--only=TEXT]

Each row has the resident memory of the daemon before the attack, at its peak and afterwards, the healthy tenant's p50
and p99 while the bytes go to the daemon, with --whole also while the same bytes go to a socket that discards them, and
its failed calls. The exit code is 1 if a call failed, if memory grew by more than its bound (128 MiB for strangers) or
strangers' memory was kept, or if the daemon did not survive; with --whole (64 connections, longer) also if p99 exceeds
five times its value beside the discarding socket.

Everything is bounded in count and time, and stays on loopback and Unix sockets.
"""

import argparse
import hashlib
import json
import os
import pathlib
import selectors
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / room) for room in ("client/python", "tests")]

import attacks  # noqa: E402
import certificates  # noqa: E402
import prober  # noqa: E402
import raw_peer  # noqa: E402

MIB = 1 << 20
# The allocator keeps up to 64 MiB at the top of its heap (server/main.cc).
MOST_KEPT = 64 * MIB
MOST_P99_RATIO = 5.0
SETTLE_SECONDS = 30


class Daemon:
    """opserved with two tenants, on one listener; its log goes to a file."""

    def __init__(self, build, listener):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="opserve-attack-"))
        tenants = "".join(
            f'tenant {{ name: "{name}" token_sha256: "{hashlib.sha256(name.encode()).hexdigest()}" }}\n'
            for name in ("healthy", "attacker"))
        (self.directory / "config").write_text(tenants)
        flags = []
        ca_file = ""
        if listener == "unix":
            listen = f"unix:{self.directory}/socket"
        else:
            listen = "127.0.0.1:0"
        if listener == "tls":
            self._make_certificate()
            ca_file = str(self.directory / "cert.pem")
            flags = [f"--tls_cert={ca_file}", f"--tls_key={self.directory}/key.pem"]
        self._log = (self.directory / "log").open("wb")
        self.process = subprocess.Popen(
            [build / "bin/opserved", f"--listen={listen}", f"--config={self.directory}/config",
             "--metrics_listen=127.0.0.1:0", f"--admin_listen=unix:{self.directory}/admin", "--drain_delay=0s",
             "--grpc_memory_quota_bytes=67108864", *flags],
            stderr=self._log, env=dict(os.environ, OPSERVE_HOST_DEVICES="2"))
        ready = self._await_ready()
        self.metrics_port = ready["metrics_port"]
        self.address = (raw_peer.Address(path=f"{self.directory}/socket") if listener == "unix" else
                        raw_peer.Address(port=int(ready["listen"][0].rpartition(":")[2]), ca_file=ca_file))

    def _make_certificate(self):
        certificates.make_certificate(self.directory / "cert.pem", self.directory / "key.pem", "daemon.test",
                                      alternatives="IP:127.0.0.1")

    def _await_ready(self):
        end = time.monotonic() + 60
        while time.monotonic() < end and self.process.poll() is None:
            for line in (self.directory / "log").read_text(errors="replace").splitlines():
                if line.startswith("{") and json.loads(line)["event"] == "ready":
                    return json.loads(line)
            time.sleep(0.02)
        raise AssertionError((self.directory / "log").read_text(errors="replace"))

    def resident_bytes(self):
        try:
            pages = pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        except (FileNotFoundError, IndexError):
            return 0
        return int(pages) * os.sysconf("SC_PAGESIZE")

    def close(self):
        """Whether it still ran, and how long its end took."""
        was_alive = self.process.poll() is None
        begin = time.monotonic()
        if was_alive:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=45)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(timeout=10)
        self._log.close()
        shutil.rmtree(self.directory)
        return was_alive, time.monotonic() - begin


class Discarder:
    """A listener that reads and throws away, in a thread; where the bytes of a flood go for comparison."""

    def __init__(self, listener, directory):
        self._context = None
        if listener == "unix":
            path = str(directory / "discard")
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.bind(path)
            self.address = raw_peer.Address(path=path)
        else:
            self._socket = socket.socket()
            self._socket.bind(("127.0.0.1", 0))
            ca_file = ""
            if listener == "tls":
                ca_file = str(directory / "cert.pem")
                self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                self._context.load_cert_chain(ca_file, directory / "key.pem")
                self._context.set_alpn_protocols(["h2"])
            self.address = raw_peer.Address(port=self._socket.getsockname()[1], ca_file=ca_file)
        self._socket.listen(256)
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        selector = selectors.DefaultSelector()
        self._socket.settimeout(0)
        selector.register(self._socket, selectors.EVENT_READ)
        buffer = bytearray(1 << 18)
        while not self._is_stopped:
            for key, _ in selector.select(timeout=0.1):
                if key.fileobj is self._socket:
                    try:
                        connection, _ = self._socket.accept()
                        if self._context is not None:
                            connection.settimeout(5)
                            connection = self._context.wrap_socket(connection, server_side=True)
                        connection.setblocking(False)
                        selector.register(connection, selectors.EVENT_READ)
                    except OSError:
                        pass
                    continue
                try:
                    size = key.fileobj.recv_into(buffer)
                except (BlockingIOError, ssl.SSLWantReadError):
                    continue
                except OSError:
                    size = 0
                if size == 0:
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
        selector.close()

    def close(self):
        self._is_stopped = True
        self._thread.join(timeout=10)
        self._socket.close()


def _run_attack(index, target, results):
    try:
        results.put(attacks.ATTACKS[index].run(target))
    except Exception as error:  # pylint: disable=broad-except; the table says how the attack ended
        results.put(f"{type(error).__name__}: {error}"[:120])


def run_beside(attack, target, seconds, daemon, is_fresh):
    """Runs the attack beside a prober.

    Returns latencies, failures, the peak of resident memory, the attack's text, and whether metrics were answered
    half-way.
    """
    probe = prober.Prober(daemon.address, "healthy", is_fresh)
    results = prober.PROCESSES.Queue()
    process = prober.PROCESSES.Process(
        target=_run_attack, args=(attacks.ATTACKS.index(attack), target, results), daemon=True)
    process.start()
    peak = 0
    begin = time.monotonic()
    has_metrics = None
    while process.is_alive() and time.monotonic() < begin + seconds + 120:
        peak = max(peak, daemon.resident_bytes())
        process.join(timeout=0.02)
        if has_metrics is None and time.monotonic() > begin + seconds / 2:
            has_metrics = metrics_answer(daemon)
    if process.is_alive():
        process.kill()
    latencies, failures = probe.stop()
    return latencies, failures, peak, results.get(timeout=10) if not results.empty() else "did not end", (
        has_metrics)


def await_memory(daemon, bound):
    """Resident memory once it is within `bound`, or after 30 s."""
    end = time.monotonic() + SETTLE_SECONDS
    while daemon.resident_bytes() > bound and time.monotonic() < end:
        time.sleep(0.2)
    return daemon.resident_bytes()


def warm_up(daemon):
    """Small calls, so that pools and threads are there before memory is read."""
    probe = prober.Prober(daemon.address, "healthy", is_fresh=False)
    latencies, failures = probe.stop()
    assert latencies and not failures, failures


def metrics_answer(daemon):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{daemon.metrics_port}/metrics", timeout=5) as page:
            return b"opserve_requests_total" in page.read()
    except OSError:
        return False


def mount(attack, listener, options):
    """One row of the table, and its faults."""
    seconds = max(options.seconds, 2 * prober.CALL_SECONDS) if attack.holds else options.seconds
    daemon = Daemon(options.build, listener)
    faults = []
    try:
        target = attacks.Target(address=daemon.address, metrics_port=daemon.metrics_port, token="attacker",
                                seconds=seconds, connections=options.connections,
                                most_bytes=options.most_bytes)
        warm_up(daemon)
        reference = None
        if attack.is_flood and options.whole:
            discarder = Discarder(listener, daemon.directory)
            elsewhere = attacks.Target(**{**vars(target), "address": discarder.address})
            latencies, *_ = run_beside(attack, elsewhere, seconds, daemon, is_fresh=False)
            reference = (prober.quantile(latencies, 0.5), prober.quantile(latencies, 0.99))
            discarder.close()
        before = daemon.resident_bytes()
        latencies, failures, peak, text, has_metrics = run_beside(
            attack, target, seconds, daemon, attack.fresh_connections)
        after = await_memory(daemon, before + MOST_KEPT) if attack.is_strangers else daemon.resident_bytes()
        ours = (prober.quantile(latencies, 0.5), prober.quantile(latencies, 0.99))
    finally:
        was_alive, end_seconds = daemon.close()
    if not was_alive:
        faults.append("the daemon ended")
    if end_seconds > 40:
        faults.append(f"its end took {end_seconds:.0f} s")
    if peak - before > attack.most_growth_mib * MIB:
        faults.append(f"memory grew by {(peak - before) // MIB} MiB")
    if after - before > MOST_KEPT and attack.is_strangers:
        faults.append(f"{(after - before) // MIB} MiB were kept")
    if has_metrics is False:
        faults.append("metrics were not answered")
    if failures:
        faults.append(f"{len(failures)} calls of the healthy tenant failed, first: {failures[0]}")
    if reference and ours[1] > MOST_P99_RATIO * reference[1]:
        faults.append(f"p99 is {ours[1] / reference[1]:.1f} times that beside a discarding socket")
    row = [attack.name, listener, text, before // MIB, peak // MIB, after // MIB,
           *(f"{value * 1e3:.1f}" for value in reference or ()), *(() if reference else ("", "")),
           *(f"{value * 1e3:.1f}" for value in ours), f"{len(failures)} of {len(latencies)}"]
    return row, faults


COLUMNS = ["attack", "on", "attacker", "MiB before", "peak", "after", "p50 ms beside discard", "p99", "p50 ms", "p99",
           "failed"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--whole", action="store_true", help="64 connections, 15 s each, p99 judged")
    parser.add_argument("--only", default="", help="attacks whose name or listener has this text")
    options = parser.parse_args()
    options.seconds = 15 if options.whole else 2
    options.connections = 64 if options.whole else 16
    options.most_bytes = (4096 if options.whole else 512) * MIB
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:3])  # where that process looks for them
    prober.PROCESSES.set_forkserver_preload(["attacks", "prober"])
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    passed = failed = 0
    complaints = []
    for attack in attacks.ATTACKS:
        for listener in attack.listeners:
            if options.only not in f"{attack.name} {listener}":
                continue
            row, faults = mount(attack, listener, options)
            print(f"| {' | '.join(str(cell) for cell in row)} |", flush=True)
            complaints += [f"{attack.name} on {listener}: {fault}" for fault in faults]
            failed += bool(faults)
            passed += not faults
    for complaint in complaints:
        print(f"FAILED {complaint}")
    print(f"\n{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
