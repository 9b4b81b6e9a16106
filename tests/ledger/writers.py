"""Run by tests: many processes reserve fits from one account at once.

    python writers.py URL PROCESSES EACH

Prints how many reservations were made, refused for the budget, and failed otherwise.
"""

import json
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

from dpglm import LogisticRegression
from dpglm.errors import BudgetExceeded
from dpglm.ledger import Account, Address
from dpglm.solvers import GradientDescent


def main(address: str, processes: int, each: int) -> None:
    plan = LogisticRegression(epsilon=0.5, delta=1e-6, solver=GradientDescent(steps=3)).plan(1000, 3)
    account = Account(Address.parse(address))
    account.state()  # imports what the processes need
    go_out, go_in = os.pipe()
    done_out, done_in = os.pipe()
    children = []
    for _ in range(processes):
        pid = os.fork()
        if pid == 0:
            os.close(go_in)
            os.read(go_out, 1)  # all start at once, when the parent closes its end
            counts = {"made": 0, "refused": 0, "failed": []}
            for _ in range(each):
                try:
                    account.commit(account.reserve(plan))
                    counts["made"] += 1
                except BudgetExceeded:
                    counts["refused"] += 1
                except Exception as error:
                    counts["failed"].append(repr(error)[:300])
            os.write(done_in, (json.dumps(counts) + "\n").encode())
            os._exit(0)
        children.append(pid)
    os.close(done_in)
    os.close(go_in)
    with os.fdopen(done_out) as lines:
        counts = [json.loads(line) for line in lines]
    for pid in children:
        os.waitpid(pid, 0)
    print(
        json.dumps(
            {
                "processes": len(counts),
                "made": sum(count["made"] for count in counts),
                "refused": sum(count["refused"] for count in counts),
                "failed": [error for count in counts for error in count["failed"]],
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
