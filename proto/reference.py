#!/usr/bin/python3
"""Writes proto/API.md from the comments of proto/opserve/v1: usage reference.py [--check].

--check writes nothing, and fails if the page is out of date.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "proto/API.md"
SERVICE, MESSAGE, ENUM = 6, 4, 5  # field numbers in FileDescriptorProto
METHOD, FIELD, NESTED, NESTED_ENUM, VALUE = 2, 2, 3, 4, 2

HEAD = """# Protocol reference

Made by `proto/reference.py` from the comments in `proto/opserve/v1`: change those, not this. gRPC's health and reflection services
and the Open Inference Protocol are served beside it. The operators and their arguments are data (`ListOperators`): see
`ops/OPERATORS.md`.
"""

Field = descriptor_pb2.FieldDescriptorProto
SCALARS = {number: name[len("TYPE_"):].lower() for name, number in Field.Type.items()}


def load():
    files = sorted((ROOT / "proto/opserve/v1").glob("*.proto"))
    with tempfile.NamedTemporaryFile() as output:
        subprocess.run(["protoc", f"-I{ROOT / 'proto'}", "--include_source_info",
                        f"--descriptor_set_out={output.name}", *map(str, files)], check=True)
        return descriptor_pb2.FileDescriptorSet.FromString(output.read())


def squeeze(text):
    """Paragraphs of a comment, each in one line."""
    paragraphs = re.split(r"\n\s*\n", text)
    return [" ".join(paragraph.split()) for paragraph in paragraphs if paragraph.strip()]


class Writer:
    """Renders one file of the protocol."""

    def __init__(self, file):
        self.comments = {tuple(place.path): (place.leading_comments + "\n\n" + place.trailing_comments)
                         for place in file.source_code_info.location}
        self.package = "." + file.package + "."
        self.lines = []

    def comment(self, path):
        return squeeze(self.comments.get(path, ""))

    def paragraphs(self, path):
        for paragraph in self.comment(path):
            self.lines += [paragraph.replace("<", "\\<"), ""]

    def type_name(self, field):
        if field.type not in (Field.TYPE_MESSAGE, Field.TYPE_ENUM):
            return SCALARS[field.type]
        name = field.type_name
        return name[len(self.package):] if name.startswith(self.package) else name.lstrip(".")

    def cell(self, path):
        return " ".join(self.comment(path)).replace("|", "\\|").replace("<", "\\<")

    def service(self, service, path):
        self.lines += [f"### Service {service.name}", ""]
        self.paragraphs(path)
        for i, method in enumerate(service.method):
            asks = ("stream " if method.client_streaming else "") + method.input_type.split(".")[-1]
            gives = ("stream " if method.server_streaming else "") + method.output_type.split(".")[-1]
            self.lines += [f"**{method.name}** ({asks}) returns ({gives})", ""]
            self.paragraphs(path + (METHOD, i))

    def message(self, message, path, prefix=""):
        name = prefix + message.name
        self.lines += [f"### {name}", ""]
        self.paragraphs(path)
        if message.field:
            self.lines += ["| | Field | Type | |", "|---|---|---|---|"]
        for i, field in enumerate(message.field):
            kind = self.type_name(field)
            if field.label == Field.LABEL_REPEATED:
                kind = "repeated " + kind
            elif field.proto3_optional:
                kind = "optional " + kind
            elif field.HasField("oneof_index"):
                kind += f" (one of `{message.oneof_decl[field.oneof_index].name}`)"
            self.lines.append(f"| {field.number} | `{field.name}` | {kind} | "
                              f"{self.cell(path + (FIELD, i))} |")
        if message.field:
            self.lines.append("")
        for i, nested in enumerate(message.enum_type):
            self.enum(nested, path + (NESTED_ENUM, i), name + ".")
        for i, nested in enumerate(message.nested_type):
            if not nested.options.map_entry:
                self.message(nested, path + (NESTED, i), name + ".")

    def enum(self, enum, path, prefix=""):
        self.lines += [f"### {prefix}{enum.name}", ""]
        self.paragraphs(path)
        self.lines += ["| | Value | |", "|---|---|---|"]
        for i, value in enumerate(enum.value):
            self.lines.append(f"| {value.number} | `{value.name}` | {self.cell(path + (VALUE, i))} |")
        self.lines.append("")


def render(files):
    lines = [HEAD]
    for file in sorted(files.file, key=lambda file: (not file.service, file.name)):
        writer = Writer(file)
        for i, service in enumerate(file.service):
            writer.service(service, (SERVICE, i))
        for i, message in enumerate(file.message_type):
            writer.message(message, (MESSAGE, i))
        for i, enum in enumerate(file.enum_type):
            writer.enum(enum, (ENUM, i))
        lines += [f"## {file.name}", "", *writer.lines]
    return "\n".join(lines).rstrip() + "\n"


def main():
    page = render(load())
    if sys.argv[1:] != ["--check"]:
        PAGE.write_text(page, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        sys.exit("proto/API.md is not current: run proto/reference.py")


if __name__ == "__main__":
    main()
