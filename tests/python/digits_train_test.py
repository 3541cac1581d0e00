"""The example that trains a network on handwritten digits."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "client/python/examples"
sys.path.insert(0, str(EXAMPLES))

import digits_train  # noqa: E402


def test_a_short_training_reads_most_digits_and_draws(
    daemon: Any, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "digits.png"

    digits_train.main(
        ["--target", daemon.target, "--epochs", "3", "--picture", str(picture)]
    )

    told, drawn = capsys.readouterr().out.splitlines()
    share, rest = told.split("%", 1)
    assert float(share) > 85
    assert rest == " of 360 digits that it has not seen are right"
    assert drawn == f"wrote {picture}"
    assert picture.read_bytes().startswith(b"\x89PNG")
