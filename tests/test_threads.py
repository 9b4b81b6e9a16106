import os
import threading

import pytest

from dpglm import threads


@pytest.fixture(autouse=True)
def three_processors(monkeypatch):
    monkeypatch.setattr(threads, "PROCESSORS", 3)
    with threads.limit_threads(3):
        yield


@pytest.mark.parametrize("parts", [1, 2, 100])
def test_every_range_is_worked_on_once(parts):
    found = []
    threads.run_chunks(lambda *part: found.append(part), 1_000, parts)
    edges = threads.even_edges(1_000, parts)
    assert sorted(found) == [(k, edges[k], edges[k + 1]) for k in range(parts)]


def test_ranges_are_worked_on_at_once_by_as_many_threads_as_allowed():
    together = threading.Barrier(3, timeout=30)
    threads.run_chunks(lambda *_: together.wait(), 3, 3)


def test_at_most_so_many_threads_work():
    names = set()
    with threads.limit_threads(1):
        threads.run_chunks(lambda *_: names.add(threading.current_thread().name), 50, 50)
    assert names == {threading.current_thread().name}


def test_ranges_inside_of_ranges_do_not_wait_for_each_other():
    found = []
    threads.run_chunks(lambda k, *_: threads.run_chunks(lambda j, *_: found.append((k, j)), 5, 5), 40, 40)
    assert sorted(found) == [(k, j) for k in range(40) for j in range(5)]


@pytest.mark.parametrize("broken", [0, 7, 39])
@pytest.mark.parametrize("error", [IndexError, KeyboardInterrupt])
def test_an_error_of_the_work_is_raised_after_all_threads_have_ended(broken, error):
    running = []

    def work(k, *_):
        running.append(k)
        if k == broken:
            raise error("broken")
        running.remove(k)

    with pytest.raises(error, match="broken"):
        threads.run_chunks(work, 40, 40)
    assert running == [broken]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_copy_of_the_process_starts_threads_of_its_own():
    threads.run_chunks(lambda *_: None, 3, 3)
    child = os.fork()
    if child == 0:
        threads.run_chunks(lambda *_: None, 3, 3)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
