#!/usr/bin/env python3
"""Writes the pages of an installation: those of the source tree, with the paths that an installation has.

usage: installed_pages.py OUTPUT_DIR

A path of the tree becomes the installed file's; one that is not installed is shown as SOURCE/PATH, and the page says
what SOURCE is.
"""

import pathlib
import posixpath
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]

PAGES = {
    "README.md": "README.md",
    "client/cpp/README.md": "CLIENT_CPP.md",
    "deploy/README.md": "OPERATING.md",
    "deploy/RUNBOOK.md": "RUNBOOK.md",  # alerts lead there (prometheus/rules/alerts.yml)
    "deploy/BRINGUP.md": "BRINGUP.md",
    "deploy/proxy/README.md": "examples/proxy/README.md",
    "ops/OPERATORS.md": "OPERATORS.md",
    "ops/PACKS.md": "OPERATOR_PACKS.md",
    "ops/host_cann/README.md": "HOST_CANN.md",
    "ops/host_cann/FUNCTIONS.md": "FUNCTIONS.md",
    "proto/API.md": "PROTOCOL.md",
    "proto/SESSION.md": "SESSION.md",
    "server/kserve/README.md": "INFERENCE.md",
}

# Other files and folders, from share/doc/opserve.
FILES = {
    "deploy/examples": "examples",
    "deploy/grafana": "examples/grafana",
    "deploy/prometheus": "examples/prometheus",
    "deploy/proxy": "examples/proxy",
    "deploy/seccomp/opserved.json": "examples/opserved.json",
    "deploy/systemd/ascend.conf": "examples/ascend.conf",
    "ops/examples": "examples/operator_pack",
    "ops/host_cann/opserve/host_cann.h": "../../../include/opserve/cann/opserve/host_cann.h",
    "proto/opserve/v1": "../../opserve/proto/opserve/v1",
}

NOTE = "\n*`SOURCE` below stands for a checkout of opserve's source.*\n"

FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[([^\]]*)\]\(([^)#:]+)(#[^)]*)?\)")
QUOTED = re.compile(r"`([\w.*-][\w./*-]*)`")
# In a block of commands: a path from the root of the tree.
COMMAND = re.compile(r"(?<![\w/.$-])((?:client|deploy|kernels|ops|proto|server|tests)/[\w./*-]*\w)")


def source_path(page: str, text: str) -> str | None:
    """The file of the tree that `text` names, relative to its page or to the root."""
    if ("/" not in text and not text.endswith(".md")) or text.startswith("build/"):
        return None
    for base in (posixpath.dirname(page), ""):
        path = posixpath.normpath(posixpath.join(base, text))
        if not path.startswith("..") and any(ROOT.glob(path)):
            return path
    return None


def installed_path(page: str, source: str) -> str | None:
    """The place of a file of the tree, relative to the installed page. None: it has none."""
    here = posixpath.dirname(PAGES[page]) or "."
    if source in PAGES:
        return posixpath.relpath(PAGES[source], here)
    for name, place in sorted(FILES.items(), key=lambda item: -len(item[0])):
        if source == name or source.startswith(name + "/"):
            return posixpath.relpath(posixpath.join(place, source[len(name) + 1:]), here)
    return None


def installed_page(page: str) -> str:
    def link(match: re.Match[str]) -> str:
        text, target, fragment = match[1], match[2], match[3] or ""
        source = source_path(page, target)
        if source is None:
            raise ValueError(f"{page} links to {target}, which is not there")
        place = installed_path(page, source)
        if place is None:
            return f"`SOURCE/{source}`" if text == target else f"{text} (`SOURCE/{source}`)"
        return f"[{place if text == target else text}]({place}{fragment})"

    def quoted(match: re.Match[str]) -> str:
        source = source_path(page, match[1])
        if source is None:
            return match[0]
        return f"`{installed_path(page, source) or 'SOURCE/' + source}`"

    def command(match: re.Match[str]) -> str:
        if not any(ROOT.glob(match[1])):
            return match[0]
        return installed_path(page, match[1]) or "SOURCE/" + match[1]

    parts = []
    for part in FENCE.split((ROOT / page).read_text(encoding="utf-8")):
        if part.startswith("```"):
            parts.append(COMMAND.sub(command, part))
        else:
            # A quoted name that a link has made is not looked at again.
            pieces = re.split(f"({LINK.pattern})", part)
            step = LINK.groups + 2
            for i in range(0, len(pieces), step):
                parts.append(QUOTED.sub(quoted, pieces[i]))
                if i + 1 < len(pieces):
                    parts.append(LINK.sub(link, pieces[i + 1]))
    text = "".join(parts)
    if "SOURCE/" in text:
        title, rest = text.split("\n", 1)
        text = f"{title}\n{NOTE}{rest}"
    return text


def main() -> None:
    output = pathlib.Path(sys.argv[1])
    for page, name in PAGES.items():
        path = output / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(installed_page(page), encoding="utf-8")


if __name__ == "__main__":
    main()
