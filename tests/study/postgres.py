"""A PostgreSQL server for the length of a test or a benchmark, from the programs of the distribution."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def postgres_programs() -> Path | None:
    """The folder with `initdb` and `postgres` (Debian keeps them off the path); None where there are none."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "postgres").exists() and (folder / "initdb").exists()), None)


@contextmanager
def temporary_postgres() -> Iterator[str]:
    """The SQLAlchemy URL of a fresh server on the loopback; it and its data are gone afterwards.

    PostgreSQL refuses to run as root: root becomes the user `postgres` for it.
    """
    programs = postgres_programs()
    if programs is None:
        raise FileNotFoundError("PostgreSQL's programs (initdb, postgres) are not installed")
    user = "postgres" if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="scalegrad-postgres-"))
    try:
        if user:
            shutil.chown(folder, user)
        initdb: list[str | Path] = [
            programs / "initdb",
            "-D",
            folder / "data",
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "-N",
        ]
        subprocess.run(initdb, check=True, capture_output=True, user=user, cwd=folder)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        start: list[str | Path] = [
            programs / "postgres",
            "-D",
            folder / "data",
            "-p",
            str(port),
            "-h",
            "127.0.0.1",
            "-k",
            folder,
        ]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(start, stdout=log, stderr=log, user=user, cwd=folder)
        try:
            _wait(port, server)
            yield f"postgresql+psycopg://postgres@127.0.0.1:{port}/postgres"
        finally:
            server.send_signal(signal.SIGINT)  # its word for: do not wait for clients
            server.wait(30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait(port: int, server: subprocess.Popen[bytes], seconds: float = 30) -> None:
    import psycopg

    end = time.monotonic() + seconds
    while True:
        try:
            psycopg.connect(host="127.0.0.1", port=port, user="postgres", dbname="postgres").close()
            return
        except psycopg.OperationalError:
            if server.poll() is not None or time.monotonic() > end:
                raise
            time.sleep(0.1)
