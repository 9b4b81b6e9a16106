"""Waiting for a cluster: as long as it works, but not for ever for one that has lost its workers."""

from __future__ import annotations

from collections.abc import Sequence
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


def results(client: Any, futures: Sequence[Any]) -> list[Any]:
    """What tasks return, as soon as all are done."""
    while True:
        finish(client, futures)
        if any(future.status != "finished" for future in futures):
            raise ClusterFailed(UNREADABLE)
        with suppress(TimeoutError):
            return [future.result(timeout=_FETCH) for future in futures]


def finish(client: Any, futures: Sequence[Any]) -> None:
    """Wait until tasks have ended; give up on a cluster that computes nothing for too long."""
    from dask import config
    from dask.utils import parse_timedelta
    from distributed import wait

    limit = float(parse_timedelta(config.get(TIMEOUT, _TIMEOUT)))
    silence, began = _SILENCE, monotonic()
    while True:
        with suppress(TimeoutError):
            wait(futures, timeout=min(_LOOK, limit / 4))
            return
        if any(client.processing().values()):
            silence, began = _SILENCE, monotonic()
        idle = monotonic() - began
        if idle >= limit:
            break
        if idle >= silence:
            progress.said(f"Dask cluster: no worker for {idle:.0f} s")
            silence *= 2
    raise NoWorker(
        f"no worker of the Dask cluster computed anything for {limit:g} s: start workers, or set {TIMEOUT!r} "
        "in the configuration of Dask to wait longer"
    )
