"""The command line: every command parses, calls a library function and reports."""

import os

# Set before anything imports numpy: the matrices are small, and threads over them only wait for each other,
# most of all where a program has less of the processors than it sees. To learn a model took 25 times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

__all__: list[str] = []
