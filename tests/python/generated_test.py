"""What is written by generators is current; the package is what pip would install."""

import pathlib
import re
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ROOT / "client/python/tools"


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_operators_are_those_of_a_running_daemon(daemon):
    check = run(
        sys.executable,
        TOOLS / "generate_operators.py",
        "--target",
        daemon.target,
        "--check",
    )
    assert check.returncode == 0, check.stderr


def test_the_protocol_is_that_of_proto():
    check = run(sys.executable, TOOLS / "generate_protocol.py", "--check")
    assert check.returncode == 0, check.stderr


def test_methods_document_shapes_dtypes_and_errors():
    import opserve

    for info in opserve.OPERATORS.values():
        text = getattr(opserve.Client, info.method).__doc__
        outputs = [output.name for output in info.outputs]
        for name in (*info.inputs, *info.attributes, *outputs):
            assert re.search(rf"    {name}_?: ", text)  # lambda_
        for dtypes in info.inputs.values():
            assert ", ".join(dtypes) in re.sub(r"\s+", " ", text)
        assert "InvalidArgumentError" in text


def test_a_wheel_needs_no_compiler(tmp_path):
    setuptools = pytest.importorskip("setuptools")
    assert setuptools
    source = tmp_path / "source"
    subprocess.run(["cp", "-r", ROOT / "client/python", source], check=True)
    build = run(
        sys.executable,
        *("-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"),
        *("--wheel-dir", tmp_path, source),
    )
    assert build.returncode == 0, build.stderr
    [wheel] = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("opserve/py.typed", "opserve/protocol.binpb", "opserve/_operators.py"):
        assert name in names
