"""What was built is hardened: read from the programs and libraries themselves, and from the sources.

usage: binary_test.py BUILD_DIR
"""

import json
import pathlib
import re
import subprocess
import sys
import unittest

BUILD = pathlib.Path(sys.argv.pop())
ROOT = pathlib.Path(__file__).resolve().parents[2]
HOST_CANN = BUILD / "lib/opserve/host-cann"
PROGRAMS = [BUILD / "bin/opserved", BUILD / "bin/opserve"]
LIBRARIES = sorted(HOST_CANN.rglob("*.so"))
SOURCE_ROOMS = ("client", "kernels", "ops", "proto", "server")


def readelf(path, *options):
    return subprocess.run(["readelf", "--wide", *options, path], check=True, capture_output=True,
                          text=True).stdout


def symbols(path):
    """Names the dynamic loader looks up in other libraries."""
    return {fields[7].split("@")[0] for fields in map(str.split, readelf(path, "--dyn-syms").splitlines())
            if len(fields) > 7 and fields[6] == "UND"}


def dynamic(path):
    """The dynamic section: tag and the texts that stand with it."""
    return re.findall(r"0x[0-9a-f]+ \((\w+)\)\s*(.*)", readelf(path, "--dynamic"))


def segments(path):
    """Type and flags of each segment."""
    return re.findall(r"^  ([A-Z_]+)\s+0x\S+ 0x\S+ 0x\S+ 0x\S+ 0x\S+ ([RWE ]{3}) ",
                      readelf(path, "--segments"), re.MULTILINE)


class BinaryTest(unittest.TestCase):

    def test_all_are_there(self):
        names = {path.name for path in LIBRARIES}
        self.assertLessEqual({"libascendcl.so", "libnnopbase.so", "libopapi.so", "libcust_opapi.so",
                              "libopserve_kernels.so"}, names)

    def test_programs_can_be_loaded_anywhere(self):
        for path in PROGRAMS:
            self.assertIn("PIE", dict(dynamic(path))["FLAGS_1"], path)

    def test_addresses_are_bound_at_the_start_and_read_only_then(self):
        for path in PROGRAMS + LIBRARIES:
            self.assertIn("GNU_RELRO", dict(segments(path)), path)
            self.assertIn("NOW", dict(dynamic(path))["FLAGS_1"].split(), path)
            self.assertNotIn("TEXTREL", dict(dynamic(path)), path)

    def test_nothing_is_both_writable_and_executable(self):
        for path in PROGRAMS + LIBRARIES:
            self.assertIn("GNU_STACK", dict(segments(path)), path)
            for kind, flags in segments(path):
                self.assertFalse("W" in flags and "E" in flags, f"{path}: {kind} {flags}")
                self.assertFalse(kind == "GNU_STACK" and "E" in flags, path)

    def test_stacks_are_guarded(self):
        for path in PROGRAMS + LIBRARIES:
            self.assertIn("__stack_chk_fail", symbols(path), path)

    def test_libc_checks_sizes(self):
        # Libraries that call none of the functions which have a checking form need none.
        for path in [*PROGRAMS, HOST_CANN / "libascendcl.so"]:
            checking = {name for name in symbols(path) if re.fullmatch(r"__\w+_chk", name)}
            self.assertNotEqual(checking, set(), path)

    def test_the_standard_library_checks_indices(self):
        for path in [*PROGRAMS, *(p for p in LIBRARIES if "kernels" not in p.name)]:
            self.assertTrue(any("glibcxx_assert_fail" in name for name in symbols(path)), path)

    def test_libraries_are_found_beside_themselves_only(self):
        for path in PROGRAMS + LIBRARIES:
            for tag, text in dynamic(path):
                if tag in ("RPATH", "RUNPATH"):
                    for directory in re.search(r"\[(.*)\]", text).group(1).split(":"):
                        self.assertRegex(directory, r"^\$ORIGIN(/|$)", path)

    def test_every_object_was_compiled_so(self):
        flags = {"-fstack-protector-strong", "-fstack-clash-protection", "-D_FORTIFY_SOURCE=2",
                 "-D_GLIBCXX_ASSERTIONS"}
        places = tuple(f"{base / room}/" for base in (ROOT, BUILD)
                       for room in (*SOURCE_ROOMS, "generated"))
        commands = [command for command in json.loads((BUILD / "compile_commands.json").read_text())
                    if command["file"].startswith(places)]
        self.assertGreater(len(commands), 20)
        missing = {command["file"]: flags - set(command["command"].split())
                   for command in commands if not flags <= set(command["command"].split())}
        self.assertEqual(missing, {})


class SourceTest(unittest.TestCase):

    def test_no_source_takes_memory_of_a_size_from_the_stack(self):
        # Arrays of variable length are errors of the compiler's (-Wvla -Werror).
        for room in SOURCE_ROOMS:
            files = [p for p in (ROOT / room).rglob("*") if p.suffix in (".cc", ".h", ".c", ".inc")]
            for path in files:
                found = re.search(r"\b(alloca|__builtin_alloca\w*|strdupa|strndupa)\s*\(",
                                  path.read_text())
                self.assertIsNone(found, f"{path}: {found}")


if __name__ == "__main__":
    unittest.main()
