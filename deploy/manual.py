#!/usr/bin/env python3
"""Makes the manual page of opserved out of what `opserved --help` says.

usage: manual.py OPSERVED VERSION > opserved.8
"""

import re
import subprocess
import sys

FLAG = re.compile(r"^    --(\w+) \((.*?)\);\s+default: (.*?);$", re.MULTILINE | re.DOTALL)

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
    introduction = introduction.removeprefix("opserved: ")
    result = HEAD.format(version=version)
    for paragraph in introduction.strip("\n").split("\n\n"):
        result += literal(paragraph) if paragraph.startswith(" ") else f".PP\n{plain(paragraph)}\n"
    result += ".SH FLAGS\n"
    found = FLAG.findall(flags)
    # Each flag has a line of its own that begins so: one that is not understood must not be lost.
    if len(found) != len(re.findall(r"^    --", flags, flags=re.MULTILINE)):
        raise ValueError("there are flags of a form that this script does not know")
    for name, text, default in found:
        text = " ".join(text.split())
        if default not in ("", '""') and "Default:" not in text:
            text += f" Default: {default}."
        result += f".TP\n.B \\-\\-{plain(name)}\n{plain(text)}\n"
    return result + FILES


def main():
    program, version = sys.argv[1:]
    # It exits with 1 after help, as all programs with abseil's flags do.
    run = subprocess.run([program, "--help"], stdout=subprocess.PIPE, text=True, check=False)
    sys.stdout.write(page(run.stdout, version))


if __name__ == "__main__":
    main()
