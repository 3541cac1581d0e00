"""Waiting for what other processes bring about."""

import time


def await_true(condition, what, seconds=60):
    """Looks until `condition` holds; `what` names it in the error of a test that waited in vain."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.05)
