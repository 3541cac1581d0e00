"""Daemons that a Prometheus watches, with the clients that bring about what it sees."""

import collections
import contextlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time

from process_test import Daemon, OPSERVE, ROOT

sys.path[:0] = [str(ROOT / room) for room in ("client/python", "tests/hardening")]
import numpy as np

import opserve
import raw_peer


class Watched:
    """A daemon that does not stop for its log, and what its clients do until the end."""

    def __init__(self, directory, name, flags=(), faults="", config="", is_log_read=True):
        self.job = f"opserve-{name}"
        self.directory = directory / name
        self.directory.mkdir()
        self.config = self.directory / "config"
        # A file without a setting is refused.
        self.config.write_text(config or 'log_level: "info"')
        self.daemon = Daemon(self.directory / "socket", f"--config={self.config}", *flags,
                             faults=faults)
        self.ended = threading.Event()
        self.clients = []
        self.threads = []
        if is_log_read:
            self.in_background(lambda: self.daemon.process.stderr.read())

    def in_background(self, function):
        thread = threading.Thread(target=function)
        thread.start()
        self.threads.append(thread)

    def load(self, *arguments):
        self.repeat(OPSERVE, f"--target={self.daemon.target}", *arguments)

    def trim(self):
        """Has device 0 give back what its pool does not use, again and again."""
        self.repeat(OPSERVE, "admin", "trim", "0", f"--admin-target={self.daemon.admin_target}")

    def keep_tensor(self):
        """Uploads a tensor that stays."""
        with opserve.Client(self.daemon.target) as client:
            client.upload(np.ones(2, "f4"))

    def drain(self):
        """Drains device 0, the only one."""
        self.start_program(OPSERVE, "admin", "drain", "0", "--yes", f"--admin-target={self.daemon.admin_target}").wait()

    def repeat(self, *command):
        """Runs the command again whenever it ends."""

        def run():
            while not self.ended.is_set():
                self.start_program(*command).wait()
                self.ended.wait(0.5)

        self.in_background(run)

    def start_client(self, *arguments):
        return self.start_program(OPSERVE, f"--target={self.daemon.target}", *arguments)

    def start_program(self, *command):
        """Runs until the end."""
        client = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.clients.append(client)
        if self.ended.is_set():
            client.kill()
        return client

    def read_at_times(self, *arguments):
        """Clients that take their results for a moment, and then nothing for longer."""

        def run():
            clients = [self.start_client(*arguments) for _ in range(3)]
            while not self.ended.wait(0.5):
                for client in clients:
                    client.send_signal(signal.SIGSTOP)
                self.ended.wait(2)
                for client in clients:
                    client.send_signal(signal.SIGCONT)

        self.in_background(run)

    def await_request(self):
        end = time.monotonic() + 60
        while not re.search(r"^opserve_requests_total{.*} [1-9]", self.daemon.metrics(), re.MULTILINE):
            if time.monotonic() > end:
                raise AssertionError(f"{self.job} gets no request")
            self.ended.wait(0.1)

    def connect(self):
        """Opens more connections than there may be, which say nothing, until the end."""

        def run():
            with contextlib.ExitStack() as sockets:
                held = collections.deque()  # so that each is there when the next ones come
                while not self.ended.wait(0.05):
                    held.append(sockets.enter_context(socket.socket(socket.AF_UNIX)))
                    held[-1].connect(self.daemon.target.removeprefix("unix:"))
                    if len(held) > 3:
                        held.popleft().close()

        self.in_background(run)

    def send_again(self, frames):
        """Sends these bytes on one connection after another, each left when no answer comes any more."""
        address = raw_peer.Address(path=self.daemon.target.removeprefix("unix:"))

        def run():
            while not self.ended.wait(0.1):
                with contextlib.suppress(OSError), address.connect() as connection:
                    connection.settimeout(0.3)
                    connection.sendall(frames)
                    while connection.recv(4096) and not self.ended.is_set():
                        pass

        self.in_background(run)

    def reload(self, text):
        """Has the daemon read another configuration."""
        self.config.write_text(text)
        self.daemon.process.send_signal(signal.SIGHUP)

    def stop(self):
        self.ended.set()
        for client in list(self.clients):
            client.kill()
        self.daemon.process.kill()
        self.daemon.process.wait()
        for thread in self.threads:
            thread.join()
        for client in self.clients:
            client.wait()
        self.daemon.process.stderr.close()
