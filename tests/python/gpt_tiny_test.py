"""The example that trains a small language model, in a short form."""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from typing import Any

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "client/python/examples"
sys.path.insert(0, str(EXAMPLES))

import gpt_tiny  # noqa: E402


def test_a_short_training_learns_writes_and_draws(
    daemon: Any, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, picture = tmp_path / "text.txt", tmp_path / "loss.png"
    text.write_text("the quick brown fox jumps over the lazy dog\n" * 20, encoding="utf-8")
    given = ["--target", daemon.target, "--text", str(text), "--steps", "40", "--batch", "4"]
    given += ["--width", "32", "--blocks", "1", "--picture", str(picture)]

    assert gpt_tiny.main(given) == 0

    out, err = capsys.readouterr()
    assert out.startswith("the quick brown fox jumps over the lazy dog\nthe quick brown fox ")
    assert "step    40 [##############################]" in err and "tokens/s" in err
    losses = [float(line.split("loss ")[1].split()[0]) for line in err.splitlines() if line]
    assert len(losses) == 10 and losses[-1] < losses[0] - 0.5
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_what_is_missing_is_said_before_the_training(
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("short", encoding="utf-8")
    with pytest.raises(SystemExit):
        gpt_tiny.main(["--text", str(text)])
    assert "the text has 5 characters; expected 128 at least" in capsys.readouterr().err
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit):
        gpt_tiny.main(["--picture", "loss.png"])
    assert "--picture needs matplotlib: pip install matplotlib" in capsys.readouterr().err
