"""PgBouncer in transaction mode before a server of the tests: each transaction may get another of a few connections."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PORT = 6432
CONFIGURATION = """
[databases]
postgres = host={server} port=5432

[pgbouncer]
unix_socket_dir = {folder}
listen_addr =
listen_port = {port}
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = 8
max_client_conn = 500
ignore_startup_parameters = extra_float_digits
logfile = {folder}/log
"""


@contextmanager
def running_pgbouncer(server: Path, users: tuple[str, ...]) -> Iterator[Path]:
    """The folder of its socket; `server` is that of the server's."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    assert program is not None, "install PgBouncer to run these tests"
    with tempfile.TemporaryDirectory(prefix="rpb-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        text = CONFIGURATION.format(server=server, folder=folder, port=PORT)
        (folder / "pgbouncer.ini").write_text(text, "utf-8")
        (folder / "users").write_text("".join(f'"{user}" ""\n' for user in users), "utf-8")
        user = "nobody" if os.geteuid() == 0 else None
        if user is not None:
            for path in (folder, *folder.iterdir()):
                shutil.chown(path, user)
        process = subprocess.Popen(
            [program, "-q", str(folder / "pgbouncer.ini")], user=user, extra_groups=[] if user else None, cwd=folder
        )
        try:
            while not (folder / f".s.PGSQL.{PORT}").exists():
                assert process.poll() is None, (folder / "log").read_text("utf-8")
                time.sleep(0.01)
            yield folder
        finally:
            process.terminate()
            process.wait(30)
