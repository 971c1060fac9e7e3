from __future__ import annotations

import signal

import pytest

from torchmark.processes import StopRequest, Terminated, interrupts_stop


def test_the_first_interrupt_asks_and_the_second_ends() -> None:
    stop = StopRequest()
    with interrupts_stop(stop):
        signal.raise_signal(signal.SIGINT)
        assert stop.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_an_order_to_end_that_is_repeated_does_not_disturb_the_ending() -> None:
    with interrupts_stop(StopRequest()):
        with pytest.raises(Terminated):
            signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGTERM)


def test_what_interrupts_meant_before_they_mean_again_afterwards() -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    with interrupts_stop(StopRequest()):
        assert signal.getsignal(signal.SIGTERM) != before[1]
    assert [signal.getsignal(number) for number in numbers] == before


def test_an_interrupt_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupts_stop(StopRequest()):
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
