"""The place in the user's code that a warning is about."""

from __future__ import annotations

import os
import sys
import types

import torch

_PACKAGES = ("functorch", "opserve", "torch")
_TORCH = os.path.dirname(torch.__file__)


def level_of_caller() -> int:
    """The stacklevel, for a warning by the calling function, of the user's innermost line."""
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and not _is_users(frame):
        frame = frame.f_back
        level += 1
    return level


def _is_users(frame: types.FrameType) -> bool:
    name: str = frame.f_globals.get("__name__", "")
    # torch runs functions that it has written itself; their globals have no name.
    is_generated = frame.f_code.co_filename.startswith(("<eval_with_key>", _TORCH))
    return name.partition(".")[0] not in _PACKAGES and not is_generated
