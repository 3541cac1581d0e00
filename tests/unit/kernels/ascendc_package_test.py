"""The NPU package's build files, with a toolkit of declarations in place of CANN's: usage ascendc_package_test.py ROOT.

It shows that the scripts find their files, say what is missing, and that the host's sources compile against the API as
documented. It proves nothing about CANN's own headers and CMake functions.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop())
HERE = ROOT / "tests/unit/kernels"

HEADERS = ("aclnn_kernels/contiguous.h", "aclnn_kernels/transdata.h", "aclnn/opdev/make_op_executor.h",
           "aclnn/opdev/op_def.h", "aclnn/opdev/op_dfx.h", "aclnn/opdev/op_executor.h", "aclnn/opdev/op_log.h",
           "register/op_def_registry.h", "tiling/platform/platform_ascendc.h")


class PackageTest(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.work = pathlib.Path(directory.name)
        for part in ("kernels/ascendc", "ops/abi"):  # the build writes beside its sources
            shutil.copytree(ROOT / part, self.work / part, ignore=shutil.ignore_patterns("build_out"))
        self.package = self.work / "kernels/ascendc/package"

    def make_toolkit(self):
        home = self.work / "cann"
        modules = home / "compiler/tikcpp/ascendc_kernel_cmake"
        modules.mkdir(parents=True)
        shutil.copy(HERE / "ascendc_toolkit.cmake", modules / "ASCConfig.cmake")
        shutil.copytree(ROOT / "ops/abi", home / "include")
        (home / "include/aclnnop/aclnn_kl_div_target_backward.h").unlink()  # the package brings its own
        for header in HEADERS:
            path = home / "include" / header
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f'#include "{HERE}/ascendc_toolkit.h"\n', encoding="utf-8")
        (home / "tools/opbuild").mkdir(parents=True)
        (home / "tools/opbuild/op_build").touch()
        (home / "lib64").mkdir()
        (home / "lib64/libopapi_math.so").touch()
        return home

    def build(self, home):
        environment = {k: v for k, v in os.environ.items() if k != "ASCEND_HOME_PATH"}
        if home is not None:
            environment["ASCEND_HOME_PATH"] = str(home)
        done = subprocess.run([str(self.package / "build.sh"), "2"], env=environment, text=True, timeout=250,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return done.returncode, done.stdout

    def test_builds_a_package(self):
        code, output = self.build(self.make_toolkit())

        self.assertEqual(code, 0, output)
        self.assertTrue((self.package / "build_out/custom_opp_opserve.run").exists(), output)

    def test_says_what_is_missing(self):
        home = self.make_toolkit()
        for part in ("compiler/tikcpp/ascendc_kernel_cmake", "tools/opbuild/op_build", "include/aclnn/aclnn_base.h",
                     "include/aclnn/opdev/op_executor.h", "include/aclnn_kernels/contiguous.h",
                     "lib64/libopapi_math.so"):
            (home / part).rename(self.work / "away")
            code, output = self.build(home)
            self.assertNotEqual(code, 0, part)
            self.assertRegex(output, r"(?i)opdev/op_executor.h|aclnn_kernels/contiguous.h|opapi_math|" + part, part)
            self.assertIn(pathlib.Path(part).name.removeprefix("lib").removesuffix(".so"), output)
            (self.work / "away").rename(home / part)

    def test_wants_the_toolkits_environment(self):
        for home, message in ((None, "ASCEND_HOME_PATH is not set"), (self.work / "nowhere", "is not a directory")):
            code, output = self.build(home)
            self.assertNotEqual(code, 0)
            self.assertIn(message, output)


if __name__ == "__main__":
    unittest.main()
