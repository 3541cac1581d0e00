"""Operator packs: served like built-in operators, or refused with a reason while all else is served.

usage: operator_packs_test.py BUILD_DIR
"""

import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.request

BUILD = pathlib.Path(sys.argv.pop()).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "client/python")]

from npy_array import save_array
from seed import seed_of_test

OPSERVED = BUILD / "bin/opserved"
OPSERVE = BUILD / "bin/opserve"
EXAMPLES = ROOT / "ops/examples"
TEXT = (EXAMPLES / "weighted_sum.textproto").read_text()
SOURCE = (EXAMPLES / "weighted_sum.cc").read_text()
NAME_LINE = 1 + TEXT[:TEXT.index("operator {")].count("\n")  # of the operator
ENVIRONMENT = dict(os.environ, OPSERVE_HOST_DEVICES="2")

# What stage one does instead of its work.
FAULTS = {
    "crash": "*(volatile int*)16 = 1;",
    "hang": "for (;;) pause();",
    "exit": "_exit(0);",
    "failed": "return 561002;",
    "wrong": "weight += 1;",
}
MUTATIONS = int(os.environ.get("OPSERVE_PACK_MUTATIONS", "200"))


def build(folder, name="weighted_sum", fault="", functions="aclnnWeightedSum"):
    source = SOURCE.replace("aclnnWeightedSum", functions)
    source = "#include <unistd.h>\n" + source.replace("  aclScalar* alpha", f"  {fault}\n  aclScalar* alpha")
    library = folder / f"lib{name}.so"
    # As `-I include/opserve/cann` of an installation; linked to nothing.
    subprocess.run(["g++", "-shared", "-fPIC", "-x", "c++", "-", "-o", library,
                    "-I", ROOT / "ops/abi"], input=source, text=True, check=True, timeout=120)
    library.chmod(0o755)


def write_pack(folder, name="weighted_sum", text=TEXT, operator="WeightedSum"):
    path = folder / f"{name}.textproto"
    path.write_text(text.replace('name: "WeightedSum"', f'name: "{operator}"')
                    .replace("libweighted_sum", f"lib{name}" if (folder / f"lib{name}.so").exists()
                             else "libweighted_sum"))
    path.chmod(0o644)
    return path


class Daemon:

    def __init__(self, test, *flags):
        self.socket = test.directory / "opserve.sock"
        self.log = []
        self.process = subprocess.Popen(
            [OPSERVED, f"--listen=unix:{self.socket}", "--metrics_listen=127.0.0.1:0",
             "--drain_delay=0s", *flags], stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        test.addCleanup(self.process.stderr.close)
        test.addCleanup(self.process.wait)
        test.addCleanup(self.process.kill)
        for line in self.process.stderr:
            if not line.startswith("{"):
                raise AssertionError(line)
            self.log.append(json.loads(line))
            if self.log[-1]["event"] == "ready":
                return
        raise AssertionError(f"opserved ended: {self.log}")

    def events(self, event):
        return [line for line in self.log if line["event"] == event]

    def opserve(self, *arguments):
        return subprocess.run([OPSERVE, f"--target=unix:{self.socket}", *map(str, arguments)],
                              capture_output=True, text=True, timeout=100, check=False)

    def json(self, *arguments):
        run = self.opserve("--format=json", *arguments)
        assert run.returncode == 0, run.stderr
        return json.loads(run.stdout)

    def operators(self):
        return {op["name"]: op for op in self.json("ops")["operators"]}

    def metrics(self):
        port = self.events("ready")[0]["metrics_port"]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            return answer.read().decode()


class PackTest(unittest.TestCase):

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="opserve-test-"))
        self.addCleanup(shutil.rmtree, self.directory)
        self.packs = self.directory / "packs"
        self.packs.mkdir(mode=0o755)
        self.packs.chmod(0o755)

    def check(self, path):
        """`opserve ops --check`: exit code, and all that it says."""
        run = subprocess.run([OPSERVE, "ops", "--check", path], capture_output=True, text=True,
                             env=ENVIRONMENT, timeout=100, check=False)
        return run.returncode, run.stdout + run.stderr

    def validate(self, path):
        run = subprocess.run([OPSERVED, "--validate_config", f"--operator_pack={path}"],
                             capture_output=True, text=True, timeout=100, check=False)
        return run.returncode, run.stderr


