"""The host CANN exports the functions of tests/data/abi and no others, and the daemon calls only
those listed there as core, optional or stage: usage symbols_test.py BUILD_DIR."""

import pathlib
import re
import subprocess
import sys
import unittest

import abi_data

BUILD = pathlib.Path(sys.argv.pop())
ROOT = pathlib.Path(__file__).resolve().parents[3]
HOST_CANN = BUILD / "lib/opserve/host-cann"
ABI_NAME = re.compile(r"[aA]cl(rt|nn|sys|mdl)?[A-Z]\w*")

FUNCTIONS = abi_data.functions()
LIBRARIES = sorted({f.library for f in FUNCTIONS})
OPERATORS = abi_data.operators()


def symbols(path, which):
    """Names in the dynamic symbol table, without versions; `which` is an option of nm."""
    output = subprocess.run(["nm", "--dynamic", which, "--format=posix", path], check=True,
                            capture_output=True, text=True).stdout
    return {line.split()[0].split("@")[0] for line in output.splitlines()}


def names(cls):
    return {f.name for f in FUNCTIONS if f.cls == cls}


def sources(*rooms):
    return {path: re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))
            for room in rooms for path in sorted((ROOT / room).rglob("*"))
            if path.suffix in (".cc", ".h", ".inc")}


def literals(texts):
    """String literals that are names of ABI functions."""
    return {literal for text in texts for literal in re.findall(r'"(\w+)"', text)
            if ABI_NAME.fullmatch(literal)}


class HostCannTest(unittest.TestCase):

    def test_each_library_exports_its_functions(self):
        for library in LIBRARIES:
            exported = symbols(HOST_CANN / f"lib{library}.so", "--defined-only")
            self.assertEqual({name for name in exported if ABI_NAME.fullmatch(name)},
                             {f.name for f in FUNCTIONS if f.library == library and f.cls != "stage"}
                             | OPERATORS.get(library, set()), library)

    def test_newer_names_are_links_to_the_libraries(self):
        for name, library in {"acl_rt": "ascendcl", "opapi_math": "opapi", "opapi_nn": "opapi"}.items():
            path = HOST_CANN / f"lib{name}.so"
            self.assertTrue(path.is_symlink(), path)
            self.assertEqual(path.resolve(), (HOST_CANN / f"lib{library}.so").resolve())

    def test_what_is_exported_besides_cannot_be_taken_for_the_abi(self):
        header = (ROOT / "ops/host_cann/opserve/host_cann.h").read_text(encoding="utf-8")
        own = set(re.findall(r"\b(opserveHost\w+)\(", header))
        for library in LIBRARIES:
            exported = symbols(HOST_CANN / f"lib{library}.so", "--defined-only")
            others = {name for name in exported if not ABI_NAME.fullmatch(name)}
            # C++ functions are between these libraries.
            self.assertEqual({name for name in others if not name.startswith("_Z")},
                             own if library == "ascendcl" else set(), library)


class DaemonTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        table = (ROOT / "server/device/acl/acl_functions.inc").read_text(encoding="utf-8")
        cls.resolved = {name: kind.lower() for kind, name in re.findall(
            r"^OPSERVE_ACL_(CORE|OPTIONAL)\((\w+)\)$", table, re.M)}
        cls.stages = set().union(*OPERATORS.values())

    def test_nothing_is_imported(self):
        """All of ACL is looked up at run time, so that one program works with any CANN."""
        of_host_cann = {f"lib{library}.so" for library in LIBRARIES}
        ours = [path for path in (BUILD / "lib").rglob("*.so*")
                if path.resolve().name not in of_host_cann]
        for path in [BUILD / "bin/opserved", *ours]:
            imported = symbols(path, "--undefined-only")
            self.assertGreater(len(imported), 5, path)
            self.assertEqual({name for name in imported if ABI_NAME.fullmatch(name)}, set(), path)

    def test_functions_are_resolved_as_what_they_are_listed(self):
        self.assertGreater(len(self.resolved), 30)
        for name, kind in self.resolved.items():
            self.assertIn(name, names(kind))

    def test_the_first_operators_have_listed_stages(self):
        self.assertGreater(len(names("stage")), 9)
        self.assertEqual(names("stage") - self.stages, set())

    def test_the_server_names_no_other_function(self):
        texts = sources("server")
        self.assertEqual(literals(texts.values()) - set(self.resolved), set())
        # No other file could look up a name that it puts together; socket_functions.cc looks up the C library's and
        # OpenSSL's functions behind its own, operator_pack.cc those that the texts of packs name.
        self.assertEqual(sorted(path.name for path, text in texts.items() if re.search(r"\bdlv?sym\b", text)),
                         ["acl_library.cc", "operator_pack.cc", "socket_functions.cc"])


if __name__ == "__main__":
    unittest.main()
