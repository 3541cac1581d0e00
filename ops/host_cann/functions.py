#!/usr/bin/env python3
"""Writes ops/host_cann/FUNCTIONS.md: the functions of the ABI that the host CANN's libraries export.

usage: functions.py [--check] BUILD_DIR

--check writes nothing, and exits with 1 if the page says something else.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "ops/host_cann/FUNCTIONS.md"
ABI = ROOT / "ops/abi"

INTRODUCTION = """# Functions of the host CANN

Made by `ops/host_cann/functions.py` from the symbols that the libraries export; a test compares the two. A program that
calls other functions of CANN does not link.

The two stages of each operator are in `libopapi.so`, or `libcust_opapi.so` if CANN has it in a custom package:
[OPERATORS.md](../OPERATORS.md). Functions that begin with `opserveHost` are this implementation's own (`opserve/host_cann.h`).
"""


def exported(library: pathlib.Path) -> list[str]:
    """The names that programs in C can link with; names of C++ are between the libraries."""
    run = subprocess.run(["nm", "--dynamic", "--defined-only", "--format=posix", library],
                         check=True, capture_output=True, text=True)
    names = {line.split()[0].split("@")[0] for line in run.stdout.splitlines()}
    return sorted(name for name in names if not name.startswith("_Z"))


def declarations() -> dict[str, str]:
    """The header of each function, as programs include it."""
    found = {}
    for directory in (ABI, ROOT / "ops/host_cann"):
        for path in sorted(directory.rglob("*.h")):
            for name in re.findall(r"\b(\w+)\(", path.read_text(encoding="utf-8")):
                found.setdefault(name, str(path.relative_to(directory)))
    return found


def page(build: pathlib.Path) -> str:
    parts = [INTRODUCTION]
    headers = declarations()
    for library in ("libascendcl.so", "libnnopbase.so"):
        by_header: dict[str, list[str]] = {}
        names = exported(build / "lib/opserve/host-cann" / library)
        for name in names:
            by_header.setdefault(headers[name], []).append(name)
        parts.append(f"\n## {library}: {len(names)} functions\n")
        for header, functions in sorted(by_header.items()):
            parts.append(f"\n`{header}`:\n\n```\n" + "\n".join(functions) + "\n```\n")
    return "".join(parts)


def main() -> int:
    *options, build = sys.argv[1:]
    text = page(pathlib.Path(build))
    if options != ["--check"]:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{PAGE} does not say what the libraries export: run ops/host_cann/functions.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
