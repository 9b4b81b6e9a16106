"""Warnings that one context does not want to hear are heard by all others."""

import os
import threading
import warnings

import numpy as np
import pytest

from dpglm import LogisticRegression
from dpglm.audit import audit
from dpglm.errors import PrivacyWarning
from dpglm.silence import silent
from dpglm.solvers import GradientDescent


def test_silence_is_of_its_own_thread():
    heard = []

    def other():
        with pytest.warns(UserWarning, match="other thread"):
            warnings.warn("from the other thread", UserWarning, stacklevel=1)
        heard.append(True)

    with silent():
        warnings.warn("nobody hears this", UserWarning, stacklevel=1)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert heard


def test_two_threads_that_are_silent_one_after_the_other_leave_no_filter_behind():
    first, second, before = threading.Event(), threading.Event(), list(warnings.filters)

    def overlapping():
        with silent():
            first.set()
            second.wait()

    thread = threading.Thread(target=overlapping)
    thread.start()
    first.wait()
    with silent():
        second.set()
        thread.join()
        warnings.warn("nobody hears this", UserWarning, stacklevel=1)
    assert warnings.filters == before
    with pytest.warns(UserWarning, match="heard again"):
        warnings.warn("heard again", UserWarning, stacklevel=1)


def test_silence_nests_and_ends_with_an_error():
    with pytest.raises(KeyError), silent(), silent():
        raise KeyError
    with silent():
        with silent():
            pass
        warnings.warn("nobody hears this", UserWarning, stacklevel=1)
    with pytest.warns(UserWarning, match="heard again"):
        warnings.warn("heard again", UserWarning, stacklevel=1)


def test_a_fit_warns_while_another_thread_audits():
    begun = threading.Event()

    class Announced(LogisticRegression):
        def fit(self, *arguments, **named):
            result = super().fit(*arguments, **named)
            begun.set()
            return result

    audited = Announced(1.0, classes=[-1, 1], solver=GradientDescent(steps=2))
    thread = threading.Thread(target=audit, args=(audited,), kwargs={"runs": 100})
    thread.start()
    begun.wait()
    X = np.ones((50, 2))
    model = LogisticRegression(1.0, delta=0.5, classes=[-1, 1], solver=GradientDescent(steps=2))
    with pytest.warns(PrivacyWarning, match="delta"):
        model.fit(X, np.repeat([-1, 1], 25))
    assert thread.is_alive()
    thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_fork_while_another_thread_holds_a_lock_does_not_wait_for_ever():
    from dpglm import silence
    from dpglm.ledger import address

    with silence._lock, address._lock:
        child = os.fork()
        if not child:
            with silent():
                address.current_account()
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