class GoodPackTest(PackTest):

    def setUp(self):
        super().setUp()
        build(self.packs)
        self.path = write_pack(self.packs)

    def test_it_is_served_metered_and_called_like_any_other(self):
        import grpc
        import numpy as np
        import opserve

        daemon = Daemon(self, f"--operator_pack={self.packs}")
        self.assertEqual(daemon.events("operator_pack")[0]["operators"], ["WeightedSum"])
        operator = daemon.operators()["WeightedSum"]
        self.assertEqual((operator["available"], operator["pack"]), (True, "weighted_sum"))
        self.assertEqual(daemon.operators()["Add"]["pack"], "")
        self.assertIn("From the operator pack weighted_sum.",
                      daemon.opserve("ops", "WeightedSum").stdout)
        self.assertIn("operator pack weighted_sum: 1 operator\n", daemon.opserve("status").stdout)

        for name, values in (("a", [1, 2, 3]), ("b", [10, 20, 30])):
            save_array(self.directory / f"{name}.npy", values)
        run = daemon.opserve("run", "WeightedSum", "--input", f"self={self.directory}/a.npy",
                             "--input", f"other={self.directory}/b.npy", "--attr", "weight=0.5")
        self.assertRegex(run.stdout, r"\[ *6, +12, +18\]", run.stderr)

        with opserve.Client(f"unix:{daemon.socket}") as client:
            inputs = {"self": np.ones((2, 1), "f4"), "other": np.full((1, 3), 4, "f4")}
            result = client.op("WeightedSum", inputs, {"weight": 2.0})
            self.assertEqual(result.tolist(), [[9, 9, 9], [9, 9, 9]])
            out = np.empty((2, 3), "f4")
            self.assertIs(client.op("WeightedSum", inputs, out=out), out)
            self.assertEqual(out.tolist(), [[5, 5, 5], [5, 5, 5]])
            with self.assertRaisesRegex(opserve.InvalidArgumentError,
                                        "WeightedSum.*other.*dtype FLOAT16; it must be that of self"):
                client.op("WeightedSum", {"self": inputs["self"],
                                          "other": inputs["other"].astype("f2")})
            with self.assertRaisesRegex(opserve.InvalidArgumentError,
                                        r"weight.*2000 is outside \[-1000, 1000\]"):
                client.op("WeightedSum", inputs, {"weight": 2000.0})
            program = opserve.Program()
            first = program.op("WeightedSum", inputs)
            program.add(first, first)
            self.assertEqual(client.execute(program).outputs.tolist(), [[10] * 3] * 2)
            # A built-in operator, by its name.
            self.assertEqual(client.op("Add", inputs).tolist(), [[5, 5, 5], [5, 5, 5]])

        # A model of the Open Inference Protocol.
        with grpc.insecure_channel(f"unix:{daemon.socket}") as channel:
            ready = channel.unary_unary("/inference.GRPCInferenceService/ModelReady")
            self.assertEqual(ready(b"\n\x0bWeightedSum", timeout=60), b"\x08\x01")
            index = channel.unary_unary("/inference.GRPCInferenceService/RepositoryIndex")
            self.assertIn(b"WeightedSum", index(b"", timeout=60))

        metrics = daemon.metrics()
        self.assertIn('opserve_operator_pack_operators{pack="weighted_sum"} 1\n', metrics)
        self.assertNotIn("opserve_operator_pack_refused{", metrics)
        self.assertRegex(metrics, r'opserve_requests_total\{[^}]*operator="WeightedSum"')
        self.assertRegex(metrics, r'opserve_executor_cache_hits_total\{operator="WeightedSum"\}')

    def test_its_check_says_so(self):
        code, said = self.check(self.path)
        self.assertEqual(code, 0, said)
        self.assertIn(f"{self.path}: 1 operators can be served\n", said)
        self.assertEqual(self.validate(self.path)[0], 0)
        self.assertEqual(self.validate(self.packs)[0], 0)

    def test_mistakes_of_the_text_end_the_daemon(self):
        for text, said in (
                (TEXT.replace("kind: DOUBLE", "kind: DUOBLE"),
                 ":26: Unknown enumeration value of \"DUOBLE\" for field \"kind\"."),
                (TEXT.replace('"like(self)"', '"lik(self)"'),
                 ":35: WeightedSum: out: rule \"lik(self)\": there is no such rule as lik here"),
                (TEXT.replace('"WeightedSum"', '"Add"'),
                 f":{NAME_LINE}: Add: is the name of a built-in operator"),
                (TEXT.replace('"libweighted_sum.so"', '"../libweighted_sum.so"'),
                 ":6: library: \"../libweighted_sum.so\" must be the name of a file beside this text"),
                ("# nothing\n", ":1: has no operator"),
                ("#" * (1 << 20) + "\n", ": has more than 1048576 bytes"),
        ):
            with self.subTest(said):
                self.path.write_text(text)
                expected = (2, f"opserved: {self.path}{said}\n")
                self.assertEqual(self.validate(self.path), expected)
                run = subprocess.run([OPSERVED, f"--operator_pack={self.path}"], text=True,
                                     capture_output=True, timeout=100, check=False)
                self.assertEqual((run.returncode, run.stderr), expected)
                code, checked = self.check(self.path)
                self.assertIn(said, checked)
                self.assertNotEqual(code, 0)

    def test_names_and_numbers_of_several_packs(self):
        second = write_pack(self.packs, "second")
        code, said = self.validate(self.packs)
        self.assertEqual((code, said), (2, (f"opserved: {self.path}:{NAME_LINE}: WeightedSum: is described at "
                                            f"{second}:{NAME_LINE}, too\n")))
        write_pack(self.packs, "second", operator="Other")
        self.assertEqual(self.validate(self.packs)[0], 0)
        run = subprocess.run([OPSERVED, "--validate_config", f"--operator_pack={self.packs}",
                              "--max_pack_operators=1"], capture_output=True, text=True, timeout=100,
                             check=False)
        self.assertEqual(run.returncode, 2)
        self.assertIn("is one operator more than the 1 that --max_pack_operators allows", run.stderr)
        self.assertIn("another pack has the name weighted_sum",
                      self.validate(f"{self.packs},{self.path}")[1])

    def test_files_that_others_may_change(self):
        for path, mode in ((self.path, 0o664), (self.path, 0o646), (self.packs, 0o775),
                           (self.packs, 0o777)):
            with self.subTest(f"{path.name} {mode:o}"):
                before = path.stat().st_mode & 0o7777
                path.chmod(mode)
                expected = (f"opserved: {path}: has mode 0{mode:o}; only its owner may write to it: "
                            "chmod go-w\n")
                self.assertEqual(self.validate(self.path), (2, expected))
                path.chmod(before)
        os.mkfifo(self.directory / "pipe")
        self.directory.chmod(0o755)
        self.assertEqual(self.validate(self.directory / "pipe"),
                         (2, f"opserved: {self.directory}/pipe: is no regular file\n"))
        self.assertEqual(self.validate(self.packs / "none.textproto"),
                         (2, f"opserved: {self.packs}/none.textproto: No such file or directory\n"))

    @unittest.skipUnless(os.geteuid() == 0 or "CI" in os.environ, "only root gives files away")
    def test_files_of_another_user(self):
        os.chown(self.path, 65534, 65534)
        self.assertEqual(self.validate(self.path), (
            2, f"opserved: {self.path}: belongs to user 65534; it must belong to root or to the "
               "daemon's user, 0\n"))

    def test_a_reload_does_not_change_packs(self):
        config = self.directory / "opserved.textproto"
        config.write_text(f'operator_pack: "{self.path}"\n')
        daemon = Daemon(self, f"--config={config}")
        config.write_text('log_level: "info"\n')
        run = subprocess.run([OPSERVE, "admin", "reload", f"--admin-target=unix:{daemon.socket}.admin"],
                             capture_output=True, text=True, timeout=100, check=False)
        self.assertIn("only a restart can change operator_pack", run.stderr)
        self.assertTrue(daemon.operators()["WeightedSum"]["available"])


