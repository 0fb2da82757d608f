"""Types of the compiled part, and its documentation, which `stubs.py` copies from the Rust that it is written in."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

_Array: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
_Doubles: TypeAlias = NDArray[np.float64]
_Solver: TypeAlias = Literal["direct", "iterative", "dynamics", "loop"]
_Order: TypeAlias = Literal["sequential", "concurrent"]
_UnitNorm: TypeAlias = Literal["free", "projected", "multiplier"]
_Sign: TypeAlias = Literal["free", "nonnegative"]
_Part: TypeAlias = Literal["gains", "synapses", "feedforward", "multipliers"]
_Values: TypeAlias = Literal["words", "number", "time", "samples", "interneurons", "seed", "synapses", "groups"]

__all__ = [
    "Circuit",
    "ContextMoments",
    "DivergedError",
    "Moments",
    "NotConvergedError",
    "OfflineRun",
    "OnlineRun",
    "Setting",
    "Whitener",
    "__version__",
    "align",
    "control_covariances",
    "draw_stimuli",
    "field_covariances",
    "gradient",
    "least_squares_gains",
    "objective",
    "optimal_gains",
    "run_biological",
    "run_offline",
    "run_online",
    "settings",
    "synthetic_covariances",
    "whitening_error",
]

__version__: str

class DivergedError(RuntimeError):
    """A run lost definiteness. `step` is the step, counted from 0, whose update or response failed; `circuit` is the last circuit known to be valid. Smaller rates may help."""
    step: int
    circuit: Circuit

class NotConvergedError(RuntimeError):
    """The recurrent dynamics did not settle, or an iteration ran out of steps."""

@final
class Circuit:
    """A circuit of N primary neurons and K interneurons, M = leak I + W diag(g) W' (Eq. 2).

    Parameters
    ----------
    synapses : array of shape (N, K)
        W; the feedback weights W_nr where `feedforward` is given. Their dtype, float32 or float64, is the circuit's.
    gains : array of shape (K,)
        g, one for each interneuron.
    leak : float
        The leak, alpha in the paper; 0 or more.
    feedforward : array of shape (K, N), optional
        W_rn, which makes the circuit untied.
    multipliers : array of shape (K,), optional
        The Lagrange multipliers of the unit-norm constraint; 0 unless given.

    Raises ValueError when shapes do not fit, a number is not finite, or M is not positive definite (untied: an
    eigenvalue of M has a real part that is not positive).

    A circuit never changes: a run starts from it and hands out a new one.
    """
    def __new__(
        cls,
        synapses: ArrayLike,
        gains: ArrayLike,
        leak: float = 1.0,
        *,
        feedforward: ArrayLike | None = None,
        multipliers: ArrayLike | None = None,
    ) -> Self: ...
    @property
    def synapses(self) -> _Array:
        """W (N, K), or the feedback weights W_nr of an untied circuit; a copy."""
    @property
    def feedforward(self) -> _Array | None:
        """The feedforward weights W_rn (K, N) of an untied circuit, else None; a copy."""
    @property
    def gains(self) -> _Array:
        """g (K,); a copy."""
    @property
    def multipliers(self) -> _Array:
        """The Lagrange multipliers m (K,); a copy."""
    @property
    def leak(self) -> float:
        """The leak."""
    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]: ...
    def inverse_whitening_matrix(self) -> _Array:
        """M = leak I + W_nr diag(g) W_rn (N, N), which turns responses back into stimuli."""
    def whitening_matrix(self) -> _Array:
        """F = M^-1 (N, N), which turns stimuli into responses."""
    def respond(
        self,
        S: ArrayLike,
        solver: _Solver = "direct",
        *,
        response_rate: float | None = None,
        tolerance: float | None = None,
        max_iterations: int | None = None,
    ) -> _Array:
        """The responses r = M^-1 s (Eq. 6) to stimuli, with everything frozen.

        Parameters
        ----------
        S : array of shape (T, N), or (N,) for one stimulus
        solver : "direct", "iterative", "dynamics" or "loop"
            A factorisation, conjugate gradients, the recurrent dynamics of Algorithms 1 and 3 until they settle, or the
            same dynamics cut short: exactly `max_iterations` steps from r = 0, settled or not.
        response_rate, max_iterations
            Of "dynamics" and "loop". A response rate of None is chosen from a bound on the eigenvalues of M.
        tolerance
            Of "dynamics" and "iterative".

        Returns an array of the shape of S and the dtype of the circuit.
        """

@final
class OnlineRun:
    """The result of `run_online` or `run_biological`.

    Attributes
    ----------
    responses : array of shape (T, N)
        The response to each stimulus, before the circuit learned from it.
    circuit : Circuit
        The circuit at the end.
    errors : array of shape (ceil(T / every),), or None
        The whitening error (operator norm) before the steps 0, every, 2 every, ...; None without covariances.
    trace : dict
        For each name in `record` an array whose first axis has the same steps.
    """
    def __new__(
        cls, responses: _Array, circuit: Circuit, errors: _Doubles | None, trace: dict[str, _Array]
    ) -> Self: ...
    def __getnewargs__(self) -> tuple[Any, ...]: ...
    @property
    def responses(self) -> _Array: ...
    @property
    def circuit(self) -> Circuit: ...
    @property
    def errors(self) -> _Doubles | None: ...
    @property
    def trace(self) -> dict[str, _Array]: ...

@final
class OfflineRun:
    """The result of `run_offline`.

    Attributes
    ----------
    errors : array of shape (presentations, steps), or None
        The whitening error (operator norm) before each step; None if it was not measured.
    circuit : Circuit
        The circuit at the end.
    """
    def __new__(cls, errors: _Doubles | None, circuit: Circuit, presentations: int) -> Self: ...
    def __getnewargs__(self) -> tuple[Any, ...]: ...
    @property
    def errors(self) -> _Doubles | None: ...
    @property
    def circuit(self) -> Circuit: ...

def run_online(
    circuit: Circuit,
    S: ArrayLike,
    *,
    gain_rate: float | None,
    synapse_rate: float | None,
    order: _Order = "sequential",
    unit_norm: _UnitNorm = "free",
    sign: _Sign = "free",
    multiplier_rate: float | None = None,
    batch: int = 1,
    solver: _Solver = "direct",
    response_rate: float | None = None,
    tolerance: float | None = None,
    max_iterations: int | None = None,
    covariances: ArrayLike | None = None,
    presented: ArrayLike | None = None,
    record: Sequence[_Part] = ...,
    every: int = 1,
) -> OnlineRun:
    """Runs a circuit on stimuli and lets it learn from each (Algorithm 1 with its defaults).

    Parameters
    ----------
    circuit : Circuit
        Where to start, tied or untied; it is not changed.
    S : array of shape (T, N)
        Stimuli.
    gain_rate, synapse_rate, multiplier_rate : float or None
        The rates of gains (Eq. 7), synapses (Eq. 8) and multipliers. None freezes that part.
    order : "sequential" or "concurrent"
        Whether an update sees values that are new already, as in the pseudo-code, or the old ones, as in the text.
    unit_norm : "free", "projected" or "multiplier"
        How the length of an interneuron's weights is held at one.
    sign : "free" or "nonnegative"
        Whether gains, weights and multipliers are rectified.
    batch : int
        How many samples are answered before their mean update is made.
    solver, response_rate, tolerance, max_iterations
        How responses are found; see `Circuit.respond`.
    covariances : array of shape (contexts, N, N), optional
        Measures the whitening error against them. S consists of presentations of equal length, one for each
        covariance, or one for each entry of `presented`.
    presented : array of shape (presentations,), optional
        Which of the covariances each presentation has.
    record : sequence of "gains", "synapses", "feedforward" and "multipliers"
        What to keep of the circuits on the way.
    every : int
        Keep and measure only before the steps 0, every, 2 every, ...

    Returns an `OnlineRun`. Raises `DivergedError` when M stops being positive definite, and `NotConvergedError` when
    the dynamics do not settle.
    """
def run_biological(
    circuit: Circuit,
    S: ArrayLike,
    *,
    gain_rate: float | None,
    synapse_rate: float | None,
    multiplier_rate: float | None,
    order: _Order = "sequential",
    batch: int = 1,
    solver: _Solver = "direct",
    response_rate: float | None = None,
    tolerance: float | None = None,
    max_iterations: int | None = None,
    covariances: ArrayLike | None = None,
    presented: ArrayLike | None = None,
    record: Sequence[_Part] = ...,
    every: int = 1,
) -> OnlineRun:
    """Algorithm 3: separate feedforward and feedback synapses, all numbers non-negative, unit norm by multipliers.

    The preset of `run_online` with unit_norm="multiplier" and sign="nonnegative"; the circuit must be untied, and none of its
    numbers negative. The other parameters are those of `run_online`.
    """
def run_offline(
    circuit: Circuit,
    covariances: ArrayLike,
    presented: ArrayLike,
    *,
    steps: int,
    gain_rate: float | None,
    synapse_rate: float | None,
    order: _Order = "concurrent",
    unit_norm: _UnitNorm = "free",
    sign: _Sign = "free",
    multiplier_rate: float | None = None,
    gains: Literal["rule", "least_squares", "optimal"] = "rule",
    errors: bool = True,
) -> OfflineRun:
    """Runs a circuit on the covariances of contexts (Algorithm 2).

    Parameters
    ----------
    circuit : Circuit
        Where to start; it is not changed.
    covariances : array of shape (contexts, N, N)
        C_ss of each context.
    presented : array of shape (presentations,)
        Which context each presentation shows, by number from 0.
    steps : int
        Updates in each presentation, J in the paper.
    gain_rate, synapse_rate, multiplier_rate : float or None
        The rates of gains (Eq. 7), synapses (Eq. 8) and multipliers. None freezes that part.
    order : "concurrent" or "sequential"
        As in the paper's text and the authors' code, or as in the pseudo-code, which diverges on natural images.
    unit_norm, sign
        As for `run_online`.
    gains : "rule", "least_squares" or "optimal"
        Whether gains are stepped by their rule, or set before each step: so that M is nearest to C^(1/2), or to the
        minimum of the objective.
    errors : bool
        Whether the whitening error is measured before each step, which takes longer than the step itself.

    Returns an `OfflineRun`. Raises `DivergedError` when M stops being positive definite.
    """
def objective(M: ArrayLike, C: ArrayLike) -> float:
    """The objective f_C(M) = tr(M^-1 C + M) (Eq. 3), infinite where M is not positive definite.

    Parameters
    ----------
    M : array of shape (N, N), symmetric
    C : array of shape (N, N), a covariance

    Its minimum 2 tr C^(1/2) is at M = C^(1/2).
    """
def gradient(M: ArrayLike, C: ArrayLike) -> _Doubles:
    """The gradient I - M^-1 C M^-1 of the objective, for symmetric M.

    Parameters
    ----------
    M : array of shape (N, N), positive definite
    C : array of shape (N, N), a covariance
    """
def whitening_error(M: ArrayLike, C: ArrayLike) -> float:
    """The whitening error, the operator norm of M^-1 C M^-T - I (Eq. 9): 0 where responses are white.

    Parameters
    ----------
    M : array of shape (N, N), the inverse whitening matrix
    C : array of shape (N, N), a covariance
    """
def align(A: ArrayLike, B: ArrayLike) -> tuple[_Doubles, float]:
    """The columns of A, permuted and flipped so that they are nearest to those of B, and the distance that is left.

    Parameters
    ----------
    A, B : arrays of shape (N, K)

    Returns (A_aligned, distance). The alignment is exact (an assignment problem); the distance is the Frobenius norm
    of A_aligned - B.
    """
def optimal_gains(W: ArrayLike, C: ArrayLike, leak: float = 1.0) -> _Doubles:
    """The gains (K,) that minimise the objective f_C(leak I + W diag(g) W').

    Parameters
    ----------
    W : array of shape (N, K)
    C : array of shape (N, N), positive definite
    leak : float
    """
def least_squares_gains(W: ArrayLike, C: ArrayLike, leak: float = 1.0) -> _Doubles:
    """The gains (K,) for which M = leak I + W diag(g) W' is nearest to C^(1/2) in the Frobenius norm.

    Parameters
    ----------
    W : array of shape (N, K)
    C : array of shape (N, N), a covariance
    leak : float

    M need not be positive definite there.
    """

@final
class Moments:
    """Count, mean and co-moments of samples, which can be summed up separately and merged.

    Parameters
    ----------
    channels : int

    Any split of the samples gives the same to rounding, and the same bits as long as it is the same split (Chan, Golub
    and LeVeque 1983). Rows with a NaN or an infinity are counted in `bad` and left out, and so are wild ones: those more
    than 30 times as far from the median of their block of 256 as is typical there.
    """
    def __new__(cls, channels: int) -> Self: ...
    def update(self, X: ArrayLike) -> None:
        """Takes in rows of samples, an array of shape (T, channels)."""
    def merge(self, other: Moments) -> None:
        """Adds the samples that another has summed up."""
    def covariance(self) -> _Doubles:
        """The covariance (channels, channels) about the mean, divided by the count."""
    @property
    def channels(self) -> int:
        """The number of channels."""
    @property
    def count(self) -> int:
        """The number of samples summed up."""
    @property
    def bad(self) -> int:
        """The number of samples left out."""
    @property
    def mean(self) -> _Doubles:
        """The mean (channels,)."""
    @property
    def comoments(self) -> _Doubles:
        """The sum of (s - mean)(s - mean)' (channels, channels)."""

@final
class ContextMoments:
    """Moments of each context of a stream; the engine of `AdaptiveWhitener.fit`."""
    def __new__(cls, channels: int, saturation: float | None) -> Self: ...
    @staticmethod
    def of(channels: int, saturation: float | None, contexts: Sequence[tuple[str, Moments]]) -> ContextMoments:
        """Of contexts that were summed up elsewhere, by name; further rows can be taken in."""
    def __len__(self) -> int: ...
    def __copy__(self) -> Self: ...
    def update(self, context: str, X: ArrayLike) -> None:
        """Takes in rows of one context."""
    @property
    def rows(self) -> int: ...
    @property
    def bad(self) -> int: ...

@final
class Whitener:
    """A fitted whitener, in the precision of the rows that it saw last: the engine of `AdaptiveWhitener`.

    Copies share their numbers until one of them learns. Those who read while another thread adapts see it as it was.
    """
    @staticmethod
    def fit(moments: ContextMoments, fitting: Mapping[str, Any]) -> Whitener:
        """Fits a whitener to the moments of contexts."""
    @staticmethod
    def from_bytes(bytes: bytes, label: str | None = None) -> Whitener:
        """Reads a model or a checkpoint."""
    def to_bytes(self) -> bytes:
        """The bytes of the model file: what was learned, and the settings."""
    def to_checkpoint(self) -> bytes:
        """The bytes of a checkpoint: the model and its running state, which continues to the last bit."""
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object) -> Self: ...
    def adapt(self, X: ArrayLike, begins: Sequence[int] = ..., label: str | None = None) -> _Array:
        """Whitens rows and adapts on the way: all of them, or none after an error. Contexts begin before the rows at some
        positions, and the last row belongs to a context with this label.
        """
    def adapt_inverse(self, X: ArrayLike) -> _Array:
        """Turns the responses of an adapting run back into its stimuli, by adapting in the same way."""
    def transform(self, X: ArrayLike) -> _Array:
        """Whitens rows without adapting."""
    def inverse_transform(self, X: ArrayLike) -> _Array:
        """Turns responses back into stimuli without adapting."""
    def begin_context(self) -> None:
        """Says that a new context begins."""
    def take_over(self, other: Whitener) -> None:
        """Takes over what another of the same channels has learned, and goes on with its own stream."""
    @property
    def channels(self) -> int: ...
    @property
    def interneurons(self) -> int:
        """The interneurons of all groups."""
    @property
    def channel_names(self) -> list[str] | None: ...
    @property
    def label(self) -> str | None:
        """The context of the last row, if rows have labels."""
    @property
    def samples_seen(self) -> int:
        """Rows taken in while adapting."""
    @property
    def changes(self) -> int:
        """How often the context was found to have changed, in the group where it was most often."""
    @property
    def rows_in_force(self) -> float:
        """How many samples the covariance in force rests on, in the group where they are fewest."""
    def memories(self) -> list[tuple[int, float, float, float, float]]:
        """The memories of each group: group, length, and the weights as it is, along its trend, and scaled by its gain."""
    @property
    def mean(self) -> _Doubles: ...
    @property
    def scale(self) -> _Doubles:
        """The scale of each channel, that of its group."""
    @property
    def gains(self) -> _Doubles:
        """The gains that are best for the covariance in force; they are computed."""
    @property
    def synapses(self) -> _Doubles:
        """The synapses of all groups side by side, with zeros between groups."""
    @property
    def prior(self) -> tuple[_Doubles, _Doubles] | None:
        """Mean and covariance of the gains in the contexts of the fit, for a whitener of one group."""
    def whitening_matrix(self) -> _Doubles: ...
    def dewhitening_matrix(self) -> _Doubles: ...
    def status(self) -> str:
        """Its status in words."""
    def settings(self) -> dict[str, Any]:
        """The settings of a loaded model, by the names of the parameters."""

