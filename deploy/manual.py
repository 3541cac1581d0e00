#!/usr/bin/env python3
"""Makes the manual page of opserved out of what `opserved --help` says.

usage: manual.py OPSERVED VERSION > opserved.8
"""

import re
import subprocess
import sys

# A heading of flags, or a flag with its type and the lines that explain it.
PART = re.compile(r"^  (?P<heading>\w.*)\n|^    --(?P<name>\w+) (?P<type>\S+)\n(?P<text>(?: {6}.*\n)+)",
                  re.MULTILINE)

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
    return f".PP\n.nf\n{plain(text)}\n.fi\n"


def page(usage, version):
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


def main():
    program, version = sys.argv[1:]
    run = subprocess.run([program, "--help"], stdout=subprocess.PIPE, text=True, check=True)
    sys.stdout.write(page(run.stdout, version))


if __name__ == "__main__":
    main()
