"""Every operator has what ops/README.md says an operator takes: usage operator_steps_test.py ROOT."""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop())

# Rooms that must not know any operator, by the folders' paths.
GENERIC = ["proto", "server", "client/cpp"]


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def operators():
    return re.findall(r"&(\w+)\(\),", read("ops/catalog/catalog.cc"))


def spellings(name):
    """The names that files of an operator may have; the vendor does not always separate words."""
    words = re.findall(r"[A-Z][a-z0-9]*", name)
    return {"_".join(words).lower(), "_".join(words).lower().replace("log_softmax", "logsoftmax")}


def steps():
    return re.findall(r"^\| \d+ \| (new|entry in) `([^`]+)` \|", read("ops/README.md"), re.M)


class OperatorStepsTest(unittest.TestCase):

    def test_the_table_is_read(self):
        self.assertEqual(len(steps()), 15)
        self.assertGreaterEqual(len(operators()), 5)

    def test_every_operator_has_followed_every_step(self):
        for name in operators():
            for kind, path in steps():
                with self.subTest(operator=name, step=path):
                    files = [path.replace("{Name}", name).replace("{name}", spelling)
                             for spelling in spellings(name)]
                    existing = [file for file in files if (ROOT / file).exists()]
                    self.assertTrue(existing, f"none of {files} exists")
                    if kind == "entry in":
                        names = {name, *spellings(name)}
                        text = read(existing[0])
                        self.assertTrue(any(n in text for n in names), f"{path} lacks {name}")

    def test_no_other_room_knows_an_operator(self):
        for room in GENERIC:
            for path in (ROOT / room).rglob("*"):
                if path.suffix not in (".cc", ".h", ".proto"):
                    continue
                code = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
                for name in operators():
                    self.assertNotIn(name, code, path.relative_to(ROOT))


if __name__ == "__main__":
    unittest.main()
