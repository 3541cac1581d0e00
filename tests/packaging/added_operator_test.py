"""Adds an operator to a copy of the sources, as ops/README.md says, builds that, and calls the
operator through each way into opserve. Run by pytest in the Python tests' environment."""

import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

_PARTS = pathlib.Path(__file__).with_name("added_operator")
_SOURCES = pathlib.Path(__file__).resolve().parents[2]
_MOST_FILES = 3  # beside the vendor's header and cases
_MOST_LINES = 60

_GIVEN = [0, 0.5, 1.5]
_WANTED = [1, 1 / (0.5 * math.pi), -1 / (1.5 * math.pi)]


def run(*command, **options):
    done = subprocess.run(
        [str(one) for one in command],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=3600,
        **options,
    )
    assert done.returncode == 0, f"{command}:\n{done.stdout[-4000:]}"
    return done.stdout


def insert(path, before, text):
    """Puts the text in front of the first line that holds `before`; tells how many lines it has."""
    old = path.read_text()
    line = old.rfind("\n", 0, old.index(before)) + 1
    path.write_text(old[:line] + text + old[line:])
    return text.count("\n")


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """The copy with the operator added, and built in `build`."""
    copy = tmp_path_factory.mktemp("tree") / "opserve"
    copy.mkdir()
    names = run("git", "-C", _SOURCES, "ls-files", "-z").split("\0")
    for name in filter(None, names):
        place = copy / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(_SOURCES / name, place)
    shutil.copy(_PARTS / "aclnn_sinc.h", copy / "ops/abi/aclnnop")
    description = (_PARTS / "sinc.textproto").read_text()
    with (copy / "ops/catalog/math.textproto").open("a") as file:
        file.write(description)
    kernels = copy / "kernels/cpu/arithmetic.cc"
    formula = insert(kernels, "constexpr auto kSinh =", (_PARTS / "formula.txt").read_text())
    row = insert(kernels, '{"aclnnSinh"', '      {"aclnnSinc", Map<1, kFloating>(kSinc)},\n')
    changed = {"ops/catalog/math.textproto": description.count("\n"), "arithmetic.cc": formula + row}
    assert len(changed) <= _MOST_FILES and sum(changed.values()) <= _MOST_LINES
    run("cmake", "-S", copy, "-B", copy / "build", "-G", "Ninja")
    run("cmake", "--build", copy / "build", "--target", "opserved", "opserve_cli")
    return copy


@pytest.fixture(scope="module")
def daemon(tree):
    os.environ["OPSERVED"] = str(tree / "build/bin/opserved")
    sys.path.insert(0, str(tree / "tests/python"))
    from conftest import Daemon

    running = Daemon(listen=",127.0.0.1:0")
    yield running
    running.close()


@pytest.fixture(scope="module")
def client(tree, daemon):
    """The copy's Python client, after its methods were generated anew."""
    generate = tree / "client/python/tools/generate_operators.py"
    run(sys.executable, generate, "--target", daemon.target)
    for name in [one for one in sys.modules if one.split(".")[0] == "opserve"]:
        del sys.modules[name]  # as it was before
    sys.path.insert(0, str(tree / "client/python"))
    import opserve

    assert pathlib.Path(opserve.__file__).is_relative_to(tree)
    with opserve.Client(daemon.target) as connected:
        yield connected


def check(result):
    np.testing.assert_allclose(np.asarray(result, "f8"), _WANTED, rtol=1e-6, atol=1e-7)


def test_c_abi(tree, tmp_path):
    libraries = tree / "build/lib/opserve/host-cann"
    program = tmp_path / "sinc"
    run(
        "g++", "-std=c++17", _PARTS / "sinc.cpp", "-o", program,
        f"-I{tree}/ops/abi", f"-I{tree}/ops/abi/aclnnop", f"-I{tree}/tests/conformance/samples",
        f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-lopapi", "-lnnopbase", "-lascendcl",
    )  # fmt: skip
    check(re.findall(r"^result\[\d+\] is: (\S+)$", run(program), re.MULTILINE))


def test_python_method_over_grpc(client):
    check(client.sinc(np.array(_GIVEN, "f4")))


def test_stream(client):
    with client.open_stream() as stream:
        check(stream.sinc(np.array(_GIVEN, "f4")).result(timeout=60))


def test_open_inference(client, daemon):
    import tritonclient.grpc as triton

    given = triton.InferInput("self", [3], "FP32")
    given.set_data_from_numpy(np.array(_GIVEN, "f4"))
    with triton.InferenceServerClient(daemon.ready["listen"][1]) as stock:
        check(stock.infer("Sinc", [given]).as_numpy("out"))


def test_command_line(tree, daemon, tmp_path):
    given, result = tmp_path / "given.npy", tmp_path / "result.npy"
    np.save(given, np.array(_GIVEN, "f4"))
    run(
        tree / "build/bin/opserve", f"--target={daemon.target}", "run", "Sinc",
        "--input", f"self={given}", "--output", f"out={result}",
    )  # fmt: skip
    check(np.load(result))


def test_a_wrong_call_gets_the_rule(client):
    from opserve import errors

    with pytest.raises(errors.InvalidArgumentError, match="Sinc.*self.*dtype|self.*INT32"):
        client.sinc(np.array([1], "i4"))


def test_its_list_entry_has_the_documentation(tree, daemon):
    listed = run(tree / "build/bin/opserve", f"--target={daemon.target}", "ops", "--format=json")
    [entry] = [one for one in json.loads(listed)["operators"] if one["name"] == "Sinc"]
    assert entry["summary"] == "Takes the normalized sinc."
