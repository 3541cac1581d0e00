"""The commands of the READMEs work as they are printed, in the order in which they are printed.

usage: readme_test.py BUILD_DIR
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop()).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]


def blocks(path, language, heading, end):
    """The code blocks of a language between two headings."""
    text = (ROOT / path).read_text()
    section = text[text.index(f"\n{heading}\n"):text.index(f"\n{end}\n")]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


class ReadmeTest(unittest.TestCase):

    def setUp(self):
        """A directory that looks like the source tree to who enters it, and belongs to nobody."""
        directory = tempfile.TemporaryDirectory(prefix="opserve-test-")
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        (self.directory / "build").symlink_to(BUILD)
        (self.directory / "client").symlink_to(ROOT / "client")
        self.environment = dict(os.environ, HOME=str(self.directory), TMPDIR=str(self.directory),
                                XDG_RUNTIME_DIR=str(self.directory), OPSERVE_HOST_DEVICES="2",
                                PATH=f"{BUILD}/bin:/usr/bin:{os.environ['PATH']}")
        for name in ("OPSERVE_TARGET", "OPSERVE_TOKEN"):
            self.environment.pop(name, None)

    def run_script(self, *commands, code=0, **environment):
        script = "\n".join(["set -euo pipefail", "trap 'jobs -p | xargs -r kill' EXIT", *commands])
        run = subprocess.Popen(["bash", "-c", script], cwd=self.directory, env={**self.environment, **environment},
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
        try:
            output, errors = run.communicate(timeout=240)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)  # the daemon that it started, too
            output, errors = run.communicate()
        self.assertEqual(run.returncode, code, f"{script}\n{output}\n{errors}")
        return output

    def start_lines(self):
        """Those of the README that start a daemon and wait for it."""
        return blocks("README.md", "sh", "## Using it", "## Operating it")[0].splitlines()[:2]

    def test_a_daemon_that_does_not_start_ends_the_wait_for_it(self):
        printed = self.run_script(*self.start_lines(), code=1, OPSERVE_HOST_DEVICES="none")
        self.assertIn("OPSERVE_HOST_DEVICES", printed)

    def test_using_it(self):
        printed = self.run_script(*blocks("README.md", "sh", "## Using it", "## Operating it"))
        for text in ("KlDivBackward", " is right: ", "plan cache: "):
            self.assertIn(text, printed)
        self.assertTrue((self.directory / "grad.npy").exists())
        # The C++ program, built by CMake and by pkg-config: signs of differences.
        self.assertEqual(printed.count("gradient: 1 -1 0 1 1 1"), 2, printed)

    def test_programs_for_the_host_cann(self):
        printed = self.run_script(
            *blocks("ops/host_cann/README.md", "sh", "## Writing programs", "## Environment"))
        # By pkg-config and by set_env.sh.
        self.assertEqual(printed.count("2 devices, SoC Ascend"), 2, printed)

    def test_an_operator_of_your_own(self):
        (self.directory / "ops").symlink_to(ROOT / "ops")
        heading, end = "## Serve your own operator", "## What holds for packs"
        build, serve = blocks("ops/PACKS.md", "sh", heading, end)
        [call] = blocks("ops/PACKS.md", "python", heading, end)
        (self.directory / "call.py").write_text(call)
        printed = self.run_script(build, serve, f"PYTHONPATH=client/python {sys.executable} call.py")
        self.assertIn("weighted_sum.textproto: 1 operators can be served\n", printed)
        self.assertIn("[[1.5 1.5]\n [1.5 1.5]]", printed)

    def test_dependencies_are_listed_by_the_names_that_cmake_looks_for(self):
        text = (ROOT / "README.md").read_text()
        section = text[text.index("\n### Building on other systems\n"):text.index("\n## Using it\n")]
        wanted = set()
        for room in (".", "client/cli", "proto"):
            rules = (ROOT / room / "CMakeLists.txt").read_text()
            wanted |= set(re.findall(r"find_package\(([\w-]+)", rules))
            wanted |= set(re.findall(r"pkg_check_modules\(.* (lib\w+)\)", rules))
        wanted -= {"PkgConfig", "Threads"}
        self.assertGreater(len(wanted), 10)
        self.assertEqual([name for name in sorted(wanted) if f"`{name}`" not in section], [])

    def test_descriptors_for_a_transcoding_proxy(self):
        installed = self.directory / "opserve/share/opserve"
        installed.mkdir(parents=True)
        (installed / "proto").symlink_to(ROOT / "proto")
        self.run_script(*blocks("server/kserve/README.md", "sh", "## HTTP", "## What is what"))
        self.assertIn(b"GRPCInferenceService", (self.directory / "inference.pb").read_bytes())

    def test_python(self):
        page = "client/python/README.md"
        [quick_start] = blocks(page, "sh", "## Quick start", "## Tensors")
        [region] = blocks(page, "python", "## Tensors", "## Ways to call")
        synchronous, _ = blocks(page, "python", "## Ways to call", "## Errors")
        [errors] = blocks(page, "python", "## Errors", "## Traces")
        (self.directory / "blocks.py").write_text("\n".join([
            "import numpy as np, opserve",
            "client = opserve.Client()",
            "log_q = p = np.full((4, 5), 0.2, 'f4')",
            region, synchronous, errors]))
        printed = self.run_script(
            self.start_lines()[0].replace("opserved", "opserved --enable_shm", 1), self.start_lines()[1],
            quick_start.replace("/tmp/", f"{self.directory}/"),
            f"{self.directory}/opserve-venv/bin/python blocks.py")
        self.assertIn("-0.25", printed)  # -p / 2
        self.assertIn("L1LossBackward target 161002 invalid", printed)


if __name__ == "__main__":
    unittest.main()
