"""Rows of the table of targets, which run.sh makes of the lines in the file OPSERVE_BENCHMARK_JSON."""

import json
import os


def add(target, what, ratio, limit, met):
    """Appends a line as table.py reads it, if the file is set."""
    path = os.environ.get("OPSERVE_BENCHMARK_JSON")
    if path:
        row = {"target": target, "what": what, "ratio": ratio, "limit": limit, "met": met}
        with open(path, "a", encoding="utf-8") as lines:
            lines.write(json.dumps(row) + "\n")
