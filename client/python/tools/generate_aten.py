"""Writes client/python/ATEN.md: the ATen nodes that torch.compile(backend="opserve") serves.

Needs torch. Run it after a lowering was added: python tools/generate_aten.py
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterable
from typing import Any

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PACKAGE), str(PACKAGE / "tools")]

import unused_operators  # noqa: E402
from opserve.torch import _complex, _decompositions, _experts, _lowerings  # noqa: E402

PAGE = PACKAGE / "ATEN.md"
WIDTH = 120


def lines(targets: Iterable[Any]) -> str:
    """The names without their package, as a paragraph."""
    names = sorted({str(target).removeprefix("aten.") for target in targets})
    text: list[str] = []
    for name in names:
        word = f"`{name}`"
        if text and len(text[-1]) + len(word) + 3 <= WIDTH:
            text[-1] += f", {word}"
        else:
            text.append(word)
    return ",\n".join(text)


def page() -> str:
    reasons = "\n\n".join(
        f"{reason}:\n\n{lines(names)}" for reason, names in unused_operators.unused().items()
    )
    # Others are of libraries that happen to be imported.
    of_torch = [target for target in _experts.decompositions() if target.namespace == "aten"]
    return f"""# ATen nodes on the pool

Written by `tools/generate_aten.py` from the tables of `opserve/torch`. A model's forward and backward graphs come from
torch's own compiler (AOTAutograd), which takes composite functions apart; these nodes remain. Nodes that are not here
are taken apart further where torch has a rule for it, or run on the client's machine and are named once
([Train on the pool](TRAINING.md)).

## Computed by operators of the pool

{lines(_lowerings.LOWERINGS)}

## Views, which cost nothing

{lines(_lowerings.VIEWS)}

## Taken apart by opserve

{lines([*_decompositions.DECOMPOSITIONS, *of_torch])}

## Of complex numbers, which are pairs of real ones

{lines([*_complex.RULES, *_complex.RULES_OF_REAL_RESULTS])}

## Operators of the pool that no node needs

{reasons}
"""


if __name__ == "__main__":
    PAGE.write_text(page())
