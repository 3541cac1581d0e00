#!/usr/bin/env python3
"""Times convolutions, and their three gradients together, of the shapes in ResNet-18 and MobileNetV3 beside PyTorch's.

  convolutions.py BUILD [NAME ...]

Needs what benchmark.py needs, and times as it does. NAME: part of the names of the rows that are wanted. Prints the
microseconds of both and their ratio, of which at most 1.3 is wished for.
"""

import argparse
import math

import benchmark  # finds the modules of the conformance tests
import sizes
from generate import Operator

LIMIT = 1.3
# Images, channels, filters, side of the images and of the windows, stride, padding, groups.
SHAPES = {
    "ResNet-18, stem": (1, 3, 64, 224, 7, 2, 3, 1),
    "ResNet-18, 64": (1, 64, 64, 56, 3, 1, 1, 1),
    "ResNet-18, 64 to 128": (1, 64, 128, 56, 3, 2, 1, 1),
    "ResNet-18, shortcut": (1, 64, 128, 56, 1, 2, 0, 1),
    "ResNet-18, 128": (1, 128, 128, 28, 3, 1, 1, 1),
    "ResNet-18, 256": (1, 256, 256, 14, 3, 1, 1, 1),
    "ResNet-18, 256 to 512": (1, 256, 512, 14, 3, 2, 1, 1),
    "ResNet-18, 512": (1, 512, 512, 7, 3, 1, 1, 1),
    "ResNet-18, 512, four images": (4, 512, 512, 7, 3, 1, 1, 1),
    "MobileNetV3, stem": (1, 3, 16, 224, 3, 2, 1, 1),
    "MobileNetV3, 16 to 72": (1, 16, 72, 56, 1, 1, 0, 1),
    "MobileNetV3, 40 to 240": (1, 40, 240, 14, 1, 1, 0, 1),
    "MobileNetV3, 96 to 576, four images": (4, 96, 576, 7, 1, 1, 0, 1),
    "MobileNetV3, depthwise 72": (1, 72, 72, 56, 3, 2, 1, 72),
    "MobileNetV3, depthwise 88": (1, 88, 88, 28, 3, 1, 1, 88),
    "MobileNetV3, depthwise 96": (1, 96, 96, 28, 5, 2, 2, 96),
    "MobileNetV3, depthwise 240": (1, 240, 240, 14, 5, 1, 2, 240),
    "MobileNetV3, depthwise 576, four images": (4, 576, 576, 7, 5, 1, 2, 576),
}


def calls(images, channels, filters, side, window, stride, padding, groups):
    """Shapes and attributes by operator, as in sizes.py."""
    result = (side + 2 * padding - window) // stride + 1
    attributes = {
        "stride": [stride, stride],
        "padding": [padding, padding],
        "dilation": [1, 1],
        "transposed": False,
        "output_padding": [0, 0],
        "groups": groups,
    }
    tensors = {"input": [images, channels, side, side], "weight": [filters, channels // groups, window, window]}
    gradient = [images, filters, result, result]
    return {
        "Convolution": ({**tensors, "bias": [filters]}, attributes, {}),
        "ConvolutionBackward": (
            {**tensors, "grad_output": gradient}, {**attributes, "bias_sizes": [filters]}, {}
        ),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    library, found, kinds = benchmark.begin(arguments.build)
    operators = {description.name: description for _, description in found}
    for name, shape in SHAPES.items():
        if arguments.names and not any(part in name for part in arguments.names):
            continue
        for operator, call in calls(*shape).items():
            sizes.CALLS[operator] = call
            best = [math.inf, math.inf]
            for _ in range(benchmark.PASSES):
                seconds, _ = benchmark.measure(library, Operator(operators[operator], kinds))
                best = list(map(min, seconds, best))
            ratio = best[0] / best[1]
            times = " ".join(f"{1e6 * second:9.1f} us" for second in best)
            print(f"{name:42} {operator:20} {times} {ratio:6.2f} {'' if ratio <= LIMIT else 'missed'}", flush=True)


if __name__ == "__main__":
    main()
