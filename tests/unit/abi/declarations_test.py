"""The headers in ops/abi declare what tests/data/abi lists, and nothing else. (That it is declared
with the right values and types is what the compiler finds out: make_checks.py.)"""

import re
import unittest

import abi_data

# Everything a header may hold, in the order in which it is looked for. What remains is an error, so
# that no declaration is overlooked for being written differently.
PATTERNS = {
    "comment": r"/\*.*?\*/|//[^\n]*",
    "guard": r"^#(?:ifndef|endif|define OPSERVE_\w+_H_$|include|if\b|ifdef|else)[^\n]*",
    "linkage": r'extern "C" \{',
    "visibility": r"^#define (?:ACL_FUNC_VISIBILITY|ACLNN_API)\b[^\n]*",
    # With arguments, so without a value to compare.
    "logging": r"^#define ACL_APP_LOG\((?:[^\n]*\\\n)*[^\n]*",
    "macro": r"^#define (\w+) [^\n]*",
    "enumeration": r"typedef enum \{([^}]*)\}\s*(\w+);",
    "struct": r"typedef (?:struct|union) \{([^}]*)\}\s*(\w+);",
    "opaque": r"typedef struct (\w+) \w+;",
    "constant": r"constexpr (\w+) (\w+) = [^;]*;",
    "callback": r"typedef [^;(]*\(\*(\w+)\)\([^;]*\);",
    "alias": r"typedef [^;]*\b(\w+);",
    "function": r"(?:ACL_FUNC_VISIBILITY|ACLNN_API)\s[^;(]*\b(\w+)\([^;]*\);",
    "end of linkage": r"\}",
}


def declarations():
    """What each pattern finds in all headers together, and what is left of them."""
    found = {kind: [] for kind in PATTERNS}
    rest = ""
    for path in sorted(abi_data.ABI.rglob("*.h")):
        text = path.read_text(encoding="utf-8")
        for kind, pattern in PATTERNS.items():
            expression = re.compile(pattern, re.M | re.S)
            found[kind] += expression.findall(text)
            text = expression.sub("", text)
        rest += text
    return found, rest.strip()


def members(body, name):
    """Pairs of `name` and each enumerator or field between two braces."""
    return [(name, re.search(r"\b(\w+)\s*(?:=.*|\[\w+\])?$", part.strip())[1])
            for part in re.split("[,;]", body) if part.strip()]


class DeclarationsTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.found, cls.rest = declarations()

    def assert_same(self, declared, listed):
        self.assertEqual(sorted(declared), sorted(listed))
        self.assertEqual(len(set(listed)), len(listed))

    def test_every_line_was_understood(self):
        self.assertEqual(self.rest, "")

    def test_enumerators_macros_and_constants(self):
        declared = [pair for body, name in self.found["enumeration"] for pair in members(body, name)]
        declared += [("macro", name) for name in self.found["macro"]] + self.found["constant"]
        self.assert_same(declared, [(e.type, e.name) for e in abi_data.enumerators()])

    def test_structs_and_their_fields(self):
        self.assert_same([name for _, name in self.found["struct"]],
                         [s.name for s in abi_data.structs()])
        self.assert_same([pair for body, name in self.found["struct"] for pair in members(body, name)],
                         [(f.struct, f.name) for f in abi_data.fields()])
        self.assert_same(self.found["opaque"], abi_data.opaque_structs())

    def test_aliases(self):
        self.assert_same(self.found["alias"] + self.found["callback"],
                         [a.name for a in abi_data.aliases()])

    def test_functions(self):
        """Those of operators are held against their descriptions (operator_files_test.py)."""
        listed = [f.name for f in abi_data.functions() if f.cls != "stage"]
        self.assert_same([name for name in self.found["function"]
                          if not re.match(r"aclnn(?!Init$|Finalize$)", name)],
                         [name for name in listed if not re.match(r"aclnn(?!Init$|Finalize$)", name)])
        stages = set(self.found["function"]) - set(listed)
        for names in abi_data.operators().values():
            self.assertEqual(names - stages, set())


if __name__ == "__main__":
    unittest.main()