class RefusedPackTest(PackTest):

    def test_each_is_refused_with_its_reason_and_all_else_is_served(self):
        for name, fault in FAULTS.items():
            build(self.packs, name, fault)
        build(self.packs, "missing_symbol", functions="aclnnOther")
        build(self.packs, "writable")
        (self.packs / "libwritable.so").chmod(0o775)
        (self.packs / "libgarbage.so").write_text("no library")
        (self.packs / "libgarbage.so").chmod(0o755)
        build(self.packs, "good")
        names = [*FAULTS, "missing_symbol", "writable", "garbage", "good"]
        for name in [*names, "no_library"]:
            write_pack(self.packs, name, operator=f"Op_{name}")
        absent = self.packs / "no_library.textproto"
        absent.write_text(absent.read_text().replace("libweighted_sum", "libno_library"))

        daemon = Daemon(self, f"--operator_pack={self.packs}")
        refused = {line["pack"]: (line["reason"], line["error"])
                   for line in daemon.events("operator_pack_refused")}

        def place(name, line=NAME_LINE):
            return f"{self.packs}/{name}.textproto:{line}: "

        self.assertEqual(refused, {
            "crash": ("crash", place("crash") + "Op_crash: golden case: ended by signal 11, "
                                                "Segmentation fault"),
            "hang": ("hang", place("hang") + "Op_hang: golden case: did not end within 10s"),
            "exit": ("trial", place("exit") + "Op_exit: golden case: ended with exit code 0"),
            "failed": ("failed", refused["failed"][1]),
            "wrong": ("wrong", place("wrong") + "Op_wrong: golden case: element 0 is 16, must be 6"),
            "missing_symbol": ("library", place("missing_symbol") + (
                "Op_missing_symbol: function: libmissing_symbol.so lacks "
                "aclnnWeightedSumGetWorkspaceSize")),
            "writable": ("library", place("writable", 6) + (
                f"library: {self.packs}/libwritable.so: has mode 0775; only its owner may write to "
                "it: chmod go-w")),
            "garbage": ("library", refused["garbage"][1]),
            "no_library": ("library", place("no_library", 6) + (
                f"library: {self.packs}/libno_library.so: No such file or directory")),
        })
        self.assertIn("aclnnWeightedSumGetWorkspaceSize", refused["failed"][1])
        self.assertIn("561002", refused["failed"][1])
        self.assertIn(f"{self.packs}/libgarbage.so", refused["garbage"][1])

        operators = daemon.operators()
        self.assertEqual({name for name, op in operators.items() if not op["available"]},
                         {f"Op_{name}" for name in refused})
        self.assertTrue(operators["Op_good"]["available"])
        run = daemon.opserve("run", "Op_crash", "--input", "self=random:2", "--input", "other=random:2")
        self.assertIn("the daemon refused its operator pack crash at its start (crash)", run.stderr)
        self.assertIn("operator pack hang: 1 operator, not served: refused (hang)",
                      " ".join(daemon.opserve("status").stdout.split()))
        self.assertIn('opserve_operator_pack_refused{pack="wrong",reason="wrong"} 1\n',
                      daemon.metrics())
        self.assertIn('opserve_operator_pack_operators{pack="wrong"} 0\n', daemon.metrics())
        # The same without a daemon.
        config = self.directory / "opserved.textproto"
        config.write_text(f'operator_pack: "{self.packs}/wrong.textproto" '
                          f'operator_pack: "{self.packs}/good.textproto"\n')
        doctor = subprocess.run([OPSERVE, "doctor", f"--config={config}"], capture_output=True,
                                text=True, env=ENVIRONMENT, timeout=100, check=False)
        self.assertEqual(doctor.returncode, 1, doctor.stdout)
        self.assertRegex(" ".join(doctor.stdout.split()),
                         r"pack wrong .*element 0 is 16, must be 6.* pack good 1 operators")
        for name, said in (("crash", "signal 11, Segmentation fault"),
                           ("hang", "did not end within 10s"),
                           ("wrong", "element 0 is 16, must be 6")):
            code, checked = self.check(self.packs / f"{name}.textproto")
            self.assertNotEqual(code, 0)
            self.assertIn(said, checked)


