#!/usr/bin/env python3
"""Prints the table of the targets from lines of JSON, and writes them, with the machine, to one file.

  table.py LINES.jsonl RESULT.json

A line has target, what, ratio, limit and met (null: measured beside the targets); others are kept as they are.
"""

import datetime
import json
import os
import platform
import sys


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "unknown")


def order(row):
    """Targets by their numbers (T5), then those that have a section's (5.4), then what is measured beside them."""
    target = row["target"]
    if not target:
        return 2, 0
    return (0, int(target[1:])) if target.startswith("T") else (1, float(target))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        rows = sorted((json.loads(line) for line in file), key=order)
    print(f"| Target | What | Ratio | Limit | |\n|---|---|---|---|---|")
    for row in rows:
        verdict = {True: "met", False: "missed", None: ""}[row["met"]]
        print(f"| {row['target']} | {row['what']} | {row['ratio']:.3g} | {row['limit']} | {verdict} |")
    judged = [row for row in rows if row["met"] is not None]
    print(f"\n{sum(row['met'] for row in judged)} of {len(judged)} met")
    result = {
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "processor": processor(),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "rows": rows,
    }
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
