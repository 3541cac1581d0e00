"""The real perf_analyzer against a running opserved (checks 26 to 28 of server/kserve/README.md).

perf_analyzer is found beside Python (wheels of tritonclient up to 2.48 bring it) or in PATH. It needs
libb64.so.0d (Debian: libb64-0d) and libcudart.so.12 (PyPI: nvidia-cuda-runtime-cu12).
"""

import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import time

import numpy as np
import pytest
import tritonclient.grpc as triton

from conftest import Daemon


def library_path():
    """Where libcudart is if it came from PyPI, before what is looked through anyway."""
    packages = pathlib.Path(sysconfig.get_path("purelib"))
    found = str(packages / "nvidia/cuda_runtime/lib")
    return ":".join(filter(None, [found, os.environ.get("LD_LIBRARY_PATH")]))


ENVIRONMENT = dict(os.environ, LD_LIBRARY_PATH=library_path())


def find_program():
    beside_python = pathlib.Path(sys.prefix) / "bin/perf_analyzer"
    program = str(beside_python) if beside_python.exists() else shutil.which("perf_analyzer")
    if program is None:
        raise RuntimeError("perf_analyzer is missing: tests/python/requirements.txt")
    run = subprocess.run([program, "--version"], capture_output=True, text=True, env=ENVIRONMENT)
    if run.returncode != 0:
        raise RuntimeError(f"perf_analyzer does not start: {run.stderr.strip()}")
    return program


PROGRAM = find_program()

SHAPES = ["--shape=self:256", "--shape=target:256", "--shape=grad_output:256"]


@pytest.fixture(scope="module")
def address():
    running = Daemon("--allow_named_shm", listen=",127.0.0.1:0")
    yield running.ready["listen"][1]
    running.close()


def perf_analyzer(address, *arguments, model="L1LossBackward"):
    # How stable the machine is, is not the question.
    return [PROGRAM, "-i", "grpc", "-u", address, "-m", model, "--measurement-mode=count_windows",
            "--measurement-request-count=200", "--stability-percentage=999", "--max-trials=3",
            *arguments]  # fmt: skip


def analyze(address, *arguments, model="L1LossBackward"):
    command = perf_analyzer(address, *arguments, model=model)
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=ENVIRONMENT
    )


def executions(address, model="L1LossBackward"):
    with triton.InferenceServerClient(address) as client:
        return client.get_inference_statistics(model).model_stats[0].execution_count


def server_section(output):
    """The numbers that perf_analyzer took from the server's statistics."""
    lines = output.split("Server:")[1].splitlines()
    counts = {}
    for line in lines:
        name, _, value = line.strip().partition(": ")
        if name in ("Inference count", "Execution count", "Successful request count"):
            counts[name] = int(value)
    return counts


@pytest.mark.parametrize(
    "mode",
    [
        ["--sync"],
        ["--async", "--concurrency-range=8"],
        ["--streaming", "--concurrency-range=8"],
        ["--concurrency-range=2", "--input-data=zero"],
        ["--grpc-compression-algorithm=none", "--concurrency-range=3"],
        ["--shared-memory=system", "--output-shared-memory-size=1024", "--concurrency-range=2"],
    ],
    ids=lambda mode: mode[0],
)
def test_measures(address, mode):  # check 26
    before = executions(address)
    run = analyze(address, *SHAPES, *mode)
    assert run.returncode == 0, run.stdout + run.stderr
    counts = server_section(run.stdout)
    assert len(counts) == 3
    assert all(count > 0 for count in counts.values())
    assert executions(address) > before


@pytest.mark.parametrize("datatype_model", ["KlDivBackward", "KlDivTargetBackward"])
def test_other_operators(address, datatype_model):
    run = analyze(address, *SHAPES, model=datatype_model)
    assert run.returncode == 0, run.stdout + run.stderr


def data_file(path, **tensors):
    """Input for one step."""
    step = {
        name: {
            "content": {"b64": base64.b64encode(elements.tobytes()).decode()},
            "shape": list(elements.shape),
        }
        for name, elements in tensors.items()
    }
    path.write_text(json.dumps({"data": [step]}))
    return f"--input-data={path}"


# perf_analyzer can compare results itself (validation_data) only where a model's outputs have one fixed
# shape. But it lets them be written to shared memory, where others can look at them, too.
@pytest.mark.parametrize("reduction, divisor", [(1, 4), (2, 1)])
def test_parameters_reach_the_kernel(address, tmp_path, reduction, divisor):  # checks 27 and 28
    zeros = np.zeros(4, np.float32)
    data = data_file(tmp_path / "data.json", self=zeros, target=zeros,
                     grad_output=np.ones(4, np.float32))  # fmt: skip
    # With log_target the gradient is -exp(0) times that of the loss; without, it would be 0.
    expected = np.full(4, -1 / divisor, np.float32).tobytes()
    command = perf_analyzer(
        address, data, f"--request-parameter=reduction:{reduction}:int",
        "--request-parameter=log_target:true:bool", "--shared-memory=system",
        f"--output-shared-memory-size={len(expected)}", model="KlDivBackward",
    )  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=ENVIRONMENT) as run:  # fmt: skip
        result = pathlib.Path("/dev/shm/out")  # named as the output is
        was_right = False
        end = time.monotonic() + 120
        while run.poll() is None and not was_right and time.monotonic() < end:
            try:
                was_right = result.read_bytes() == expected
            except FileNotFoundError:
                pass
        try:
            output, _ = run.communicate(timeout=120)
        finally:
            run.kill()
    assert was_right
    assert run.returncode == 0, output


def test_errors_end_it(address):
    run = analyze(address, *SHAPES, "--request-parameter=reduction:77:int")
    assert run.returncode == 99
    assert "reduction" in run.stdout + run.stderr
