"""What operators compute, in numpy, and inputs for them."""

import numpy as np


def l1(grad_output, self, target, divisor=1):
    return np.sign(self - target) * grad_output / divisor


def kl(grad_output, target, divisor=1):
    return -target * grad_output / divisor


def log_softmax_gradient(grad_output, output):
    return grad_output - np.exp(output) * grad_output.sum(axis=-1, keepdims=True)


def normal(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)
