//! Will bind the core to Python. Nothing is bound yet.
