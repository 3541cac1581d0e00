"""Writes the sources that hold ops/abi against tests/data/abi when they are compiled and linked.

usage: make_checks.py OUTPUT_DIR

  abi_checks.cc   C++: every value, size, offset and type, as static assertions
  acl_calls.c     C: a pointer of the exact type to every function of the runtime
  aclnn_calls.c   C: the same for nnopbase and the operators, whose headers are C++, by prototypes of its own
"""

import pathlib
import re
import sys

import abi_data

HEADERS = sorted(str(path.relative_to(abi_data.ABI)) for path in abi_data.ABI.rglob("*.h"))
RUNTIME = "ascendcl"
OPAQUE_TO_C = re.compile(rf"\b({'|'.join(abi_data.opaque_structs())})\b")


def cpp_checks():
    yield from (f'#include "{header}"' for header in HEADERS)
    yield "#include <cstddef>\n#include <type_traits>"
    yield "template <typename T>\nconcept Complete = requires { sizeof(T); };"
    enumerators = abi_data.enumerators()
    for type_ in sorted({e.type for e in enumerators} - {"macro"}):
        yield f"static_assert(sizeof({type_}) == 4);"
    for e in enumerators:
        yield f"static_assert({e.name} == {e.value});"
        if e.type != "macro":
            yield f"static_assert(std::is_same_v<std::remove_cv_t<decltype({e.name})>, {e.type}>);"
    for alias in abi_data.aliases():
        yield f"static_assert(std::is_same_v<{alias.name}, {alias.type}>);"
    for name in abi_data.opaque_structs():
        yield f"static_assert(std::is_class_v<{name}> && !Complete<{name}>);"
    for s in abi_data.structs():
        yield f"static_assert(sizeof({s.name}) == {s.size} && alignof({s.name}) == {s.alignment});"
    for f in abi_data.fields():
        yield f"static_assert(offsetof({f.struct}, {f.name}) == {f.offset});"
        yield f"static_assert(std::is_same_v<decltype({f.struct}::{f.name}), {f.type}>);"
    for f in abi_data.functions():
        yield (f"static_assert(std::is_same_v<decltype(&{f.name}), "
               f"{f.result} (*)({f.parameters})>);")


def c_calls(name, functions):
    yield "typedef void (*Function)(void);"
    yield f"Function const {name}[] = {{"
    for f in functions:
        # Of two pointers to functions a conditional expression takes only those of one type.
        exact = f"({f.result} (*)({f.parameters or 'void'}))0"
        yield f"    (Function)(1 ? &{f.name} : {exact}),"
    yield "    0};"


def acl_calls():
    yield '#include "acl/acl.h"'
    yield from c_calls("kAclFunctions",
                       [f for f in abi_data.functions() if f.library == RUNTIME])


def aclnn_calls():
    """Handles are void*, as for callers that know no more than the binary interface."""
    functions = [f._replace(result=OPAQUE_TO_C.sub("void", f.result).replace("aclnnStatus", "int32_t"),
                            parameters=OPAQUE_TO_C.sub("void", f.parameters))
                 for f in abi_data.functions() if f.library != RUNTIME]
    yield '#include <stdbool.h>\n#include "acl/acl.h"'
    yield from (f"extern {f.result} {f.name}({f.parameters or 'void'});" for f in functions)
    yield from c_calls("kAclnnFunctions", functions)


def main():
    output = pathlib.Path(sys.argv[1])
    for name, lines in (("abi_checks.cc", cpp_checks()), ("acl_calls.c", acl_calls()),
                        ("aclnn_calls.c", aclnn_calls())):
        (output / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
