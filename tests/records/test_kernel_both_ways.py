"""The compiled kernel and its source, interpreted, are one kernel; only the compiled one frees the GIL."""

from __future__ import annotations

import subprocess
import sys
import threading
from array import array
from collections.abc import Callable, Iterator
from random import Random

import pytest

from tests import kernels
from tests.fuzz.kernel_calls import outcomes
from tests.fuzz.kernel_inputs import a_log
from tests.fuzz.kernel_target import make_input
from tests.reference import record

SEED = 1
INPUTS = 1_500


def test_both_kernels_answer_alike_on_good_batches() -> None:
    compiled, interpreted = kernels.both()
    for number in range(100):
        log = bytes(a_log(Random(number)))
        assert outcomes(compiled, log, Random(number)) == outcomes(interpreted, log, Random(number))


@pytest.mark.slice
def test_both_kernels_answer_alike_on_damaged_batches() -> None:
    compiled, interpreted = kernels.both()
    for number in range(INPUTS):
        data, random = make_input(SEED, number)
        state = random.getstate()
        first = outcomes(compiled, data, random)
        random.setstate(state)
        assert outcomes(interpreted, data, random) == first, (SEED, number)


def test_every_single_changed_byte_gives_the_same_answer() -> None:
    compiled, interpreted = kernels.both()
    rows, more_rows = array("q", [0]) * 16, array("q", [0]) * 16
    log = a_log(Random(3))
    for at in range(len(log)):
        changed = log.copy()
        changed[at] ^= 0x81
        for flags in (0, compiled.CHECK_RECORDS):
            answer = compiled.scan(changed, 0, len(log), rows, flags)
            assert answer == interpreted.scan(changed, 0, len(log), more_rows, flags), at
            assert rows == more_rows
        assert compiled.check_batch(changed, 0, len(log)) == interpreted.check_batch(changed, 0, len(log))


def test_both_kernels_encode_alike() -> None:
    compiled, interpreted = kernels.both()
    extremes = (0, 1, -1, 63, 64, -64, -65, 2**31, 2**63 - 1, -(2**63))
    records = [(time, b"k", None, [(b"n", b"")]) for time in extremes]
    first, second = bytearray(), bytearray()
    compiled.encode_records(first, records, 0, None)
    interpreted.encode_records(second, records, 0, None)
    assert first == second


def test_constants_are_the_same() -> None:
    compiled, interpreted = kernels.both()
    names = [name for name in dir(interpreted) if name.isupper() and not name.startswith("_")]
    assert "BAD_RECORD" in names
    assert (compiled.COMPILED, interpreted.COMPILED) == (True, False)
    for name in set(names) - {"COMPILED", "LLONG_MAX"}:  # which C has by itself
        assert getattr(compiled, name) == getattr(interpreted, name)


LOAD_FROM_SOURCE = """
import importlib.util, sys
for name, path in zip(sys.argv[1::2], sys.argv[2::2]):
    spec = importlib.util.spec_from_file_location(name, path)
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
"""


def test_an_interpreted_kernel_says_that_it_is_slow_and_what_to_do() -> None:
    command = [sys.executable, "-c", LOAD_FROM_SOURCE]
    for file in kernels.FILES:
        command += (kernels.module_name(file), str(kernels.SOURCE / f"{file}.py"))
    child = subprocess.run(command, capture_output=True, text=True, check=True)
    assert child.stderr.count("RuntimeWarning") == 1
    assert "Install a C compiler" in child.stderr


@pytest.fixture
def no_forced_switches() -> Iterator[None]:
    """A thread keeps the GIL until it gives it up by itself."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    yield
    sys.setswitchinterval(interval)


def other_thread_runs_during(call: Callable[[], object]) -> bool:
    """Whether a second thread gets the GIL while `call` runs. Tried often: the system picks who is next."""
    gate, done = threading.Lock(), []
    gate.acquire()

    def wait_and_tell() -> None:
        with gate:
            done.append(True)

    thread = threading.Thread(target=wait_and_tell)
    thread.start()
    gate.release()  # from here on it needs nothing but the GIL
    for _ in range(2_000):
        call()
        if done:
            break
    ran = bool(done)
    thread.join()
    return ran


@pytest.mark.usefixtures("no_forced_switches")
def test_long_walks_release_the_gil_and_short_ones_keep_it() -> None:
    compiled, _ = kernels.both()
    long = b"".join(record(index, 0, b"k", b"v" * 100) for index in range(10_000))
    short = record()
    rows = array("q", [0]) * (10 * 10_000)
    assert other_thread_runs_during(lambda: compiled.check_records(long, 0, len(long), 10_000, 0, True))
    assert other_thread_runs_during(lambda: compiled.decode(long, 0, len(long), 0, 0, rows))
    assert not other_thread_runs_during(lambda: compiled.check_records(short, 0, len(short), 1, 0, True))
