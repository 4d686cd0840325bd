"""A database that one thread closes while another reads: the reader gets an error, and the process continues."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ipfsmem.device.database import Database
from ipfsmem.errors import ClosedError

_READS_LONG = """
import sys, threading
from pathlib import Path
from ipfsmem.device.database import Database
from ipfsmem.errors import ClosedError

ROWS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 100000000) SELECT x FROM n"
db = Database(Path(sys.argv[1]))
began = threading.Event()

def read():
    try:
        for _ in db.connection.execute(ROWS):
            began.set()
    except ClosedError as error:
        print(error)

reading = threading.Thread(target=read)
reading.start()
began.wait(60)
db.close()
reading.join(60)
"""


def test_database_closed_during_read_of_another_thread_ends_no_process(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _READS_LONG, str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{tmp_path / 'state.db'} was closed meanwhile\n"


def test_calls_on_a_closed_database_raise_our_error(tmp_path: Path) -> None:
    db = Database(tmp_path)
    db.close()
    asked = [
        db.version,
        lambda: db.snapshot().__enter__(),
        lambda: db.transaction().__enter__(),
        db.empty_log,
    ]
    for one in asked:
        try:
            one()
        except ClosedError:
            continue
        raise AssertionError(one)
