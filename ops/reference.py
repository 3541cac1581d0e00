#!/usr/bin/python3
"""Writes ops/OPERATORS.md from the catalogue: usage reference.py [--check] BUILD_DIRECTORY.

Asks an opserved of that build for its catalogue, as any client does. --check writes nothing, and fails if
the page is out of date.
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
[EVIDENCE.md](EVIDENCE.md) shows for each one how many cases test it, how exact and how fast it is.
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
    return ", ".join(name.removeprefix("DATA_TYPE_") for name in part.get("dtypes", []))


def input_types(part):
    """Its dtypes and its special properties."""
    notes = [word for word in ("optional", "list", "in_place", "contiguous")
             if part.get(word)]
    return ", ".join([dtypes(part), *(note.replace("_", " ") for note in notes)])


def output_types(part):
    notes = [word for word in ("list", "in_place") if part.get(word)]
    if part.get("masked"):
        notes.append("may be left out")
    return ", ".join([dtypes(part) or "by rule", *(note.replace("_", " ") for note in notes)])


def choices(attribute):
    if attribute.get("names"):
        return ", ".join(f"{name['name']} ({name['value']})" for name in attribute["names"])
    if attribute.get("texts"):
        return ", ".join(attribute["texts"])
    kind = attribute["type"].removeprefix("TYPE_").lower()
    return {"int64s": "list of int64", "bools": "list of bool", "doubles": "list of double",
            "scalar": "number"}.get(kind, kind)


def default(attribute):
    if "default_value" not in attribute:
        return "required" if attribute.get("required") else "left out"
    value = next(iter(attribute["default_value"].values()))
    if isinstance(value, dict):  # a scalar or a list
        value = value.get("values", value.get("int64_value", value.get("double_value", [])))
    return json.dumps(value) if isinstance(value, bool) else str(value).removeprefix("DATA_TYPE_")


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
        if operator.get("inputs"):
            lines += ["", "| Input | Types | |", "|---|---|---|"]
            lines += [f"| `{part['name']}` | {input_types(part)} | {part['documentation']} |"
                      for part in operator["inputs"]]
        if operator.get("attributes"):
            lines += ["", "| Attribute | Values | Default | |", "|---|---|---|---|"]
            lines += [f"| `{part['name']}` | {choices(part)} | {default(part)} | "
                      f"{part['documentation']} |" for part in operator["attributes"]]
        lines += ["", "| Output | Types | |", "|---|---|---|"]
        lines += [f"| `{part['name']}` | {output_types(part)} | {part['documentation']} |"
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
