"""Runs the operators through the command line and shows them beside the same formulas in numpy.

usage: quickstart_demo.py DIRECTORY    (a scratch directory; `opserve` and OPSERVE_TARGET are set)
"""

import pathlib
import subprocess
import sys

import numpy as np

np.set_printoptions(precision=6, suppress=True, linewidth=100)


def log_softmax(x, axis):
    shifted = x - x.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


def kl_div_backward(grad_output, self, target, d):
    return -target * grad_output / d


def kl_div_target_backward(grad_output, self, target, d):
    return grad_output / d * (np.log(target) - self + 1)


def l1_loss_backward(grad_output, self, target, d):
    return np.sign(self - target) * grad_output / d


def mse_loss_backward(grad_output, self, target, d):
    return 2 * (self - target) * grad_output / d


def log_softmax_backward(grad_output, output):
    return grad_output - np.exp(output) * grad_output.sum(axis=-1, keepdims=True)


def run(directory, operator, inputs, attributes, expected):
    """Calls one operator with `inputs` (float32 arrays by name) and compares with `expected`."""
    command = ["opserve", "run", operator]
    for name, array in inputs.items():
        path = directory / f"{name}.npy"
        np.save(path, array)
        command += ["--input", f"{name}={path}"]
    for name, value in attributes.items():
        command += ["--attr", f"{name}={value}"]
    output = directory / "result.npy"
    command += ["--output", str(output)]

    print(f"\n\033[1m== {' '.join(command).replace(str(directory) + '/', '')}\033[0m", flush=True)
    for name, array in inputs.items():
        print(f"{name} {list(array.shape)}:\n{array}")
    sys.stdout.flush()
    subprocess.run(command, check=True)
    result = np.load(output)
    print(f"from the daemon:\n{result}\nwith numpy:\n{expected}")
    difference = np.abs(result - expected).max()
    print(f"largest difference: {difference:.2g}")
    if difference > 1e-5:
        sys.exit(f"{operator}: the daemon and numpy disagree")


def main():
    directory = pathlib.Path(sys.argv[1])
    random = np.random.default_rng(seed=2024)
    logits = random.normal(size=(2, 4)).astype(np.float32)
    student = log_softmax(logits, axis=-1)
    teacher = np.exp(log_softmax(random.normal(size=(2, 4)).astype(np.float32), axis=-1))
    grad = np.ones((), np.float32)

    run(directory, "KlDivBackward", {"grad_output": grad, "self": student, "target": teacher},
        {"reduction": "batchmean", "log_target": "false"},
        kl_div_backward(grad, student, teacher, d=2))
    run(directory, "KlDivTargetBackward", {"grad_output": grad, "self": student, "target": teacher},
        {"reduction": "mean", "log_target": "false"},
        kl_div_target_backward(grad, student, teacher, d=8))
    run(directory, "L1LossBackward", {"grad_output": grad, "self": logits, "target": teacher},
        {"reduction": "sum"}, l1_loss_backward(grad, logits, teacher, d=1))
    run(directory, "MseLossBackward", {"grad_output": grad, "self": logits, "target": teacher},
        {"reduction": "mean"}, mse_loss_backward(grad, logits, teacher, d=8))
    grad_output = random.normal(size=(2, 4)).astype(np.float32)
    run(directory, "LogSoftmaxBackward", {"grad_output": grad_output, "output": student},
        {"dim": "-1"}, log_softmax_backward(grad_output, student))


if __name__ == "__main__":
    main()
