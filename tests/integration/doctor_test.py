"""opserve doctor and opserved --self_test: layouts of CANN, and what each kind of fault is told.

usage: doctor_test.py BUILD_DIR
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from cann_layouts import BUILT_IN, CUSTOM, Installation, environment

BUILD = pathlib.Path(sys.argv.pop()).resolve()
HOST = BUILD / "lib/opserve/host-cann"
OPSERVE = BUILD / "bin/opserve"
OPSERVED = BUILD / "bin/opserved"
# Libraries with a sanitizer look their own functions up by name.
HAS_SANITIZER = "OPSERVE_SANITIZE:STRING=\n" not in (BUILD / "CMakeCache.txt").read_text()
OPERATORS = {"KlDivBackward", "KlDivTargetBackward", "L1LossBackward", "LogSoftmaxBackward",
             "MseLossBackward"}


def doctor(*arguments, **variables):
    return subprocess.run([OPSERVE, "doctor", *arguments], capture_output=True, text=True,
                          env=environment(**variables), timeout=100)


def findings(*arguments, **variables):
    """By subject, the last of each section."""
    run = doctor("--format=json", *arguments, **variables)
    document = json.loads(run.stdout)
    assert document["healthy"] == (run.returncode == 0), run.stdout
    return {(entry["section"], entry["subject"]): entry for entry in document["findings"]}


class Directory(unittest.TestCase):

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="opserve-doctor-"))
        self.addCleanup(shutil.rmtree, self.directory)
        self.home = self.directory / "cann"

    def installation(self):
        return Installation(self.home, HOST)


class HostCannTest(unittest.TestCase):

    def test_a_healthy_machine(self):
        run = doctor(OPSERVE_HOST_DEVICES="2")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("Healthy.", run.stdout)
        self.assertRegex(run.stdout, r"ok +operators +\d+ from libopapi.so, \d+ from libcust_opapi.so|"
                                     r"ok +operators +\d+ from libcust_opapi.so, \d+ from libopapi.so")
        self.assertEqual(len(re.findall(r"(?m)^device ", run.stdout)), 2)
        counts = re.findall(r"ok +operators +(\d+) of (\d+) right\n", run.stdout)
        self.assertEqual(len(counts), 2)
        for right, tried in counts:
            self.assertEqual(right, tried)
            self.assertGreater(int(right), 300)
        self.assertEqual(len(re.findall(r"ok +launches +of \d+ operators, half within \S+ us to queue, "
                                        r"\S+ us until it is done; longest: \w+, \S+ us\n", run.stdout)), 2)
        for operator in OPERATORS:
            self.assertNotRegex(run.stdout, rf"(?m)^ .*\b{operator} +right")
        self.assertLess(run.stdout.count("\n"), 60)
        self.assertRegex(run.stdout, r"ok +copies +\S+ GiB/s to the device")
        self.assertEqual(run.stderr, "")

    def test_every_operator_has_a_line_if_that_is_wanted(self):
        run = doctor("--verbose", OPSERVE_HOST_DEVICES="2")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        for operator in OPERATORS:
            self.assertRegex(run.stdout, rf"ok +{operator} +right; types FLOAT FLOAT16 BF16")
            self.assertRegex(run.stdout, rf"ok +launch of {operator} +\S+ us to queue")
        self.assertEqual(len(re.findall(r"ok +operators +\d+ of \d+ right\n", run.stdout)), 2)

    def test_an_operator_that_failed_has_a_line_of_its_own(self):
        run = doctor(OPSERVE_HOST_DEVICES="2",
                     OPSERVE_HOST_FAULTS="kernel=aclnnL1LossBackward,on=1,wrong,count=all")
        self.assertEqual(run.returncode, 1)
        self.assertEqual(len(re.findall(r"PROBLEM +L1LossBackward +golden case: ", run.stdout)), 1)
        self.assertRegex(run.stdout, r"Not healthy. 1 problem:\n  device 1, L1LossBackward: golden case")
        counts = re.findall(r"(\w+) +operators +(\d+) of (\d+) right\n", run.stdout)
        self.assertEqual([int(tried) - int(right) for _, right, tried in counts], [0, 1])
        self.assertEqual([verdict for verdict, *_ in counts], ["ok", "note"])
        self.assertLess(run.stdout.count("\n"), 60)

    def test_the_daemons_flag_says_the_same(self):
        run = subprocess.run([OPSERVED, "--self_test"], capture_output=True, text=True,
                             env=environment(), timeout=100)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("Healthy.", run.stdout)
        run = subprocess.run([OPSERVED, "--self_test", "--self_test_format=xml"],
                             capture_output=True, text=True, env=environment(), timeout=100)
        self.assertEqual(run.returncode, 2)
        self.assertIn("must be text or json", run.stderr)

    def test_every_kind_of_fault_is_told(self):
        none = "call=aclrtGetDeviceCount,code=207004,count=all"
        cases = {  # what is injected: where it shows, what it says, what to do
            "kernel=aclnnL1LossBackward,wrong":
                ("L1LossBackward", "golden case: element 0 is", "does not offer this operator on this device"),
            "kernel=aclnnL1LossBackward,code=507035":
                ("L1LossBackward", "507035", "CANN's own log"),
            "kernel=aclnnL1LossBackward,hang":
                ("L1LossBackward", "did not finish within", "CANN's own log"),
            "kernel=aclnnL1LossBackward,code=507035,nth=40":
                ("launch of L1LossBackward", "507035", "CANN's own log"),
            "device=0,lost": ("open", "507033", "needs a reset"),
            "call=aclrtQueryDeviceStatus,code=507899": ("health", None, None),
            "call=aclrtCreateStream,code=207008": ("stream", "207008", "other processes"),
            "call=aclrtMalloc,code=207001,count=all":
                ("Abs", "207001", "npu-smi info and ulimit -l"),
            "call=aclrtMallocHost,code=207001,count=all":
                ("Abs", "207001", "npu-smi info and ulimit -l"),
            "call=aclrtMemcpyAsync,code=507013,count=all":
                ("Abs", "507013", "needs a reset"),
            "call=aclnnLogSoftmaxBackwardGetWorkspaceSize,code=561003,count=all":
                ("LogSoftmaxBackward", "this product does not have it", "the others serve"),
            "call=aclrtHostRegister,code=207000": ("shared memory", "copied", None),
            none: ("devices", "find no device", None),
            "call=aclInit,code=500000": ("load", "/dev/davinci_manager", None),
            "call=aclInit,code=100039": ("load", "stubs to link with", None),
        }
        serves = {"call=aclrtQueryDeviceStatus,code=507899", "call=aclrtHostRegister,code=207000",
                  "call=aclnnLogSoftmaxBackwardGetWorkspaceSize,code=561003,count=all"}
        for faults, (subject, text, advice) in cases.items():
            with self.subTest(faults):
                found = {key[1]: entry for key, entry in findings(OPSERVE_HOST_FAULTS=faults).items()
                         if key[0] in ("device 0", "ACL libraries")
                         and entry["verdict"] in ("problem", "warning", "note")}
                if text is None:  # a question that the driver does not answer is no fault
                    self.assertEqual(found, {})
                    continue
                self.assertIn(subject, found)
                self.assertIn(text, found[subject]["text"])
                if advice is not None:
                    self.assertIn(advice, found[subject]["advice"])
                problems = [entry for entry in found.values() if entry["verdict"] == "problem"]
                self.assertEqual(problems == [], faults in serves, problems)

    def test_all_kernels_failing_is_a_faulty_device(self):
        found = findings(OPSERVE_HOST_FAULTS="kernel=*,code=507035,count=all")
        self.assertIn("3 faults one after the other", found["device 0", "device"]["text"])


class GenerationTest(Directory):
    """What a product lacks is not a fault of its devices."""

    LACKING = {"Ascend910B3": {"KlDivTargetBackward": "FLOAT FLOAT16 BF16"},
               "Ascend910_9391": {"KlDivTargetBackward": "FLOAT FLOAT16 BF16"},
               "Ascend310P3": {"L1LossBackward": "FLOAT FLOAT16"},
               "Ascend910A": {"L1LossBackward": "FLOAT FLOAT16"}}

    def test_the_doctor_says_what_each_product_has(self):
        for soc, types in self.LACKING.items():
            with self.subTest(soc):
                found = findings(OPSERVE_HOST_SOC=soc)
                self.assertEqual(found["ACL libraries", "product"]["text"], soc)
                for operator, expected in types.items():
                    self.assertEqual(found["device 0", operator]["text"], f"right; types {expected}")
                has_target = "KlDivTargetBackward" in types
                self.assertEqual(found["device 0", "KlDivTargetBackward"]["verdict"],
                                 "ok" if has_target else "warning")

    def test_the_daemon_serves_the_rest_and_refuses_by_name(self):
        socket = self.directory / "s"
        daemon = subprocess.Popen(
            [OPSERVED, f"--listen=unix:{socket}", "--metrics_listen=none"], stderr=subprocess.PIPE,
            text=True, env=environment(OPSERVE_HOST_SOC="Ascend310P3"))
        self.addCleanup(daemon.communicate)
        self.addCleanup(daemon.kill)
        unavailable = None
        for line in daemon.stderr:
            entry = json.loads(line)
            if entry["event"] == "operator_unavailable":
                unavailable = entry
            if entry["event"] == "ready":
                break
        self.assertEqual(unavailable["operator"], "KlDivTargetBackward")
        self.assertIn("not supported on Ascend310P3", unavailable["reason"])

        def run(operator, kind="FLOAT"):
            return subprocess.run(
                [OPSERVE, f"--target=unix:{socket}", "run", operator, "--input=grad_output=random:scalar",
                 f"--input=self=random:8:{kind}", f"--input=target=random:8:{kind}"],
                capture_output=True, text=True, timeout=60)

        self.assertEqual(run("KlDivBackward").returncode, 0)
        refused = run("KlDivTargetBackward")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("not supported on Ascend310P3", refused.stderr)
        refused = run("KlDivBackward", "BF16")
        self.assertIn("type BF16 is not supported on Ascend310P3", refused.stderr)


class LayoutTest(Directory):

    def check(self, where, custom, **variables):
        """All operators compute right; the library that KlDivTargetBackward comes from."""
        found = findings(f"--acl-library-dir={where}", **variables)
        for operator in OPERATORS:
            self.assertIn("right", found["device 0", operator]["text"])
        self.assertEqual(found["ACL libraries", "KlDivTargetBackward"]["text"], custom)
        return found

    def test_installations_that_are_found(self):
        arch = BUILT_IN
        cases = {
            "one operator library and a custom package":
                (lambda i: i.old_runtime().one_library().custom_package(), "libcust_opapi.so"),
            "split operator libraries": (lambda i: i.new_runtime().split_libraries(),
                                         "libopapi_math.so"),
            "a custom package comes before what is built in":
                (lambda i: i.new_runtime().split_libraries().custom_package(), "libcust_opapi.so"),
            "operators with the operator packages":
                (lambda i: i.old_runtime().custom_package().put("libopapi.so", f"opp/{arch}"),
                 "libcust_opapi.so"),
            "both names of the runtime":
                (lambda i: i.old_runtime().new_runtime().one_library().custom_package(),
                 "libcust_opapi.so"),
        }
        for name, (arrange, custom) in cases.items():
            for variable in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"):
                with self.subTest(name, variable=variable):
                    shutil.rmtree(self.home, ignore_errors=True)
                    arrange(self.installation())
                    self.check("cann", custom, **{variable: str(self.home)})
                    self.check(self.home, custom)
                    self.check(self.home / "lib64", custom)

    def test_packages_elsewhere_come_first(self):
        self.installation().old_runtime().one_library().custom_package()
        elsewhere = self.directory / "elsewhere"
        Installation(elsewhere, HOST).put("libcust_opapi.so", CUSTOM)
        found = self.check("cann", "libcust_opapi.so", ASCEND_HOME_PATH=str(self.home),
                           ASCEND_CUSTOM_OPP_PATH=f"{elsewhere}:/nonexistent")
        self.assertIn("/nonexistent, which has no", found["ACL libraries", "installation"]["text"])

    def test_operator_packages_apart_from_the_toolkit(self):
        self.installation().old_runtime().one_library()
        apart = self.directory / "apart"
        Installation(apart, HOST).custom_package()
        self.check("cann", "libcust_opapi.so", ASCEND_HOME_PATH=str(self.home),
                   ASCEND_OPP_PATH=str(apart / "opp"))

    @unittest.skipIf(HAS_SANITIZER, "its libraries are to lose the names of functions")
    def test_what_an_older_cann_cannot_is_said_and_the_rest_works(self):
        (self.installation().old_runtime().one_library().custom_package()
         .take_away("lib64/libascendcl.so", "aclrtSynchronizeStreamWithTimeout", "aclrtStreamAbort",
                    "aclrtSetOpExecuteTimeOut", "aclrtSetOpExecuteTimeOutV2", "aclrtResetDeviceForce",
                    "aclrtDeviceTaskAbort", "aclrtStreamQuery", "aclrtHostRegister")
         .take_away("lib64/libnnopbase.so", "aclSetAclOpExecutorRepeatable"))
        found = self.check(self.home, "libcust_opapi.so")
        for subject in ("waiting with a timeout", "aborting a stream", "limiting a kernel's time",
                        "resetting a device by force", "stopping a device's work",
                        "asking whether a stream is idle", "mapping host memory", "keeping plans"):
            self.assertEqual(found["ACL libraries", subject]["verdict"], "warning")
        self.assertIn("copied", found["device 0", "shared memory"]["text"])

    def test_an_operator_that_is_not_installed_is_refused_and_the_others_serve(self):
        self.installation().old_runtime().one_library()
        found = findings(f"--acl-library-dir={self.home}")
        self.assertEqual(found["ACL libraries", "KlDivTargetBackward"]["verdict"], "warning")
        self.assertIn("no operator library has aclnnKlDivTargetBackwardGetWorkspaceSize",
                      found["ACL libraries", "KlDivTargetBackward"]["text"])
        self.assertIn("right", found["device 0", "KlDivBackward"]["text"])

    def test_mistakes_in_packages_do_not_keep_the_others_from_serving(self):
        (self.installation().old_runtime().one_library().custom_package(listed=False)
         .write(f"opp/vendors/broken/{CUSTOM}", "not a library")
         .write("opp/vendors/config.ini", "load_priority=broken\n"))
        run = doctor(f"--acl-library-dir={self.home}", "--format=json")
        problems = [entry["text"] for entry in json.loads(run.stdout)["findings"]
                    if entry["subject"] == "installation"]
        self.assertTrue(any("custom_nn" in text and "not in load_priority" in text
                            for text in problems), problems)
        self.assertTrue(any("cannot load" in text and "broken" in text for text in problems),
                        problems)
        self.assertIn("right", run.stdout)

    def test_what_is_missing_is_named_with_what_to_do(self):
        def without_kernels(i):
            i.old_runtime().one_library()
            (i.home / "lib64/libopserve_kernels.so").unlink()

        cases = {
            "no libacl_rt.so or libascendcl.so in": lambda i: i.one_library(),
            "no libnnopbase.so in": lambda i: i.put("libascendcl.so", "lib64/libascendcl.so"),
            "no operator library (libopapi.so, libopapi_nn.so)": lambda i: i.old_runtime(),
            "libopserve_kernels.so, which is not found; run CANN's set_env.sh": without_kernels,
        }
        for message, arrange in cases.items():
            with self.subTest(message):
                shutil.rmtree(self.home, ignore_errors=True)
                arrange(self.installation())
                run = doctor(f"--acl-library-dir={self.home}")
                self.assertEqual(run.returncode, 1)
                self.assertIn(message, run.stdout)
                # The daemon says the same and does not start.
                run = subprocess.run([OPSERVED, f"--acl_library_dir={self.home}",
                                      f"--listen=unix:{self.directory}/s", "--metrics_listen=none"],
                                     capture_output=True, text=True, env=environment(), timeout=60)
                self.assertEqual(run.returncode, 1)
                self.assertIn(message, run.stderr)

    def test_the_drivers_library_and_an_old_cann(self):
        def compile_library(path, source, *flags):
            subprocess.run(["cc", "-shared", "-fPIC", "-o", path, "-x", "c", "-", "-Wl,--no-as-needed",
                            *flags], input=source, text=True, check=True)

        lib64 = self.home / "lib64"
        self.installation().old_runtime().one_library()
        compile_library(self.directory / "libascend_hal.so", "")
        compile_library(lib64 / "libascendcl.so", "", f"-L{self.directory}", "-lascend_hal")
        run = doctor(f"--acl-library-dir={self.home}")
        self.assertIn("needs libascend_hal.so, which is not found; it belongs to the NPU's driver",
                      run.stdout)

        compile_library(lib64 / "libascendcl.so", "int aclInit(const char* p) { return 0; }")
        compile_library(lib64 / "libnnopbase.so", "")
        compile_library(lib64 / "libopapi.so", "")
        run = doctor(f"--acl-library-dir={self.home}")
        self.assertIn("lack the core function aclFinalize; this CANN is too old", run.stdout)

    def test_no_cann_at_all(self):
        run = doctor("--acl-library-dir=cann")
        self.assertEqual(run.returncode, 1)
        self.assertIn("neither ASCEND_HOME_PATH nor ASCEND_TOOLKIT_HOME is set", run.stdout)
        self.assertIn("there is no", run.stdout)  # device files
        run = doctor(f"--acl-library-dir={self.directory}/devlib")
        self.assertIn("has stubs to link with", run.stdout)


if __name__ == "__main__":
    unittest.main()