class ContiguousPackTest(PackTest):
    """A function that takes contiguous tensors only: out = self + weight * other."""

    # Stage one refuses other strides.
    CHECK = """
  const aclTensor* const read[] = {self, other};
  for (const aclTensor* tensor : read) {
    int64_t *shape = nullptr, *strides = nullptr, wanted = 1;
    uint64_t rank = 0;
    aclGetViewShape(tensor, &shape, &rank);
    aclGetViewStrides(tensor, &strides, &rank);
    bool is_contiguous = true;
    for (uint64_t axis = rank; axis-- > 0; wanted *= shape[axis])
      is_contiguous = is_contiguous && strides[axis] == wanted;
    delete[] shape;
    delete[] strides;
    if (!is_contiguous) return 161002;
  }
"""

    def setUp(self):
        super().setUp()
        build(self.packs, fault=self.CHECK)
        names = ("self", "other")
        text = TEXT
        for name in names:
            text = text.replace(f'name: "{name}"', f'name: "{name}"\n    contiguous: true')
        write_pack(self.packs, text=text)
        # The same library's copy, without the fact.
        build(self.packs, "strict", fault=self.CHECK)
        write_pack(self.packs, "strict", operator="Strict")

    @staticmethod
    def program(opserve, operator):
        """Of x [2, 3] and y [3, 2]: x.T, and every other element of y as a column that broadcasts."""
        program = opserve.Program()
        x, y = program.input("float32", (2, 3)), program.input("float32", (3, 2))
        transposed = program.view(x, "float32", (3, 2), (1, 3))
        column = program.view(y, "float32", (3, 1), (2, 1))
        program.op(operator, {"self": transposed, "other": column}, {"weight": 2.0})
        return program

    def test_views_are_copied_and_counted(self):
        import numpy as np
        import opserve

        daemon = Daemon(self, f"--operator_pack={self.packs}")
        descriptor = daemon.operators()["WeightedSum"]
        self.assertEqual([one.get("contiguous", False) for one in descriptor["inputs"]], [True, True])
        self.assertIn("a view with strides is copied first", daemon.opserve("ops", "WeightedSum").stdout)
        x = np.arange(6, dtype="f4").reshape(2, 3)
        y = np.arange(6, dtype="f4").reshape(3, 2) * 10
        copies = 0
        with opserve.Client(f"unix:{daemon.socket}") as client:
            # The library means what the pack's text says.
            strict = client.prepare(self.program(opserve, "Strict"))
            with self.assertRaisesRegex(opserve.InvalidArgumentError, "Strict"):
                strict(x, y)

            # A request of its own: numpy's views travel as they are.
            inputs = {"self": x.T, "other": y[:, :1]}
            for _ in range(3):
                program = opserve.Program()
                sums = program.op("WeightedSum", inputs, {"weight": 2.0})
                program.op("WeightedSum", {"self": sums, "other": sums}, {"weight": 1.0})
                answer = client.execute(program, want_receipt=True)
                self.assertEqual(answer.outputs.tolist(), (2 * (x.T + 2 * y[:, :1])).tolist())
                # The column is sent contiguous, since it is a part of y only.
                self.assertEqual(answer.receipt.contiguous_copies, 1)
                copies += 1

            prepared = client.prepare(self.program(opserve, "WeightedSum"))
            for number in range(5):
                self.assertEqual(prepared(x + number, y).outputs.tolist(),
                                 ((x + number).T + 2 * y[:, :1]).tolist())
                copies += 2
            # Contiguous tensors cost nothing.
            program = opserve.Program()
            program.op("WeightedSum", {"self": x, "other": x[1:]})
            answer = client.execute(program, want_receipt=True)
            self.assertEqual(answer.outputs.tolist(), (x + x[1:]).tolist())
            self.assertEqual(answer.receipt.contiguous_copies, 0)
        self.assertIn(f"opserve_contiguous_copies_total {copies}\n", daemon.metrics())


    def test_a_prepared_programs_receipt_counts_them(self):
        daemon = Daemon(self, f"--operator_pack={self.packs}")
        program = self.directory / "program.textproto"
        program.write_text("""
            inputs { dtype: DATA_TYPE_FLOAT shape: [2, 3] }
            program {
              invocations {
                operator: "WeightedSum"
                inputs {
                  name: "self"
                  tensor { dtype: DATA_TYPE_FLOAT shape: [3, 2] strides: [1, 3] program_input: 0 }
                }
                inputs { name: "other" tensor { dtype: DATA_TYPE_FLOAT literal: "\\000\\000\\200\\077" } }
              }
            }""")
        run = ("program", "run", program, "--prepare", "--repeat=5", "--receipt")
        receipt = daemon.json(*run)["receipt"]
        self.assertEqual(receipt["contiguous_copies"], 1)
        # A copy and its reader are launches enough for a capture.
        self.assertIs(receipt["replayed"], True)
        self.assertIn("; 1 view copied to be contiguous; ", daemon.opserve(*run).stdout)
        self.assertIn("opserve_contiguous_copies_total 10\n", daemon.metrics())


