"""How the package sets up gRPC, in processes of their own: gRPC reads its settings once."""

import subprocess
import sys
import textwrap

import pytest
from conftest import script_environment

TIMEOUT = 60

SETTINGS = ("GRPC_EXPERIMENTS", "GRPC_ENABLE_FORK_SUPPORT")


def run(script, **variables):
    """The lines that a script prints in a process without settings of gRPC but for these."""
    environment = script_environment(PYTHONWARNINGS="ignore")
    for name in SETTINGS:
        environment.pop(name, None)
    environment.update(variables)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=TIMEOUT,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    return done.stdout.splitlines()


PRINT = f"""
    import os
    for name in {SETTINGS}:
        print(os.environ.get(name))
"""


@pytest.mark.parametrize(
    "before, variables, expected",
    [
        ("", {}, ["None", "0"]),
        ("", {"GRPC_EXPERIMENTS": "event_engine_client"}, ["event_engine_client", "0"]),
        ("", {"GRPC_ENABLE_FORK_SUPPORT": "1"}, ["None", "1"]),
        ("import grpc", {}, ["None", "0"]),
    ],
)
def test_children_inherit_what_the_user_has_set(before, variables, expected):
    assert run(f"{before}\nimport opserve\n{textwrap.dedent(PRINT)}", **variables) == expected


COUNT = """
    import pathlib, opserve

    def switches():
        count = 0
        for task in pathlib.Path("/proc/self/task").iterdir():
            status = dict(line.split(":\\t", 1) for line in (task / "status").open() if ":\\t" in line)
            if status["Name"].startswith("event_engine"):
                count += int(status["voluntary_ctxt_switches"])
        return count

    with opserve.Client() as client:
        for _ in range(10):
            client.kl_div([0.0], [0.0])
        before = switches()
        for _ in range(300):
            client.kl_div([0.0], [0.0])
        print(switches() - before)
"""


def test_the_waiting_thread_reads_answers_itself(daemon):
    # Threads of gRPC's own would be woken for each of the 300.
    [switches] = run(COUNT, OPSERVE_TARGET=daemon.target)
    assert int(switches) < 100
