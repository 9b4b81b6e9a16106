"""Waiting for a cluster: as long as it works, but not for ever for one that has lost its workers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any

from ... import progress
from ...errors import ClusterFailed

TIMEOUT = "dpglm.cluster.timeout"
"""The key of Dask's configuration that says how long a cluster may be without work."""

UNREADABLE = (
    "a block of the Dask collection could not be read: its own error is withheld, since it may quote records"
)
_TIMEOUT = "5 minutes"
_LOOK = 2.0
"""Seconds between two looks at the workers."""

_SILENCE = 10.0
"""Seconds after which the progress says that there is no worker; then after twice as many, and so on."""

_FETCH = 60.0
"""Seconds to fetch a result that is ready; if they pass, the worker that had it is lost."""


class NoWorker(ClusterFailed):
    """No worker has computed anything for too long: to try again would be to wait again."""


class WorkerLost(Exception):
    """A worker that a task was submitted to is lost: the task is to be submitted again."""


def results(client: Any, futures: Sequence[Any], workers: Collection[str] = ()) -> list[Any]:
    """What tasks return, as soon as all are done; ``workers`` as in `finish`."""
    while True:
        finish(client, futures, workers)
        if any(future.status != "finished" for future in futures):
            raise ClusterFailed(UNREADABLE)
        with suppress(TimeoutError):
            return [future.result(timeout=_FETCH) for future in futures]


def finish(client: Any, futures: Sequence[Any], workers: Collection[str] = ()) -> None:
    """Wait until tasks have ended; give up on a cluster that computes nothing for too long.

    Parameters
    ----------
    client : distributed.Client
    futures : sequence of distributed.Future
    workers : collection of str
        Addresses of the workers that the tasks were submitted to. If all workers are lost at once, the
        scheduler gives such tasks to no other one, although it may.
    """
    from dask import config
    from dask.utils import parse_timedelta
    from distributed import wait

    limit = float(parse_timedelta(config.get(TIMEOUT, _TIMEOUT)))
    silence, began = _SILENCE, monotonic()
    while True:
        with suppress(TimeoutError):
            wait(futures, timeout=min(_LOOK, limit / 4))
            return
        processing = client.processing()
        if any(processing.values()):
            silence, began = _SILENCE, monotonic()
        elif processing and not processing.keys() >= set(workers):
            raise WorkerLost
        idle = monotonic() - began
        if idle >= silence:
            progress.said(f"Dask cluster: no worker for {idle:.0f} s")
            silence *= 2
        if idle >= limit:
            break
    raise NoWorker(
        f"no worker of the Dask cluster computed anything for {limit:g} s: start workers, or set {TIMEOUT!r} "
        "in the configuration of Dask to wait longer"
    )
