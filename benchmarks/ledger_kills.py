"""Kill fits at random points and look for a model that the ledger did not charge.

    python benchmarks/ledger_kills.py [processes [folder]]

A warm parent forks processes that fit small models with one ledger in SQLite and print each model to a file.
Each is killed by SIGKILL after a random time. At the end, and every thousand processes, the journal must
verify, every printed model must have its reservation, and what is spent must be at least what the models that
were printed cost.
"""

import json
import os
import random
import signal
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

os.environ.setdefault("NUMBA_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from dpglm import Ledger, LogisticRegression
from dpglm.solvers import GradientDescent

PROCESSES = 10_000
AT_ONCE = 2


def fitted(address: str, x: np.ndarray, y: np.ndarray) -> LogisticRegression:
    solver = GradientDescent(steps=3)
    return LogisticRegression(epsilon=0.01, delta=1e-6, classes=[-1, 1], solver=solver, ledger=address).fit(
        x, y
    )


def child(address: str, x: np.ndarray, y: np.ndarray, output: Path) -> None:
    """Fit until killed; each model is printed with one write, which a kill cannot cut."""
    handle = os.open(output, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    while True:
        model = fitted(address, x, y)
        line = json.dumps({"coef": model.coef_.tolist(), "ledger": model.privacy_.public["ledger"]}) + "\n"
        os.write(handle, line.encode())


def checked(account, output: Path) -> tuple[int, int, int]:
    """Compare the printed models with the journal; return models, reservations and commitments."""
    # the models first: processes may still be running, and what they print later is in no earlier journal
    lines = output.read_text().splitlines() if output.exists() else []
    account.verify()
    entries = account.history()
    reserved = {entry.hash: entry for entry in entries if entry.kind == "reservation"}
    hashes = [json.loads(line)["ledger"].rpartition(" ")[2] for line in lines]
    assert len(set(hashes)) == len(hashes), "two models share a reservation"
    missing = [one for one in hashes if one not in reserved]
    assert not missing, f"{len(missing)} models were not charged"
    cost = sum((reserved[one].charge.mu_squared for one in hashes), Fraction(0))
    assert account.state().spent().mu_squared >= cost, "less is spent than the models cost"
    return len(lines), len(reserved), sum(entry.kind == "commitment" for entry in entries)


def main(processes: int = PROCESSES, folder: str | None = None) -> tuple[int, int, int]:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (200, 3))
    y = np.where(x[:, 0] > 0, 1, -1)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        account = Ledger(f"sqlite:///{place}/budget.db").create("stress", epsilon=200.0, delta=1e-6)
        address, output = str(account.address), Path(place) / "models.jsonl"
        fitted(address, x, y)
        start = time.perf_counter()
        for _ in range(10):
            fitted(address, x, y)
        usual = (time.perf_counter() - start) / 10
        coins = random.Random(0)
        alive: list[tuple[float, int]] = []
        start = time.perf_counter()
        for k in range(1, processes + 1):
            while len(alive) >= AT_ONCE:
                deadline, pid = min(alive)
                time.sleep(max(0.0, deadline - time.perf_counter()))
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                alive.remove((deadline, pid))
            pid = os.fork()
            if pid == 0:
                try:
                    child(address, x, y, output)
                finally:
                    os._exit(1)
            alive.append((time.perf_counter() + coins.uniform(0.0, 2 * usual), pid))
            if k % 1000 == 0:
                print(
                    f"{k} killed: %d models, %d reservations, %d commitments" % checked(account, output),
                    flush=True,
                )
        for _, pid in alive:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        found = checked(account, output)
        print(
            f"{processes} processes killed in {time.perf_counter() - start:.0f} s, "
            f"{found[0]} models printed, {found[1]} reservations, {found[2]} commitments; "
            "the chain verifies, no model is uncharged"
        )
    return found


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else PROCESSES, sys.argv[2] if len(sys.argv) > 2 else None)
