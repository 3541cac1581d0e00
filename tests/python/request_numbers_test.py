"""The identities that a client gives its requests."""

import gc
import threading

from opserve import _wire
from opserve._request_numbers import RequestNumbers


def identity_of(ticket):
    return _wire.RequestIdentity.FromString(ticket.identity)


def test_numbers_rise_under_one_random_name():
    numbers, others = RequestNumbers(), RequestNumbers()
    first, second, other = numbers.take(), numbers.take(), others.take()
    assert len(identity_of(first).client) == 16
    assert identity_of(second).client == identity_of(first).client != identity_of(other).client
    assert identity_of(second).number > identity_of(first).number


def test_what_may_be_repeated_is_not_answered():
    numbers = RequestNumbers()
    first, second = numbers.take(), numbers.take()
    assert identity_of(first).answered_below == identity_of(first).number
    assert identity_of(second).answered_below == identity_of(first).number
    second.release()
    second.release()
    third = numbers.take()
    assert identity_of(third).answered_below == identity_of(first).number
    del first  # nobody waits for it any more
    gc.collect()
    assert identity_of(numbers.take()).answered_below == identity_of(third).number


def test_many_threads_take_numbers():
    numbers = RequestNumbers()
    taken = []

    def take_many():
        for _ in range(1000):
            ticket = numbers.take()
            identity = identity_of(ticket)
            assert identity.answered_below <= identity.number
            taken.append(identity.number)
            ticket.release()

    threads = [threading.Thread(target=take_many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(1, 4001))
