#!/usr/bin/env python3
"""Reads the targets of the CPU kernels, T8 to T12, off the JSON output of kernels_benchmark and torch_benchmark.

  kernels_benchmark --benchmark_repetitions=9 --benchmark_enable_random_interleaving=true \\
      --benchmark_out=kernels.json
  torch_benchmark ... --benchmark_out=torch.json
  kernel_targets.py kernels.json torch.json [--json]

Prints one row per ratio: target, what, ratio of medians, limit, met or missed; with --json a JSON object each. Rows
whose benchmarks are not in the files are left out. Work on one thread is compared by processor time, which other
programs of the machine disturb less; work on several by the time that passed. Exits with 0 whether met or not.
"""

import argparse
import collections
import json
import statistics

KL = ["KlDivBackward/plain", "KlDivBackward/log", "KlDivTargetBackward/plain", "KlDivTargetBackward/log"]
L1 = "L1LossBackward/only"
SOFTMAX = "LogSoftmaxBackward/only"
OPERATORS = KL + [L1, SOFTMAX]
BANDWIDTH_LIMITS = dict(zip(OPERATORS, [1.0, 0.8, 0.9, 0.8, 1.1, 0.65]))
LAYOUTS = [
    (KL[0], "transposed_target", 2.0), (KL[2], "transposed_self", 2.0), (L1, "transposed_self", 2.0),
    (SOFTMAX, "transposed_gradient", 2.0),
    (KL[0], "scalar_gradient", 1.0), (KL[2], "scalar_gradient", 1.0), (L1, "scalar_gradient", 1.0),
    (SOFTMAX, "inner_dim", 1.6),
]
SIZES = ["1Ki", "16Ki", "256Ki", "1Mi", "16Mi"]


def read(paths):
    """Repetitions by name: name -> list of runs."""
    runs = collections.defaultdict(list)
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for run in json.load(file)["benchmarks"]:
                if run["run_type"] == "iteration" and not run.get("error_occurred"):
                    runs[run["name"].removesuffix("/real_time").split("/repeats:")[0]].append(run)
    return runs


class Targets:
    def __init__(self, runs):
        self.runs = runs
        self.rows = []

    def time(self, name, clock):
        return statistics.median(run[clock] for run in self.runs[name])

    def bandwidth(self, name):
        bytes_per_run = statistics.median(run["bytes_per_second"] * run["real_time"] for run in self.runs[name])
        return bytes_per_run / self.time(name, "cpu_time")

    def add(self, target, what, names, ratio, limit, at_least):
        if any(name not in self.runs for name in names):
            return
        value = ratio(*names)
        met = value >= limit if at_least else value <= limit
        self.rows.append({"target": target, "what": what, "ratio": round(value, 3),
                          "limit": (">= " if at_least else "<= ") + str(limit), "met": met})

    def add_time(self, target, what, name, of, limit, clock="cpu_time"):
        self.add(target, what, [name, of], lambda a, b: self.time(a, clock) / self.time(b, clock), limit, False)


def evaluate(runs):
    targets = Targets(runs)
    for op in OPERATORS:
        targets.add("T8", f"{op} to memcpy, bytes/s",
                    [f"{op}/float32/contiguous/16Mi/1", "memcpy/any/float32/contiguous/16Mi/1"],
                    lambda a, b: targets.bandwidth(a) / targets.bandwidth(b), BANDWIDTH_LIMITS[op], True)
    for dtype in ["float16", "bfloat16"]:
        for op in OPERATORS:
            targets.add_time("T9", f"{op} {dtype} to float32", f"{op}/{dtype}/contiguous/16Mi/1",
                             f"{op}/float32/contiguous/16Mi/1", 0.7)
    for op in OPERATORS:
        name = f"{op}/float32/contiguous/16Mi"
        targets.add("T10", f"{op}, speed-up of 2 threads", [f"{name}/1", f"{name}/2"],
                    lambda a, b: targets.time(a, "real_time") / targets.time(b, "real_time"), 1.85, True)
    for op, layout, limit in LAYOUTS:
        targets.add_time("T11", f"{op} {layout} to contiguous", f"{op}/float32/{layout}/16Mi/1",
                         f"{op}/float32/contiguous/16Mi/1", limit)
    for threads, clock in [("1", "cpu_time"), ("2", "real_time")]:
        for op in OPERATORS:
            for size in SIZES:
                name = f"{op}/float32/contiguous/{size}/{threads}"
                targets.add_time("T12", f"{op} {size} to PyTorch, {threads} threads", f"opserve/{name}",
                                 f"torch/{name}", 0.95, clock)
    return targets.rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--json", action="store_true", help="one JSON object per row")
    arguments = parser.parse_args()
    for row in evaluate(read(arguments.files)):
        if arguments.json:
            print(json.dumps(row))
        else:
            print(f"{row['target']:4} {row['what']:60} {row['ratio']:7.3f} {row['limit']:8} "
                  f"{'met' if row['met'] else 'MISSED'}")


if __name__ == "__main__":
    main()
