#!/usr/bin/python3
"""Writes ops/OPERATORS.md from the catalogue: usage reference.py [--check] BUILD_DIRECTORY.

Asks an opserved of that build for its catalogue, as any client does. --check writes nothing, and fails if
the page is not what the catalogue says now.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "ops/OPERATORS.md"

HEAD = """# Operators

Made by `ops/reference.py` from the catalogue (`ops/catalog`): change that, not this. A daemon tells the same: `opserve ops NAME`.
"""


def catalogue(build):
    with tempfile.TemporaryDirectory(prefix="opserve-") as directory:
        target = f"unix:{directory}/socket"
        daemon = subprocess.Popen(
            [build / "bin/opserved", f"--listen={target}", "--metrics_listen=none",
             "--admin_listen=none"], stderr=subprocess.PIPE, text=True)
        try:
            for line in daemon.stderr:
                if json.loads(line)["event"] == "ready":
                    break
            listing = subprocess.run(
                [build / "bin/opserve", f"--target={target}", "--format=json", "ops"],
                check=True, capture_output=True, text=True)
        finally:
            daemon.terminate()
            daemon.communicate()
    return json.loads(listing.stdout)["operators"]


def dtypes(part):
    return ", ".join(name.removeprefix("DATA_TYPE_") for name in part["dtypes"])


def choices(attribute):
    if "names" in attribute and attribute["names"]:
        return ", ".join(f"{name['name']} ({name['value']})" for name in attribute["names"])
    return attribute["type"].removeprefix("TYPE_").lower()


def default(attribute):
    return json.dumps(next(iter(attribute["default_value"].values())))


def documentation(text):
    """Its lines; indented ones are formulas."""
    lines, in_formula = [], False
    for line in text.split("\n"):
        if line.startswith("  ") != in_formula:
            in_formula = not in_formula
            lines.append("```")
        lines.append(line.removeprefix("  ") if in_formula else " ".join(line.split()))
    return lines + (["```"] if in_formula else [])


def render(operators):
    lines = [HEAD]
    for operator in operators:
        lines += [f"## {operator['name']}", "", operator["summary"], ""]
        lines += documentation(operator["documentation"])
        lines += ["", "| Input | Types | |", "|---|---|---|"]
        lines += [f"| `{part['name']}` | {dtypes(part)} | {part['documentation']} |"
                  for part in operator["inputs"]]
        if operator.get("attributes"):
            lines += ["", "| Attribute | Values | Default | |", "|---|---|---|---|"]
            lines += [f"| `{part['name']}` | {choices(part)} | {default(part)} | "
                      f"{part['documentation']} |" for part in operator["attributes"]]
        lines += ["", "| Output | Types | |", "|---|---|---|"]
        lines += [f"| `{part['name']}` | {dtypes(part)} | {part['documentation']} |"
                  for part in operator["outputs"]]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def main():
    check = "--check" in sys.argv
    page = render(catalogue(pathlib.Path(sys.argv[-1]).resolve()))
    if not check:
        PAGE.write_text(page, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        sys.exit("ops/OPERATORS.md is not current: run ops/reference.py BUILD_DIRECTORY")


if __name__ == "__main__":
    main()
