"""A Ray of one's own on this machine, under a guard, on 127.0.0.1 alone; a program and what starts it.

`python local.py FOLDER CPUS` starts it below itself, prints its address and waits.
"""

from __future__ import annotations

import os
import sys
import time

ALONE = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # the switch by which Ray stays on the loopback interface
    "RAY_DEDUP_LOGS": "0",
}


def main(folder: str, cpus: str) -> None:
    """Start Ray and keep it until this process ends."""
    import ray

    ray.init(
        address="local",
        num_cpus=int(cpus),
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        _temp_dir=folder,
    )
    print(f"address={ray.get_runtime_context().gcs_address}", flush=True)
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    os.environ.update(ALONE)
    main(*sys.argv[1:])
