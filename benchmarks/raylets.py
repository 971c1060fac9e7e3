"""A real Ray cluster on this machine's loopback: several raylets, each a node of its own, some of which are killed.

`python -m benchmarks.raylets NODES SLOTS` is the process that has them: it prints the address, then does what it is
told on its standard input (`kill`, `add`), and ends everything when that ends.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
# Ray takes the machine's address on the network unless it is told that there is no cluster; then it keeps to loopback,
# and so do all that connect to it. Nothing is reported to anybody.
VARIABLES = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
ADDRESS = "127.0.0.1"
OBJECT_STORE_BYTES = 100_000_000
ENDING_S = 30
MOST_SAID = 4000


class Raylets:
    """So many nodes with so many slots each, as long as it is open."""

    def __init__(self, nodes: int, slots: int = 1, caches: Path | None = None) -> None:
        """With `caches`, each node has a cache of its own there, under its name, as machines of their own have."""
        self._size = str(nodes), str(slots), *(() if caches is None else (str(caches),))
        self._process: subprocess.Popen[str] | None = None
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (as long as the process)
        self.address = ""

    def __enter__(self) -> Raylets:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.raylets", *self._size],
            cwd=ROOT,
            env={**os.environ, **VARIABLES},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            start_new_session=True,
        )
        self.address = self._read()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def kill(self) -> str:
        """End the newest node as a power cut would; gives its name."""
        return self._tell("kill")

    def add(self) -> str:
        """Have one more; gives its name."""
        return self._tell("add")

    def _tell(self, what: str) -> str:
        assert self._process is not None
        assert self._process.stdin is not None
        print(what, file=self._process.stdin, flush=True)
        return self._read()

    def _read(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line:
            self._log.seek(0)
            said = self._log.read().decode(errors="replace")[-MOST_SAID:]
            raise RuntimeError(f"The Ray cluster did not start, or has ended. It said: {said}")
        return line


def main(nodes: int, slots: int, caches: str | None) -> None:
    """Have the nodes, and do what is asked for."""
    # Short: the names of sockets in it may have a hundred letters.
    folder = tempfile.mkdtemp(prefix="rl-", dir="/tmp")
    # Ray also notes the address there, for those who want the cluster that was started last; that is not this one.
    os.environ["RAY_TMPDIR"] = folder
    os.mkdir(os.path.join(folder, "ray"))
    from ray.cluster_utils import Cluster

    def describe(number: int) -> dict[str, Any]:
        if caches is not None:
            # A raylet and all that it starts have the environment of whoever starts it.
            os.environ["TORCHMARK_CACHE"] = os.path.join(caches, f"node-{number}")
        return {
            "num_cpus": slots,
            "resources": {"torchmark": slots},
            "object_store_memory": OBJECT_STORE_BYTES,
            "node_ip_address": ADDRESS,
            "node_name": f"node-{number}",
        }

    head = {**describe(0), "include_dashboard": False, "temp_dir": folder}
    cluster: Any = Cluster(initialize_head=True, head_node_args=head)
    others = [(f"node-{number}", cluster.add_node(**describe(number))) for number in range(1, nodes)]
    made = nodes
    print(cluster.address, flush=True)
    for line in sys.stdin:
        if line.strip() == "kill":
            name, node = others.pop()
            cluster.remove_node(node, allow_graceful=False)
        else:
            name, made = f"node-{made}", made + 1
            others.append((name, cluster.add_node(**describe(made - 1))))
        print(name, flush=True)
    cluster.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None)
