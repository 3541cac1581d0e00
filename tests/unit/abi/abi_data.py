"""Reads tests/data/abi, whose README.md explains the files."""

import collections
import pathlib
import re

DATA = pathlib.Path(__file__).resolve().parents[2] / "data/abi"
ABI = pathlib.Path(__file__).resolve().parents[3] / "ops/abi"

Enumerator = collections.namedtuple("Enumerator", "type name value")
Alias = collections.namedtuple("Alias", "name type")
Struct = collections.namedtuple("Struct", "name size alignment")
Field = collections.namedtuple("Field", "struct name offset type")
Function = collections.namedtuple("Function", "library cls result name parameters")


def _lines(name, columns):
    """The lines of a file, split into at most `columns` words."""
    for line in (DATA / name).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            yield line.split(maxsplit=columns - 1)


def enumerators():
    return [Enumerator(*words) for words in _lines("enumerators.txt", 3)]


def aliases():
    return [Alias(*words[1:]) for words in _lines("types.txt", 3) if words[0] == "alias"]


def opaque_structs():
    return [words[1] for words in _lines("types.txt", 2) if words[0] == "opaque"]


def structs():
    return [Struct(*words[1:]) for words in _lines("types.txt", 4) if words[0] == "struct"]


def fields():
    return [Field(*words[1:]) for words in _lines("types.txt", 5) if words[0] == "field"]


def operators():
    """Stage functions of the operators that are described, by the library that exports them."""
    found = {"opapi": set(), "cust_opapi": set()}
    for path in sorted((ABI.parent / "catalog").glob("*.textproto")):
        for text in re.split(r"(?m)^operator \{", path.read_text(encoding="utf-8"))[1:]:
            function = re.search(r'^  function: "(\w+)"', text, re.M)[1]
            library = "cust_opapi" if re.search(r"^  custom: true", text, re.M) else "opapi"
            found[library] |= {function, f"{function}GetWorkspaceSize"}
    return found


def functions():
    """All functions; `parameters` is the text between the brackets."""
    return [Function(library, cls, *re.fullmatch(r"(.+?)\s*\b(\w+)\((.*)\)", signature).groups())
            for library, cls, signature in _lines("functions.txt", 3)]
