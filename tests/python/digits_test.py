"""The example that trains with the daemon's gradients, in a short form."""

import pathlib
import sys

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "client/python/examples"
sys.path.insert(0, str(EXAMPLES))

import digits_distillation  # noqa: E402


def test_a_student_learns_the_same_from_the_daemons_gradients(daemon, tmp_path, capsys):
    picture = tmp_path / "digits.png"
    code = digits_distillation.main(
        ["--target", daemon.target, "--epochs", "12", "--picture", str(picture)]
    )
    output = capsys.readouterr().out
    assert code == 0, output
    assert picture.read_bytes().startswith(b"\x89PNG")
    # A KL, an L1 and a log-softmax gradient in each of 11 steps of 12 epochs: the first takes
    # the softmax before it along.
    assert "396 calls" in output
    assert "execute" in output
