"""What is written by generators is current; the package is what pip would install."""

import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

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


def files_of(directory):
    return {
        path.relative_to(directory): path.stat().st_mtime_ns
        for path in directory.rglob("*")
        if "__pycache__" not in path.parts
    }


def test_a_wheel_needs_no_compiler_and_leaves_its_source_clean(tmp_path):
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns("__pycache__", "build", "*.egg-info", ".*")
    shutil.copytree(ROOT / "client/python", source, ignore=ignored)
    before = files_of(source)
    build = run(
        sys.executable,
        *("-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"),
        *("--wheel-dir", tmp_path, source),
    )
    assert build.returncode == 0, build.stderr
    assert files_of(source) == before
    [wheel] = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for name in (
        *("opserve/py.typed", "opserve/protocol.binpb", "opserve/_operators.py"),
        *("opserve/torch/__init__.py", "opserve-0.1.0.dist-info/entry_points.txt"),
    ):
        assert name in names
