#!/usr/bin/env python3
"""Makes the manual page of opserve or opserved from the help texts of the program.

usage: manual.py PROGRAM VERSION > PAGE
"""

import pathlib
import re
import subprocess
import sys

# A heading of flags, or a flag with its type and the lines that explain it.
PART = re.compile(r"^  (?P<heading>\w.*)\n|^    --(?P<name>\w+) (?P<type>\S+)\n(?P<text>(?: {6}.*\n)+)",
                  re.MULTILINE)

# A part of a help text of opserve, with an option or a command in each entry.
SECTION = re.compile(r"\s*(?P<title>(?!Examples?:)\w+):\n(?P<entries>(?:  .*\n)+)")
COMMON = re.compile(r'\n*For --.* see "opserve --help"\.\n*$')  # the page has these options once
ENTRY = re.compile(r"^  (?P<name>\S.{30} |\S.*\n {34})(?P<text>\S.*)\n", re.MULTILINE)

CLIENT_HEAD = """.TH OPSERVE 1 "" "opserve {version}" "User Commands"
.SH NAME
opserve \\- runs gradient operators on the NPUs of a daemon
.SH SYNOPSIS
.B opserve
[\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]
"""

HEAD = """.TH OPSERVED 8 "" "opserved {version}" "System Administration"
.SH NAME
opserved \\- lends Ascend NPUs to programs that have none
.SH SYNOPSIS
.B opserved
[\\fB\\-\\-config=\\fIFILE\\fR] [\\fIFLAGS\\fR]
.SH DESCRIPTION
"""

FILES = """.SH FILES
.TP
.I /etc/opserve/opserved.textproto
The configuration of the service that the package installs, in protobuf text format.
.TP
.I /run/opserve/opserve.sock
Its socket, for root and the members of the group
.BR opserve .
.SH SEE ALSO
.BR opserve (1)
"""


def plain(text):
    """Text in which nothing is a request to roff."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^(?=[.'])", r"\\&", text, flags=re.MULTILINE)


def literal(text):
    lines = re.sub(r"^$", r"\\&", plain(text), flags=re.MULTILINE)
    return f".PP\n.nf\n{lines}\n.fi\n"


def entry(name, text):
    """An option with its values, or an argument."""
    name, *values = name.split()
    values = plain(values[0]) if values and name.startswith("-") else ""
    return f".TP\n.B {plain(name)}" + (f" \\fI{values}\\fR" if values else "") + f"\n{plain(text)}\n"


def client_parts(text):
    """Description, options, names of commands and examples of a help text."""
    introduction, rest = re.split(r"\n+Usage: .*\n", text, maxsplit=1)
    options, commands, position = "", [], 0
    while section := SECTION.match(rest, position):
        position = section.end()
        entries = [(e["name"].rstrip(), e["text"]) for e in ENTRY.finditer(section["entries"])]
        # Nothing may be lost because its form is not known here.
        if ENTRY.sub("", section["entries"]):
            raise ValueError(f"not understood: {ENTRY.sub('', section['entries'])}")
        if section["title"] == "Subcommands":
            commands = [name.split(",")[0] for name, _ in entries]
        else:
            options += "".join(entry(*e) for e in entries if e[0] != "-h,--help")
    examples = COMMON.sub("", rest[position:]).strip("\n")
    return plain(introduction), options, commands, examples and literal(examples)


def client_command(program, names):
    """The part about a command, and those about its own commands."""
    introduction, options, commands, examples = client_parts(output(program, "help", *names))
    result = f".SS {plain(' '.join(names))}\n{introduction}\n{options}{examples}"
    return result + "".join(client_command(program, [*names, name]) for name in commands)


def client_page(program, version):
    introduction, options, commands, examples = client_parts(output(program, "--help"))
    return (CLIENT_HEAD.format(version=version) + f".SH DESCRIPTION\n{introduction}\n.SH OPTIONS\n{options}"
            ".SH COMMANDS\n" + "".join(client_command(program, [name]) for name in commands)
            + f".SH EXAMPLES AND EXIT STATUS\n{examples}")


def daemon_page(usage, version):
    introduction, flags = usage.split("Flags:\n", 1)
    result = HEAD.format(version=version)
    for paragraph in introduction.strip("\n").split("\n\n"):
        result += literal(paragraph) if paragraph.startswith(" ") else f".PP\n{plain(paragraph)}\n"
    result += ".SH FLAGS\n"
    # Nothing may be lost because its form is not known here.
    if PART.sub("", flags).strip():
        raise ValueError(f"not understood: {PART.sub('', flags).strip()}")
    for part in PART.finditer(flags):
        if part["heading"]:
            result += f".SS {plain(part['heading'])}\n"
            continue
        # The name has a line of its own, which the tests of the installation look for.
        text = " ".join(part["text"].split())
        result += f".TP\n.B \\-\\-{plain(part['name'])}\n({plain(part['type'])}) {plain(text)}\n"
    return result + FILES


def output(program, *arguments):
    return subprocess.run([program, *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout


def main():
    program, version = sys.argv[1:]
    is_daemon = pathlib.Path(program).name == "opserved"
    sys.stdout.write(daemon_page(output(program, "--help"), version) if is_daemon
                     else client_page(program, version))


if __name__ == "__main__":
    main()
