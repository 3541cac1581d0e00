"""Seeds of tests that draw random numbers."""

import os


def seed_of_test(usual: int) -> int:
    """OPSERVE_TEST_SEED if it is set; prints what it gives, so that a failure can be seen again."""
    seed = int(os.environ.get("OPSERVE_TEST_SEED", usual))
    print(f"OPSERVE_TEST_SEED={seed}")
    return seed
