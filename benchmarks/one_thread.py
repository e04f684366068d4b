"""Import this before NumPy: every library that reads these variables works on one thread."""

import os

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "GEOMIX_NUM_THREADS")
os.environ.update(dict.fromkeys(THREADS, "1"))
