"""A small process that starts the measured ones.

The system counts a new process's peak memory from the size of its parent, so the bench, which holds whole
corpora, must not start them itself. Reads one JSON line per command, answers one line: seconds, peak KiB,
processor seconds, exit code. Imports as little as possible."""

import json
import os
import subprocess
import sys
import time


def serve() -> None:
    """Serve until the bench ends."""
    for line in sys.stdin:
        asked = json.loads(line)
        with open(asked["out"], "wb") as out, open(asked["err"], "wb") as err:  # noqa: PTH123 - no pathlib here
            started = time.perf_counter()
            try:
                child = subprocess.Popen(
                    asked["command"],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    cwd=asked["cwd"],
                    env={**os.environ, **asked["env"]},
                )
            except OSError as error:
                err.write(str(error).encode())
                answer = (0.0, 0, 0.0, 127)
            else:
                _, status, usage = os.wait4(child.pid, 0)
                seconds = time.perf_counter() - started
                child.returncode = os.waitstatus_to_exitcode(status)
                answer = (seconds, usage.ru_maxrss, usage.ru_utime + usage.ru_stime, child.returncode)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()