class MutationTest(PackTest):

    WORDS = ("DOUBLE", "FLOAT", "INT64", "INT32", "INT8", "BOOL", "SCALAR", "TEXT", "TENSOR",
             "TENSOR_LIST", "INT_ARRAY", "INPUT", "OUTPUT", "IN_PLACE", "like", "broadcast", "self",
             "other", "weight", "out", "same_dtype", "1", "-1", "0", "1e30", "nan", "true", "optional")

    KINDS = ("TENSOR", "TENSOR_LIST", "SCALAR", "SCALAR_LIST", "INT64", "INT32", "INT8", "BOOL",
             "DOUBLE", "FLOAT", "TEXT", "DTYPE", "INT_ARRAY", "BOOL_ARRAY", "FLOAT_ARRAY", "UINT64")
    # Its numbers suit integers, too, so that wrong kinds get as far as the trial.
    TEXT = (TEXT.replace("weight = 0.5", "weight = 2").replace("[[6, 1.5], [8, 3.5]]",
                                                               "[[21, 0], [23, 2]]"))

    def mutate(self, rng):
        """A text with a change or two, behind the operator's name."""
        begin = self.TEXT.index("  summary")
        head, lines = self.TEXT[:begin], self.TEXT[begin:].splitlines()
        for _ in range(rng.randint(1, 2)):
            at = rng.randrange(len(lines))
            kind = rng.randrange(8)
            words = list(re.finditer(r"-?\w+", lines[at]))
            if kind == 0 and words:
                word = rng.choice(words)
                lines[at] = lines[at][:word.start()] + rng.choice(self.WORDS) + lines[at][word.end():]
            elif kind == 1:
                del lines[at]
            elif kind == 2:
                lines.insert(rng.randrange(len(lines)), lines[at])
            elif kind == 3 and lines[at]:
                place = rng.randrange(len(lines[at]))
                lines[at] = lines[at][:place] + chr(rng.randrange(1, 256)) + lines[at][place + 1:]
            elif kind == 4:
                other = rng.randrange(len(lines))
                lines[at], lines[other] = lines[other], lines[at]
            elif kind == 5:
                head = head.replace("aclnnWeightedSum", rng.choice(("aclnnAdd", "aclnnAbs", "main")))
            else:  # the library gets other arguments than it takes
                text = "\n".join(lines)
                if rng.randrange(2):
                    text = text.replace("kind: DOUBLE", f"kind: {rng.choice(self.KINDS)}")
                else:
                    parts = re.split(r"(?m)(?=^  (?:argument|check))", text)
                    one, two = rng.sample(range(1, min(5, len(parts))), 2) if len(parts) > 3 else (0, 0)
                    parts[one], parts[two] = parts[two], parts[one]
                    text = "".join(parts)
                lines = text.splitlines()
            lines = lines or [""]
        return head + "\n".join(lines) + "\n"

    def test_each_is_refused_with_line_and_reason_or_works(self):
        build(self.packs)
        rng = random.Random(seed_of_test(20))
        accepted = 0
        for number in range(MUTATIONS):
            text = self.mutate(rng)
            path = self.packs / f"m{number}.textproto"
            path.write_bytes(text.encode("latin-1").replace(b'"WeightedSum"', b'"M%d"' % number))
            path.chmod(0o644)
            code, said = self.validate(path)
            if code == 0:
                # In the daemon its operators must have names of their own.
                if f'name: "M{number}"' in path.read_bytes().decode("latin-1"):
                    accepted += 1
                    continue
            else:
                self.assertEqual(code, 2, f"{text}\n{said}")
                self.assertRegex(said, rf"^opserved: {path}:\d+: .+\n$", text)
            path.unlink()
        self.assertGreater(accepted, 20)

        without = Daemon(self)
        before = {name for name, op in without.operators().items() if op["available"]}
        without.process.terminate()
        self.assertEqual(without.process.wait(timeout=60), 0)
        daemon = Daemon(self, f"--operator_pack={self.packs}")
        after = daemon.operators()
        self.assertEqual({name for name in before if not after[name]["available"]}, set())
        refused = daemon.events("operator_pack_refused")
        for line in refused:
            self.assertRegex(line["error"], rf"^{self.packs}/{line['pack']}\.textproto:\d+: .", line)
        self.assertEqual({line["pack"] for line in refused},
                         {op["pack"] for op in after.values() if not op["available"]} - {""})
        run = daemon.opserve("run", "Add", "--input", "self=random:4", "--input", "other=random:4",
                             "--verify")
        self.assertIn(" is right: ", run.stdout, run.stderr)
        self.assertEqual({device["state"] for device in daemon.json("status")["devices"]}, {"READY"})
        print(f"{MUTATIONS} mutations: {MUTATIONS - accepted} refused by their texts, "
              f"{len(refused)} by their trials, {accepted - len(refused)} work")


if __name__ == "__main__":
    unittest.main()
