"""The page "Train on the pool", followed word by word in a fresh environment.

With OPSERVE_FRESH_ENVIRONMENT=1 the page's commands install all, current packages of PyPI: several
GB and some minutes. Else the environment sees the packages of the one that runs this test, so that
torch is not installed twice; opserve itself is installed into it as the page says.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "client/python/TRAINING.md"
IS_FRESH = os.environ.get("OPSERVE_FRESH_ENVIRONMENT") == "1"
SOCKETS = ("unix:/run/opserve/opserve.sock", "unix:/tmp/opserve.sock")


def blocks(language: str, target: str) -> list[str]:
    """The page's code in a language, with the daemon's address in place of the page's."""
    text = PAGE.read_text()
    for socket in SOCKETS:
        assert socket in text
        text = text.replace(socket, target)
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_pages_commands_and_programs_work_in_a_fresh_environment(
    daemon: Any, tmp_path: pathlib.Path
) -> None:
    install, share = blocks("sh", daemon.target)
    programs = blocks("python", daemon.target)
    assert "opserve.torch.explain" in "".join(programs[1:])
    (tmp_path / "client").symlink_to(ROOT / "client")
    (tmp_path / "train.py").write_text(programs[0])
    (tmp_path / "page.py").write_text("\n".join(programs))
    make, rest = install.split("\n", 1)
    packages = sysconfig.get_path("purelib")
    given = f"echo {packages} >$(echo opserve-venv/lib/python3*/site-packages)/torch.pth"
    script = [
        "set -euo pipefail",
        "trap 'jobs -p | xargs -r kill' EXIT",
        make,
        "" if IS_FRESH else given,
        rest,
        share,
        "python page.py >page.txt",
        "python -c 'import opserve, torch; print(opserve.__file__, torch.__file__)'",
    ]
    environment = {
        key: value
        for key, value in os.environ.items()
        if key not in ("OPSERVE_TARGET", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV")
    }
    if not IS_FRESH:
        environment["PATH"] = f"{pathlib.Path(sys.executable).parent}:{environment['PATH']}"

    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=3000 if IS_FRESH else 280,
    )

    shutil.rmtree(tmp_path / "opserve-venv")  # pytest keeps the directories of three runs
    assert done.returncode == 0, done.stdout + done.stderr
    of_opserve, of_torch = done.stdout.splitlines()[-1].split()
    assert of_opserve.startswith(str(tmp_path / "opserve-venv"))
    assert of_torch.startswith(str(tmp_path / "opserve-venv")) == IS_FRESH
    for name in ("first.txt", "second.txt", "page.txt"):
        lines = (tmp_path / name).read_text().splitlines()
        assert [line.split()[0] for line in lines[:10]] == [str(i) for i in range(10)], name
        assert float(lines[9].split()[1]) < float(lines[0].split()[1]), name
    page = (tmp_path / "page.txt").read_text()
    assert "parameters and buffers: " in page, page
    assert "nodes compared; the largest error is" in page, page
