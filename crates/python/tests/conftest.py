"""Lets scikit-learn check everything that it can, and Ctrl-C be heard wherever the tests are run."""

import os
import signal

# Read when scipy is imported; without it scikit-learn leaves its checks of the array API out.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

# A process that was started in the background may have been told to ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
