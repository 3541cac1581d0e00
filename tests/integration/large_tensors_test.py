"""opserve run with tensors that no message can have: shared memory, resident tensors, chunks.

usage: large_tensors_test.py BUILD_DIR
"""

import json
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

from process_test import OPSERVE, Daemon, save_array

COUNT = 17 * 2**20  # 68 MiB; a message has 64
HEADER_BYTES = 128


class LargeTensorsTest(unittest.TestCase):

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="opserve-test-"))
        self.addCleanup(shutil.rmtree, self.directory)
        self.result = self.directory / "out.npy"
        self.x = self.save("x", first=3, last=-2)
        self.zeros = self.save("zeros", first=0, last=0)

    def start(self, *flags):
        daemon = Daemon(self.directory / "s", *flags)
        self.addCleanup(daemon.process.wait)
        self.addCleanup(daemon.process.kill)
        self.addCleanup(daemon.process.stderr.close)
        return daemon

    def save(self, name, first, last):
        """A large array of zeros but for two elements; on the disk it takes two pages."""
        path = self.directory / f"{name}.npy"
        save_array(path, [])
        header = path.read_bytes().replace(b"(0,), }       ", b"(%d,), }" % COUNT)
        path.write_bytes(header + struct.pack("<f", first))
        os.truncate(path, HEADER_BYTES + 4 * COUNT - 4)
        with path.open("ab") as file:
            file.write(struct.pack("<f", last))
        return path

    def l1(self, *flags, x=None, target=None):
        return ("run", "L1LossBackward", "--input=grad_output=random:scalar",
                f"--input=self={x or self.x}", f"--input=target={target or self.zeros}",
                "--attr=reduction=sum", *flags)

    def succeed(self, daemon, *arguments):
        run = daemon.opserve("--format=json", *arguments)
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)

    def check_result(self):
        """The signs of x - zeros, times one number."""
        elements = self.result.read_bytes()[HEADER_BYTES:]
        self.assertEqual(len(elements), 4 * COUNT)
        (first,), (last,) = (struct.unpack("<f", part) for part in (elements[:4], elements[-4:]))
        self.assertGreater(first, 0)
        self.assertEqual(last, -first)
        self.assertFalse(any(elements[4:-4]))

    def check_tensors(self, daemon, count):
        self.assertEqual(len(self.succeed(daemon, "tensor", "list")["tensors"]), count)

    def test_they_go_through_shared_memory(self):
        daemon = self.start("--enable_shm")
        run = self.succeed(daemon, *self.l1("--shm", f"--output={self.result}", "--verify"))
        self.assertEqual(run["results"][0]["file"], str(self.result))
        self.assertEqual(run["verification"][0]["num_wrong"], 0)
        self.check_result()
        self.check_tensors(daemon, 0)

    def test_an_output_is_kept_beside_shared_inputs(self):
        daemon = self.start("--enable_shm")
        run = self.succeed(daemon, *self.l1("--shm", "--keep=grad_input", f"--output={self.result}"))
        self.check_result()
        self.check_tensors(daemon, 1)
        self.result.unlink()
        self.succeed(daemon, "tensor", "download", run["kept"][0]["handle"], f"--output={self.result}")
        self.check_result()

    def test_they_go_through_a_session_in_chunks(self):
        daemon = self.start()
        run = self.succeed(daemon, *self.l1(f"--output={self.result}", "--verify"))
        self.assertEqual(run["verification"][0]["num_wrong"], 0)
        self.check_result()
        self.check_tensors(daemon, 0)

    def test_where_the_target_lists_several_daemons_too(self):
        daemon = self.start()
        run = subprocess.run([OPSERVE, f"--target={daemon.target},{daemon.target}",
                              *self.l1(f"--output={self.result}")], capture_output=True, text=True, timeout=60)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.check_result()

    def test_shared_memory_is_refused_with_the_flag(self):
        daemon = self.start()
        run = daemon.opserve("--format=json", *self.l1("--shm"))
        self.assertEqual(run.returncode, 1)
        self.assertIn("opserved --enable_shm", json.loads(run.stderr)["error"]["hint"])

    def test_they_are_uploaded_and_results_come_in_chunks(self):
        daemon = self.start()
        x, zeros = (f"tensor:{self.succeed(daemon, 'tensor', 'upload', path)['handle']}"
                    for path in (self.x, self.zeros))
        run = self.succeed(daemon, *self.l1(f"--output={self.result}", x=x, target=zeros))
        self.assertEqual((run["results"][0]["output"], run["results"][0]["shape"]), ("grad_input", [COUNT]))
        self.check_result()
        self.check_tensors(daemon, 2)

        kept = self.succeed(daemon, *self.l1("--keep=grad_input", "--lease=5m", x=x, target=zeros))["kept"][0]
        self.assertEqual((kept["output"], kept["dtype"], kept["shape"], kept["bytes"]),
                         ("grad_input", "FLOAT", [COUNT], 4 * COUNT))
        self.result.unlink()
        self.succeed(daemon, "tensor", "download", kept["handle"], f"--output={self.result}")
        self.check_result()

        refused = daemon.opserve("--format=json", *self.l1("--keep=grad_input", "--lease=1000h", x=x, target=zeros))
        self.assertEqual(refused.returncode, 1)
        self.assertIn("--resident_max_lease", refused.stderr)
        self.check_tensors(daemon, 3)


if __name__ == "__main__":
    unittest.main()
