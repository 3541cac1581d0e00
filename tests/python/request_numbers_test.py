"""The identities that a client gives its requests."""

import gc
import threading

from opserve._request_numbers import RequestNumbers


def test_numbers_rise_under_one_random_name():
    numbers, others = RequestNumbers(), RequestNumbers()
    first, second, other = numbers.take(), numbers.take(), others.take()
    assert len(first.identity.client) == 16
    assert second.identity.client == first.identity.client != other.identity.client
    assert second.identity.number > first.identity.number


def test_what_may_be_repeated_is_not_answered():
    numbers = RequestNumbers()
    first, second = numbers.take(), numbers.take()
    assert first.identity.answered_below == first.identity.number
    assert second.identity.answered_below == first.identity.number
    second.release()
    second.release()
    third = numbers.take()
    assert third.identity.answered_below == first.identity.number
    del first  # nobody waits for it any more
    gc.collect()
    assert numbers.take().identity.answered_below == third.identity.number


def test_many_threads_take_numbers():
    numbers = RequestNumbers()
    taken = []

    def take_many():
        for _ in range(1000):
            ticket = numbers.take()
            assert ticket.identity.answered_below <= ticket.identity.number
            taken.append(ticket.identity.number)
            ticket.release()

    threads = [threading.Thread(target=take_many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(1, 4001))
