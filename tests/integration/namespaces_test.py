"""Three daemons in a network of their own: each, HAProxy and the callers behind a link that can be cut.

usage: namespaces_test.py BUILD_DIR

No call is lost when each daemon is restarted, when one is killed, and when one can no longer be reached,
of which nobody is told: behind the client's own balancing, and behind HAProxy. Wants network namespaces
(root, or users who may make them); where the system forbids them it says so and is skipped (exit code 77), but
not where the variable CI is set.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from await_true import await_true
from daemon_pool import Bench, Daemon, HaProxy, get_calls, restart_each, summary

BUILD = pathlib.Path(sys.argv.pop()).resolve()
RATE = os.environ.get("OPSERVE_PROXY_RATE", "150")
SKIPPED = 77
NETWORK = "192.0.2"  # for documentation: nobody's
PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"


def enter_own_network():
    """Runs this program again in a network that has nothing, not even others' loopback."""
    missing = [tool for tool in ("ip", "unshare", "nsenter") if shutil.which(tool, path=PATH) is None]
    isolate = ["unshare", "--net", "--mount", *([] if os.getuid() == 0 else ["--map-root-user"])]
    if missing:
        sys.exit(f"{', '.join(missing)} missing: deploy/install_packages.sh --tests")
    trial = subprocess.run([*isolate, "ip", "link", "add", "trial", "type", "bridge"],
                           capture_output=True, text=True, check=False)
    if trial.returncode != 0:
        print(f"no network namespaces with links here: {trial.stderr.strip()}")
        sys.exit(1 if os.environ.get("CI") else SKIPPED)
    os.execvp(isolate[0], [*isolate, sys.executable, __file__, "--inside", *sys.argv[1:], str(BUILD)])


def ip(*arguments):
    subprocess.run(["ip", *map(str, arguments)], check=True)


class Place:
    """A machine of the network: an address, and a link to the bridge, where the callers are."""

    def __init__(self, number):
        self.address = f"{NETWORK}.{number}"
        self._link = f"link{number}"
        # The namespace lives as long as a process in it, and that as long as this program.
        self._holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; read _"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._holder.stdout.readline()
        self.enter = ["nsenter", f"--net=/proc/{self._holder.pid}/ns/net"]
        ip("link", "add", self._link, "type", "veth", "peer", "name", "eth0", "netns", self._holder.pid)
        ip("link", "set", self._link, "master", "bridge", "up")
        for arguments in (["link", "set", "lo", "up"], ["link", "set", "eth0", "up"],
                          ["addr", "add", f"{self.address}/24", "dev", "eth0"]):
            subprocess.run([*self.enter, "ip", *arguments], check=True)

    def cut_link(self):
        ip("link", "set", self._link, "down")

    def mend_link(self):
        ip("link", "set", self._link, "up")

    def close(self):
        self._holder.communicate()


class SteadyCalls:
    """The program of this name: callers that repeat what may be repeated."""

    def __init__(self, target, threads=8):
        self._process = subprocess.Popen([BUILD / "tests/steady_calls", target, str(threads)],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def answered(self):
        """How many calls have been answered so far."""
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())["answered"]

    def stop(self):
        """The results of all calls."""
        output, _ = self._process.communicate(timeout=120)
        return json.loads(output)

    def close(self):
        self._process.kill()
        self._process.communicate()


def get_answers(loads, more=100):
    """Waits until each of `loads` has had `more` answers."""
    wanted = [(name, load, load.answered() + more) for name, load in loads.items()]
    for name, load, number in wanted:
        await_true(lambda l=load, n=number: l.answered() >= n, f"the load on the {name} gets answers")


class NamespacesTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        ip("link", "set", "lo", "up")
        ip("link", "add", "bridge", "type", "bridge")
        ip("link", "set", "bridge", "up")
        ip("addr", "add", f"{NETWORK}.254/24", "dev", "bridge")
        directory = pathlib.Path(tempfile.mkdtemp(prefix="opserve-test-"))
        cls.addClassCleanup(shutil.rmtree, directory)
        # The name of all three is in the file of names that only this program sees.
        hosts = directory / "hosts"
        hosts.write_text("".join(f"{NETWORK}.{number} npu-pool\n" for number in (1, 2, 3)))
        subprocess.run(["mount", "--bind", hosts, "/etc/hosts"], check=True)
        cls.places, cls.daemons = [], []
        for number in (1, 2, 3, 4):
            cls.places.append(Place(number))
            cls.addClassCleanup(cls.places[-1].close)
        for place in cls.places[:3]:
            cls.daemons.append(Daemon(BUILD, directory, f"{place.address}:8470",
                                      flags=["--insecure_allow_plaintext"], enter=place.enter))
            cls.addClassCleanup(cls.daemons[-1].close)
        proxy = f"{cls.places[3].address}:8470"
        cls.addClassCleanup(HaProxy(directory, proxy, cls.daemons, cls.places[3].enter).close)
        cls.targets = {"name": "dns:///npu-pool:8470",
                       "list": ",".join(daemon.address for daemon in cls.daemons), "proxy": proxy}
        await_true(lambda: subprocess.run([BUILD / "bin/opserve", f"--target={proxy}", "status"],
                                          capture_output=True, check=False).returncode == 0,
                   "the proxy works")

    def start(self, kind, *arguments):
        """A load on each target, once all daemons have calls."""
        loads = {}
        for name, target in self.targets.items():
            loads[name] = kind(*(target if argument is None else argument for argument in arguments))
            self.addCleanup(loads[name].close)
            get_calls(self.daemons)
        return loads

    def check_nothing_was_lost(self, loads):
        for name, load in loads.items():
            outcome = load.stop()
            print(f"{self.id()}, {name}: {json.dumps(outcome)}")
            with self.subTest(name):
                self.assertEqual(outcome["failed"], 0, outcome)

    def test_rolling_restart(self):
        """Of calls that their senders never repeat."""
        loads = self.start(Bench, BUILD, None, RATE, "256")
        restart_each(self.daemons)
        for name, load in loads.items():
            run = load.stop()
            print(f"{self.id()}, {name}: {summary(run)}")
            with self.subTest(name):
                self.assertEqual((run["failed"], run["refused"]), (0, 0), run)
                self.assertGreater(run["answered"], 100)

    def test_a_killed_daemon(self):
        loads = self.start(SteadyCalls, None)
        self.assertEqual(self.daemons[0].end(signal.SIGKILL), -signal.SIGKILL)
        get_answers(loads)
        self.daemons[0].start()
        get_calls(self.daemons)
        self.check_nothing_was_lost(loads)

    def test_a_cut_link(self):
        """The daemon goes on, and knows no more of it than its clients do."""
        loads = self.start(SteadyCalls, None)
        self.places[0].cut_link()
        self.addCleanup(self.places[0].mend_link)
        # Calls wait at the lost daemon until the keepalive ends its connection; then the others answer.
        get_answers(loads)
        self.check_nothing_was_lost(loads)

    def test_a_link_that_is_mended(self):
        loads = self.start(SteadyCalls, None)
        self.places[0].cut_link()
        get_calls(self.daemons[1:], more=100)
        self.places[0].mend_link()
        get_calls(self.daemons)
        self.check_nothing_was_lost(loads)


if __name__ == "__main__":
    if "--inside" not in sys.argv:
        enter_own_network()
    sys.argv.remove("--inside")
    unittest.main()
