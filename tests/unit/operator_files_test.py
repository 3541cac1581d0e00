"""Descriptions, the vendor's headers and the kernels agree: usage operator_files_test.py ROOT."""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop())
HEADERS = "ops/abi/aclnnop"

# How the headers declare each kind of argument, without const.
KINDS = {
    "aclTensor*": "TENSOR",
    "aclTensorList*": "TENSOR_LIST",
    "aclScalar*": "SCALAR",
    "aclScalarList*": "SCALAR_LIST",
    "aclIntArray*": "INT_ARRAY",
    "aclBoolArray*": "BOOL_ARRAY",
    "aclFloatArray*": "FLOAT_ARRAY",
    "int64_t": "INT64",
    "int32_t": "INT32",
    "int": "INT32",
    "int8_t": "INT8",
    "uint64_t": "UINT64",
    "bool": "BOOL",
    "double": "DOUBLE",
    "float": "FLOAT",
    "char*": "TEXT",
    "aclDataType": "DTYPE",
}

# Rooms that must not know any operator, by the folders' paths.
MADE_OF_THE_CATALOGUE = ROOT / "client/cpp/operators.h"  # operators_header_test holds it against that
GENERIC = ["proto", "server", "client/cpp", "ops/host_cann"]


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def parse_text(text):
    """Protobuf text as a list of (field, value), where a message is such a list again."""
    tokens = iter(re.findall(r'#[^\n]*|"(?:[^"\\]|\\.)*"|[{}:]|[^\s{}:"#]+', text))

    def message():
        fields = []
        for token in tokens:
            if token.startswith("#"):
                continue
            if token == "}":
                break
            if token == "{":
                fields.append((name, message()))
            elif token == ":":
                fields.append((name, None))
            elif fields and token.startswith('"'):  # strings in a row are one
                fields[-1] = (fields[-1][0], (fields[-1][1] or "") + token[1:-1])
            elif fields and fields[-1][1] is None:
                fields[-1] = (fields[-1][0], token)
            else:
                name = token
        return fields

    return message()


class Operator:

    def __init__(self, family, fields):
        single = dict(fields)
        self.family = family
        self.name = single["name"]
        self.function = single["function"]
        self.header = single["header"]
        self.arguments = [dict(value) for field, value in fields if field == "argument"]

    def declared(self):
        """The kinds and names that the description gives stage one."""
        return [(argument.get("kind", "TENSOR"), argument.get("vendor") or camel(argument["name"]))
                for argument in self.arguments]


def camel(name):
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def families():
    return sorted((ROOT / "ops/catalog").glob("*.textproto"))


def operators():
    return [Operator(family.name, value)
            for family in families()
            for field, value in parse_text(family.read_text(encoding="utf-8"))
            if field == "operator"]


def prototypes(header):
    """The functions of a header: name to the list of (kind or type, name) of its parameters."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", read(f"{HEADERS}/{header}"), flags=re.S)
    found = {}
    for name, parameters in re.findall(r"\baclnnStatus\s+(\w+)\s*\(([^()]*)\)\s*;", text):
        parsed = []
        for parameter in parameters.split(","):
            words = re.sub(r"\bconst\b", " ", parameter).replace("*", " * ").split()
            kind = "".join(words[:-1])
            parsed.append((KINDS.get(kind, kind), words[-1]))
        found[name] = parsed
    return found


STAGE_ONE_END = [("uint64_t*", "workspaceSize"), ("aclOpExecutor**", "executor")]
STAGE_TWO = [("void*", "workspace"), ("UINT64", "workspaceSize"), ("aclOpExecutor*", "executor"),
             ("aclrtStream", "stream")]


class OperatorFilesTest(unittest.TestCase):

    def test_descriptions_are_read(self):
        self.assertGreaterEqual(len(operators()), 200)
        for operator in operators():
            self.assertTrue(operator.arguments, operator.name)

    def test_headers_declare_what_the_descriptions_say(self):
        for operator in operators():
            with self.subTest(operator=operator.name, header=operator.header):
                self.assertTrue((ROOT / HEADERS / operator.header).exists(), "no such header")
                functions = prototypes(operator.header)
                self.assertEqual(functions.get(f"{operator.function}GetWorkspaceSize"),
                                 operator.declared() + STAGE_ONE_END)
                self.assertEqual(functions.get(operator.function), STAGE_TWO)

    def test_every_operator_has_a_kernel(self):
        code = "".join(path.read_text(encoding="utf-8")
                       for path in (ROOT / "kernels/cpu").glob("*.cc"))
        named = set(re.findall(r'"(aclnn\w+)"', code))
        for operator in operators():
            with self.subTest(operator=operator.name):
                self.assertTrue(operator.function in named, "no kernel")

    def test_every_operator_is_in_one_family_once(self):
        for family in families():
            self.assertIn(family.name, {operator.family for operator in operators()})
        for key in ("name", "function"):
            where = {}
            for operator in operators():
                where.setdefault(getattr(operator, key), []).append(operator.family)
            self.assertEqual({name: files for name, files in where.items() if len(files) > 1}, {})

    def test_no_other_room_knows_an_operator(self):
        names = re.compile("|".join(
            rf"\b(?:aclnn)?{operator.name}(?:GetWorkspaceSize)?\b" for operator in operators()
            if len(re.findall("[A-Z]", operator.name)) > 2))  # "Add" is a word as well
        for room in GENERIC:
            for path in (ROOT / room).rglob("*"):
                if path.suffix not in (".cc", ".h", ".proto") or path == MADE_OF_THE_CATALOGUE:
                    continue
                code = re.sub(r"//.*|/\*(?s:.*?)\*/", "", path.read_text(encoding="utf-8"))
                self.assertEqual(names.findall(code), [], path.relative_to(ROOT))


if __name__ == "__main__":
    unittest.main()
