"""Answers that come one by one, given together: for requests that ask for several things at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


def gather(
    wanted: Sequence[Asked],
    ask: Callable[[Asked, Callable[[Answer], None]], None],
    done: Callable[[list[Answer]], None],
    soon: Callable[[Callable[[], None]], None] | None = None,
) -> None:
    """Ask for each of `wanted`, of which there is at least one; `done` gets all answers, in that order.

    With `soon` each is asked for in a turn of the loop of its own, by whoever is given the rest of the work.
    """
    answers: dict[int, Answer] = {}

    def ask_at(place: int) -> None:
        def take(answer: Answer) -> None:
            answers[place] = answer
            if len(answers) == len(wanted):
                done([answers[at] for at in range(len(wanted))])

        ask(wanted[place], take)

    def ask_on(place: int) -> None:
        ask_at(place)
        if soon is not None and place + 1 < len(wanted):
            soon(partial(ask_on, place + 1))

    if soon is not None:
        ask_on(0)
        return
    for place in range(len(wanted)):
        ask_at(place)
