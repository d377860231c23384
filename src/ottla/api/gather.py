"""Answers that come one by one, given together: for requests that ask for several things at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


def gather(
    wanted: Sequence[Asked],
    ask: Callable[[Asked, Callable[[Answer], None]], None],
    done: Callable[[list[Answer]], None],
) -> None:
    """Ask for each of `wanted`, of which there is at least one; `done` gets all answers, in that order."""
    answers: dict[int, Answer] = {}

    def ask_at(place: int) -> None:
        def take(answer: Answer) -> None:
            answers[place] = answer
            if len(answers) == len(wanted):
                done([answers[at] for at in range(len(wanted))])

        ask(wanted[place], take)

    for place in range(len(wanted)):
        ask_at(place)
