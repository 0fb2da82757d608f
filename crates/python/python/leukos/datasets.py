"""Contexts and stimuli of the paper's experiments, and stacks of covariances from files."""

from __future__ import annotations

import os
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ._leukos import control_covariances, draw_stimuli, field_covariances, synthetic_covariances
from ._plain_arrays import refuse_disguised

__all__ = [
    "SyntheticContexts",
    "draw",
    "field_contexts",
    "load_covariances",
    "matched_controls",
    "synthetic_contexts",
]


class SyntheticContexts(NamedTuple):
    """Contexts of the synthetic family, and what they were made of."""

    covariances: NDArray[np.float64]
    """C_c = (leak I + V diag(strengths_c) V')^2, of shape (contexts, N, N)."""
    axes: NDArray[np.float64]
    """V, of shape (N, K)."""
    strengths: NDArray[np.float64]
    """Of shape (contexts, K)."""


def synthetic_contexts(
    n_contexts: int = 64,
    n_neurons: int = 2,
    n_interneurons: int = 2,
    *,
    axes: Literal["sphere", "angles", "nonnegative", "orthogonal"] | ArrayLike = "sphere",
    angles: tuple[float, float] = (40.0, 80.0),
    sparsity: float = 0.5,
    strengths: tuple[float, float] = (0.0, 4.0),
    blank: Literal["kept", "redrawn"] = "kept",
    leak: float = 1.0,
    random_state: int = 0,
) -> SyntheticContexts:
    """Draws contexts that share axes: the paper's synthetic family, C_c = (leak I + V diag(strengths_c) V')^2.

    Parameters
    ----------
    n_contexts, n_neurons, n_interneurons : int
        The number of contexts, of rows of V, and of columns of V.
    axes : "sphere", "angles", "nonnegative", "orthogonal" or array of shape (n_neurons, n_interneurons)
        How V is drawn: columns uniform on the unit sphere; the same until the acute angle between any two is in the
        range `angles`; uniform where no entry is negative; orthonormal; or these.
    angles : pair of floats
        In degrees, for axes="angles". The authors' code has (40, 80) and blank="redrawn".
    sparsity : float
        The probability that a strength is zero.
    strengths : pair of floats
        The range a strength is uniform on when it is not zero.
    blank : "kept" or "redrawn"
        What to do with a context in which every strength is zero.
    leak : float
    random_state : int
        The same number gives the same contexts on any machine.
    """
    drawn = synthetic_covariances(
        n_contexts,
        n_neurons,
        n_interneurons,
        axes=axes,
        angles=angles,
        sparsity=sparsity,
        strengths=strengths,
        blank=blank,
        leak=leak,
        seed=random_state,
    )
    return SyntheticContexts(*drawn)


def field_contexts(
    n_contexts: int = 56,
    shape: tuple[int, int] = (5, 5),
    *,
    spacing: int = 1,
    exponents: tuple[float, float] = (0.6, 1.8),
    log_stretch: float = 0.5,
    upright: float = 0.7,
    noise: tuple[float, float] = (0.1, 0.5),
    condition: float = 20.0,
    norm: float = 10.0,
    random_state: int = 0,
) -> NDArray[np.float64]:
    """Covariances of image patches, as natural images would have them: Gaussian fields with a 1/f^a spectrum.

    Parameters
    ----------
    n_contexts : int
    shape : pair of ints
        Height and width of a patch; (1, 16) is the paper's one-dimensional one.
    spacing : int
        The distance between neighbours, in pixels of the field.
    exponents : pair of floats
        The range the exponent a is uniform on.
    log_stretch : float
        How far at most, in logarithm, a field is stretched along one direction.
    upright : float
        The probability that this direction is along the axes.
    noise : pair of floats
        The range the variance of white noise is uniform on, beside a field of variance 1.
    condition : float
        Fields whose covariance has a larger condition number are dropped.
    norm : float
        The operator norm each covariance is scaled to.
    random_state : int

    Returns an array of shape (n_contexts, N, N) with N = height * width; pixels are in C order.
    """
    return field_covariances(
        n_contexts,
        shape,
        spacing=spacing,
        exponents=exponents,
        log_stretch=log_stretch,
        upright=upright,
        noise=noise,
        condition=condition,
        norm=norm,
        seed=random_state,
    )


def matched_controls(covariances: ArrayLike, *, random_state: int = 0) -> NDArray[np.float64]:
    """The same eigenvalues with random eigenvectors, different in each context: the contexts share nothing else.

    Parameters
    ----------
    covariances : array of shape (contexts, N, N)
    random_state : int
    """
    return control_covariances(covariances, random_state)


def draw(
    covariances: ArrayLike,
    presented: ArrayLike | None = None,
    samples: int = 1000,
    *,
    degrees_of_freedom: float | None = None,
    autocorrelation: float | None = None,
    dtype: DTypeLike = np.float64,
    random_state: int = 0,
) -> NDArray[Any]:
    """Draws stimuli with mean zero and these covariances.

    Parameters
    ----------
    covariances : array of shape (contexts, N, N)
    presented : array of shape (presentations,), optional
        Which context each presentation shows; each of them once by default.
    samples : int
        Stimuli of each presentation.
    degrees_of_freedom : float, optional
        Student's t instead of the normal law; above 2.
    autocorrelation : float, optional
        Of one stimulus with the next, between -1 and 1.
    dtype : float64 or float32
    random_state : int

    Returns an array of shape (presentations * samples, N).
    """
    refuse_disguised("covariances", covariances)
    covariances = np.asarray(covariances)
    if presented is None:
        presented = np.arange(len(covariances)) if covariances.ndim else []
    kind = np.dtype(dtype)
    if kind not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise ValueError(f"dtype: expected float64 or float32, got {kind}")
    return draw_stimuli(
        covariances,
        presented,
        samples,
        degrees_of_freedom=degrees_of_freedom,
        autocorrelation=autocorrelation,
        single=kind == np.dtype(np.float32),
        seed=random_state,
    )


def load_covariances(path: str | os.PathLike[str]) -> NDArray[np.float64]:
    """Reads a stack of covariances, as `leukos contexts` writes it: a .npy array of shape (contexts, N, N)."""
    stack = np.load(path, allow_pickle=False)
    if not isinstance(stack, np.ndarray) or stack.ndim != 3 or stack.shape[1] != stack.shape[2]:
        found = stack.shape if isinstance(stack, np.ndarray) else type(stack).__name__
        raise ValueError(f"{os.fspath(path)}: expected an array of shape (contexts, N, N), got {found}")
    stack = stack.astype(np.float64)
    if not np.isfinite(stack).all():
        raise ValueError(f"{os.fspath(path)}: expected finite numbers, got a NaN or an infinity")
    if not np.allclose(stack, stack.transpose(0, 2, 1), rtol=1e-6, atol=1e-9 * np.abs(stack).max(initial=0.0)):
        raise ValueError(f"{os.fspath(path)}: expected symmetric matrices, got others")
    return stack
