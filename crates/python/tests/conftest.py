"""Lets scikit-learn check everything that it can."""

import os

# Read when scipy is imported; without it scikit-learn leaves its checks of the array API out.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
