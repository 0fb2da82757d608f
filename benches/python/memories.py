"""Keep the mean and the covariance of the rows so far, with a memory: what a user would write by hand in numpy."""

import numpy as np

FLOOR = 1e-3  # standard deviations relative to the typical one that are not amplified to one; Leukos has the same


def usable(rows: np.ndarray) -> np.ndarray:
    """The rows without a NaN or an infinity; one alone would make every later moment NaN."""
    return rows[np.isfinite(rows).all(1)]


class Memory:
    """Moments that start from those of a training set; a kind of memory says how much later rows weigh."""

    def fit(self, rows: np.ndarray) -> None:
        rows = usable(rows)
        self.rows = len(rows)
        self.mean = rows.mean(0)
        self.covariance = np.atleast_2d(np.cov(rows.T, bias=True))

    def learn(self, rows: np.ndarray) -> None:
        """What learning one row after another would end with."""
        rows = usable(rows)
        if not len(rows):
            return
        weights = self.weights(len(rows))
        share = weights.sum()
        mean = weights @ rows / share
        centred = rows - mean  # about the block's own mean, so that no offset drowns the covariance
        step = mean - self.mean
        self.mean = self.mean + share * step
        self.covariance = (
            (1 - share) * self.covariance + (centred.T * weights) @ centred + share * (1 - share) * np.outer(step, step)
        )
        self.rows += len(rows)

    def weights(self, rows: int) -> np.ndarray:
        """The weight of each of so many new rows in the moments; what has been before keeps the rest."""
        raise NotImplementedError


class Forgetting(Memory):
    """Each row weighs 1 / memory when it comes, and less with each row after it."""

    def __init__(self, memory: float):
        self.memory = memory

    def weights(self, rows):
        return (1 - 1 / self.memory) ** np.arange(rows)[::-1] / self.memory


class Growing(Memory):
    """Forgets nothing: every row since the first of the training set weighs the same."""

    def weights(self, rows):
        return np.full(rows, 1 / (self.rows + rows))


def whitening_matrix(covariance: np.ndarray) -> np.ndarray:
    """The symmetric inverse root; directions below the floor are not amplified to one."""
    values, axes = np.linalg.eigh(covariance)
    values = np.maximum(values, FLOOR**2 * values.mean())
    return axes / np.sqrt(values) @ axes.T
