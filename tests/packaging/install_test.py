"""What `cmake --install` installs, and that it works where it was put.

usage: install_test.py BUILD_DIR
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop()).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]

EXPECTED = """
bin/opserve
bin/opserved
include/opserve/cann/acl/acl.h
include/opserve/cann/aclnnop/aclnn_kl_div_backward.h
include/opserve/cann/opserve/host_cann.h
include/opserve/client.h
include/opserve/shared_memory.h
include/opserve/v1/operator_service.pb.h
lib/opserve/host-cann/bin/setenv.bash
lib/opserve/host-cann/include/acl/acl.h
lib/opserve/host-cann/lib64/libascendcl.so
lib/opserve/host-cann/libacl_rt.so
lib/opserve/host-cann/libascendcl.so
lib/opserve/host-cann/libcust_opapi.so
lib/opserve/host-cann/libnnopbase.so
lib/opserve/host-cann/libopapi.so
lib/opserve/host-cann/libopapi_math.so
lib/opserve/host-cann/libopapi_nn.so
lib/opserve/host-cann/libopserve_kernels.so
lib/opserve/host-cann/runtime/include/acl/acl.h
lib/opserve/host-cann/runtime/lib64/libopapi.so
lib/opserve/host-cann/set_env.sh
lib/opserve/host-cann/tikcpp/ascendc_kernel_cmake/ascendc.cmake
lib/systemd/system/opserved.service
share/bash-completion/completions/opserve
share/doc/opserve/FUNCTIONS.md
share/doc/opserve/OPERATING.md
share/doc/opserve/OPERATOR_PACKS.md
share/doc/opserve/README.md
share/doc/opserve/LICENSE
share/doc/opserve/RUNBOOK.md
share/doc/opserve/examples/ascend.conf
share/doc/opserve/examples/grafana/overview.json
share/doc/opserve/examples/one_machine.textproto
share/doc/opserve/examples/operator_pack/weighted_sum.cc
share/doc/opserve/examples/operator_pack/weighted_sum.textproto
share/doc/opserve/examples/opserved.json
share/doc/opserve/examples/prometheus/prometheus.yml
share/doc/opserve/examples/prometheus/rules/alerts.yml
share/doc/opserve/examples/proxy/haproxy.cfg
share/doc/opserve/examples/proxy/haproxy_hardened.cfg
share/doc/opserve/examples/shared_pool.textproto
share/fish/vendor_completions.d/opserve.fish
share/man/man1/opserve.1
share/man/man8/opserved.8
share/opserve/proto/opserve/v1/operator_service.proto
""".split()


class InstallTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory(prefix="opserve-test-")
        cls.addClassCleanup(cls.directory.cleanup)
        cls.prefix = pathlib.Path(cls.directory.name)
        run = subprocess.run(["cmake", "--install", BUILD, "--prefix", cls.prefix], capture_output=True,
                             text=True, timeout=300, check=False)
        if run.returncode != 0:
            raise AssertionError(run.stderr)

    def read(self, path):
        return (self.prefix / path).read_text(encoding="utf-8")

    def run_installed(self, program, *arguments):
        run = subprocess.run([self.prefix / "bin" / program, *arguments], capture_output=True, text=True,
                             timeout=60, check=False)
        return run.returncode, run.stdout

    def test_everything_is_there(self):
        self.assertEqual([path for path in EXPECTED if not (self.prefix / path).is_file()], [])
        self.assertTrue(list(self.prefix.glob("share/zsh/*/_opserve")))
        for name in ("cmake/opserve/opserve-config-version.cmake", "cmake/opserve/opserve-config.cmake",
                     "libopserve_client.a", "pkgconfig/opserve-cann.pc", "pkgconfig/opserve.pc"):
            self.assertTrue(list(self.prefix.glob(f"lib/**/{name}")), name)

    def test_nothing_of_the_build_is_left_in_texts(self):
        for path in self.prefix.rglob("*"):
            if path.is_file() and path.suffix not in (".a", ".so", "") and "bin" not in path.parts:
                self.assertNotIn(str(BUILD), path.read_text(encoding="utf-8"), path)

    def test_headers_of_the_client_include_no_header_that_is_not_installed(self):
        include = self.prefix / "include"
        headers = [path for path in (include / "opserve").rglob("*.h") if "cann" not in path.parts]
        self.assertGreater(len(headers), 20)
        for path in headers:
            for name in re.findall(r'^#include "([^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE):
                of_dependency = re.match("(absl|google|grpcpp)/", name)
                self.assertTrue(of_dependency or (include / name).is_file(), f"{path} includes {name}")

    def test_headers_of_the_client_compile_in_any_order(self):
        headers = sorted(path.name for path in (self.prefix / "include/opserve").glob("*.h"))
        self.assertIn("client.h", headers)
        for order in (headers, headers[::-1]):
            run = subprocess.run(
                ["g++", "-std=c++20", "-fsyntax-only", "-Wall", "-Werror", "-x", "c++",
                 f"-I{self.prefix}/include", "-"],
                input="".join(f"#include <opserve/{name}>\n" for name in order),
                capture_output=True, text=True, timeout=120, check=False)
            self.assertEqual((run.returncode, run.stderr), (0, ""), order)

    def test_find_package_refuses_another_minor_version(self):
        with tempfile.TemporaryDirectory(prefix="opserve-test-") as directory:
            (pathlib.Path(directory) / "CMakeLists.txt").write_text(
                "cmake_minimum_required(VERSION 3.16)\nproject(asks LANGUAGES NONE)\n"
                "find_package(opserve 0.2 REQUIRED)\n", encoding="utf-8")
            run = subprocess.run(["cmake", "-S", directory, "-B", f"{directory}/build",
                                  f"-DCMAKE_PREFIX_PATH={self.prefix}"], capture_output=True, text=True,
                                 timeout=60, check=False)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("opserve-config.cmake, version: 0.1.0", run.stderr)

    def test_paths_in_pages_exist(self):
        pages = sorted((self.prefix / "share/doc/opserve").rglob("*.md"))
        self.assertGreater(len(pages), 8)
        of_tree = re.compile(r"(client|deploy|kernels|ops|proto|server|tests)/|\.\.?/|(?!SOURCE/).*\.md$|examples/")
        checked = 0
        for page in pages:
            text = page.read_text(encoding="utf-8")
            prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
            links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose)
            quoted = re.findall(r"`([^`\s]+)`", prose)
            in_source = re.findall(r"(?<!\w)SOURCE/([\w./*-]*[\w*])", text)
            for place in [*links, *filter(of_tree.match, quoted)]:
                self.assertTrue(list(page.parent.glob(place)) or (page.parent / place).exists(),
                                f"{page} names {place}")
                checked += 1
            for place in in_source:
                self.assertTrue(list(ROOT.glob(place)), f"{page} names SOURCE/{place}")
            for header in (name for name in quoted if re.match(r"opserve/.*\.h$", name)):
                self.assertTrue(list((self.prefix / "include").glob(header)) or
                                (self.prefix / "include/opserve/cann" / header).is_file(), header)
        self.assertGreater(checked, 20)

    def test_a_vendor_style_build_finds_the_host_cann_by_set_env(self):
        """As the samples of CANN are built: ASCEND_HOME_PATH, and its include and lib64."""
        programs = ROOT / "tests/conformance/programs"
        with tempfile.TemporaryDirectory(prefix="opserve-test-") as directory:
            script = "\n".join([
                "set -euo pipefail",
                f"source {self.prefix}/lib/opserve/host-cann/set_env.sh",
                f"source {self.prefix}/lib/opserve/host-cann/set_env.sh",  # again: nothing twice
                'echo "$ASCEND_HOME_PATH $ASCEND_TOOLKIT_HOME $LD_LIBRARY_PATH"',
                f"cmake -S {programs} -B {directory} >&2",
                f"cmake --build {directory} >&2",
                f"{directory}/cann_programs"])
            environment = {name: value for name, value in os.environ.items()
                           if not name.startswith("ASCEND_") and name != "LD_LIBRARY_PATH"}
            run = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=240,
                                 check=False, env=environment)
        self.assertEqual(run.returncode, 0, run.stderr)
        home = f"{self.prefix}/lib/opserve/host-cann"
        variables, *results, count = run.stdout.splitlines()
        self.assertEqual(variables, f"{home} {home} {home}/lib64")
        self.assertEqual([line for line in results if not line.endswith(": ok")], [])
        self.assertEqual(count, f"{len(results)} programs")
        self.assertGreaterEqual(len(results), 24)

    def test_build_files_of_vendor_samples_find_setenv_and_ascendc_cmake(self):
        """Older samples source bin/setenv.bash and include ascendc.cmake, also without kernels."""
        for call, code, message in (
                ("", 0, ""),
                ("ascendc_library(mine SHARED mine.cpp)", 1, "mine: the host CANN has no compiler")):
            with self.subTest(call), tempfile.TemporaryDirectory(prefix="opserve-test-") as directory:
                (pathlib.Path(directory) / "CMakeLists.txt").write_text(
                    "cmake_minimum_required(VERSION 3.16)\nproject(sample LANGUAGES NONE)\n"
                    f"include($ENV{{ASCEND_HOME_PATH}}/tikcpp/ascendc_kernel_cmake/ascendc.cmake)\n{call}\n",
                    encoding="utf-8")
                script = (f"set -euo pipefail; source {self.prefix}/lib/opserve/host-cann/bin/setenv.bash; "
                          f"cmake -S {directory} -B {directory}/build")
                run = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(run.returncode, code, run.stderr)
            self.assertIn(message, run.stderr)

    def test_the_daemon_finds_its_libraries(self):
        code, text = self.run_installed("opserved", "--validate_config")
        self.assertEqual(code, 0)
        self.assertIn("listen", text)
        with tempfile.TemporaryDirectory() as directory:
            daemon = subprocess.Popen(
                [self.prefix / "bin/opserved", f"--listen=unix:{directory}/s", "--metrics_listen=none",
                 "--drain_delay=0s"], stderr=subprocess.PIPE, text=True,
                env=dict(os.environ, OPSERVE_HOST_DEVICES="1"))
            try:
                self.assertIn(f'"{self.prefix}/lib/opserve/host-cann"',
                              next(line for line in daemon.stderr if '"event":"ready"' in line))
                self.assertEqual(self.run_installed("opserve", f"--target=unix:{directory}/s", "status")[0],
                                 0)
            finally:
                daemon.terminate()
                daemon.communicate(timeout=60)

    def test_manuals_say_all_flags(self):
        _, usage = self.run_installed("opserved", "--help")
        page = self.read("share/man/man8/opserved.8").replace("\\-", "-")
        for flag in re.findall(r"^    (--\w+) ", usage, re.MULTILINE):
            self.assertIn(f".B {flag}\n", page)
        page = self.read("share/man/man1/opserve.1").replace("\\-", "-")
        for part in (".SS tensor upload\n", ".SS bench\n", ".B --transport \\fIunary|session|shm\\fR\n"):
            self.assertIn(part, page)
        self.assertNotIn(".SS complete\n", page)
        for manual in ("share/man/man1/opserve.1", "share/man/man8/opserved.8"):
            run = subprocess.run(["man", "--warnings", "-l", self.prefix / manual], capture_output=True,
                                 text=True, timeout=60, check=False, env=dict(os.environ, LC_ALL="C.UTF-8"))
            self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_the_unit_starts_what_was_installed_with_flags_that_exist(self):
        unit = self.read("lib/systemd/system/opserved.service")
        program, *arguments = re.search(r"^ExecStart=(.+)$", unit, re.MULTILINE).group(1).split()
        self.assertEqual(program, str(self.prefix / "bin/opserved"))
        _, usage = self.run_installed("opserved", "--help")
        for argument in arguments:
            self.assertIn(f" {argument.split('=')[0]} ", usage)
        self.assertNotIn("@", unit.replace("@system-service", ""))

    def test_the_unit_allows_the_system_calls_of_the_profile(self):
        unit = self.read("lib/systemd/system/opserved.service")
        allowed = set(" ".join(re.findall("^SystemCallFilter=(.+)$", unit, re.MULTILINE)).split())
        profile = self.read("share/doc/opserve/examples/opserved.json")
        for call in ("openat", "epoll_wait", "sendmsg", "clone", "execve"):
            self.assertIn(f'"{call}"', profile)
            self.assertIn(call, allowed)
        self.assertFalse(allowed & {"ptrace", "mount", "fork", "setuid", "bpf", "keyctl"})

    def test_example_configurations_are_valid(self):
        examples = [*self.prefix.glob("share/doc/opserve/examples/*.textproto"),
                    ROOT / "deploy/debian/opserved.textproto"]
        for path in examples:
            # Secrets are placeholders that do not parse.
            text = re.sub('"REPLACE[^"]*"', '"' + "0123456789abcdef" * 4 + '"', path.read_text())
            with tempfile.NamedTemporaryFile("w", suffix=".textproto") as file:
                file.write(text)
                file.flush()
                self.assertEqual(
                    self.run_installed("opserved", f"--config={file.name}", "--validate_config")[0], 0, path)

    def test_the_example_of_an_operator_pack_is_valid(self):
        pack = self.prefix / "share/doc/opserve/examples/operator_pack/weighted_sum.textproto"
        for path in (pack, pack.parent):
            path.chmod(path.stat().st_mode & ~0o022)
        self.assertEqual(
            self.run_installed("opserved", f"--operator_pack={pack}", "--validate_config")[0], 0)

    def test_completions_are_scripts(self):
        for path, shell in (("share/bash-completion/completions/opserve", "bash"),
                            ("share/fish/vendor_completions.d/opserve.fish", "fish")):
            _, text = self.run_installed("opserve", "completion", shell)
            self.assertEqual(self.read(path), text)


if __name__ == "__main__":
    unittest.main()