def synthetic_covariances(
    n_contexts: int,
    n_neurons: int,
    n_interneurons: int,
    *,
    axes: str | ArrayLike,
    angles: tuple[float, float],
    sparsity: float,
    strengths: tuple[float, float],
    blank: str,
    leak: float,
    seed: int,
) -> list[_Doubles]:
    """The paper's synthetic family: covariances, axes V and strengths of each context."""
def field_covariances(
    n_contexts: int,
    shape: tuple[int, int],
    *,
    spacing: int,
    exponents: tuple[float, float],
    log_stretch: float,
    upright: float,
    noise: tuple[float, float],
    condition: float,
    norm: float,
    seed: int,
) -> _Doubles:
    """Covariances of patches of 1/f^a fields."""
def control_covariances(covariances: ArrayLike, seed: int) -> _Doubles:
    """The same spectra with random eigenvectors."""
def draw_stimuli(
    covariances: ArrayLike,
    presented: ArrayLike,
    samples: int,
    *,
    degrees_of_freedom: float | None,
    autocorrelation: float | None,
    single: bool,
    seed: int,
) -> _Array:
    """Stimuli of presentations of equal length."""

@final
class Setting:
    """A setting: a parameter of `AdaptiveWhitener`, and a flag of `leukos fit`."""
    @property
    def name(self) -> str:
        """The name."""
    @property
    def about(self) -> str:
        """What it does, without a full stop."""
    @property
    def words(self) -> list[tuple[str, str]]:
        """The words that it takes, each with the rest of a sentence that begins with it."""
    @property
    def values(self) -> _Values:
        """What it takes besides words."""
    @property
    def least(self) -> int:
        """The least value where it takes whole numbers, else 0."""
    @property
    def default(self) -> str | float | None:
        """The default in Python."""
    @property
    def default_in_words(self) -> str:
        """The default in words."""

def settings() -> list[Setting]:
    """All settings, in the order in which they are shown."""
