"""Types of the compiled part; its documentation is in the module itself."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

type _Array = NDArray[np.float32] | NDArray[np.float64]
type _Doubles = NDArray[np.float64]
type _Solver = Literal["direct", "iterative", "dynamics", "loop"]
type _Order = Literal["sequential", "concurrent"]
type _UnitNorm = Literal["free", "projected", "multiplier"]
type _Sign = Literal["free", "nonnegative"]
type _Part = Literal["gains", "synapses", "feedforward", "multipliers"]

__all__ = [
    "Circuit",
    "ContextMoments",
    "DivergedError",
    "Moments",
    "NotConvergedError",
    "OfflineRun",
    "OnlineRun",
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
    "synthetic_covariances",
    "whitening_error",
]

__version__: str

class DivergedError(RuntimeError):
    step: int
    circuit: Circuit

class NotConvergedError(RuntimeError): ...

@final
class Circuit:
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
    def synapses(self) -> _Array: ...
    @property
    def feedforward(self) -> _Array | None: ...
    @property
    def gains(self) -> _Array: ...
    @property
    def multipliers(self) -> _Array: ...
    @property
    def leak(self) -> float: ...
    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]: ...
    def inverse_whitening_matrix(self) -> _Array: ...
    def whitening_matrix(self) -> _Array: ...
    def respond(
        self,
        S: ArrayLike,
        solver: _Solver = "direct",
        *,
        response_rate: float | None = None,
        tolerance: float | None = None,
        max_iterations: int | None = None,
    ) -> _Array: ...

@final
class OnlineRun:
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
) -> OnlineRun: ...
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
) -> OnlineRun: ...
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
) -> OfflineRun: ...
def objective(M: ArrayLike, C: ArrayLike) -> float: ...
def gradient(M: ArrayLike, C: ArrayLike) -> _Doubles: ...
def whitening_error(M: ArrayLike, C: ArrayLike) -> float: ...
def align(A: ArrayLike, B: ArrayLike) -> tuple[_Doubles, float]: ...
def optimal_gains(W: ArrayLike, C: ArrayLike, leak: float = 1.0) -> _Doubles: ...
def least_squares_gains(W: ArrayLike, C: ArrayLike, leak: float = 1.0) -> _Doubles: ...

@final
class Moments:
    def __new__(cls, channels: int) -> Self: ...
    def update(self, X: ArrayLike) -> None: ...
    def merge(self, other: Moments) -> None: ...
    def covariance(self) -> _Doubles: ...
    @property
    def channels(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def bad(self) -> int: ...
    @property
    def mean(self) -> _Doubles: ...
    @property
    def comoments(self) -> _Doubles: ...

@final
class ContextMoments:
    def __new__(cls, channels: int, saturation: float | None) -> Self: ...
    @staticmethod
    def of(channels: int, saturation: float | None, contexts: Sequence[tuple[str, Moments]]) -> ContextMoments: ...
    def __len__(self) -> int: ...
    def __copy__(self) -> Self: ...
    def update(self, context: str, X: ArrayLike) -> None: ...
    @property
    def rows(self) -> int: ...
    @property
    def bad(self) -> int: ...

@final
class Whitener:
    @staticmethod
    def fit(moments: ContextMoments, fitting: Mapping[str, Any]) -> Whitener: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> Whitener: ...
    def to_bytes(self) -> bytes: ...
    def __copy__(self) -> Self: ...
    def adapt(self, X: ArrayLike) -> _Array: ...
    def adapt_inverse(self, X: ArrayLike) -> _Array: ...
    def transform(self, X: ArrayLike) -> _Array: ...
    def inverse_transform(self, X: ArrayLike) -> _Array: ...
    def begin_context(self) -> None: ...
    @property
    def channels(self) -> int: ...
    @property
    def channel_names(self) -> list[str] | None: ...
    @property
    def samples_seen(self) -> int: ...
    @property
    def mean(self) -> _Doubles: ...
    @property
    def scale(self) -> _Doubles: ...
    @property
    def gains(self) -> _Doubles: ...
    @property
    def synapses(self) -> _Doubles: ...
    @property
    def prior(self) -> tuple[_Doubles, _Doubles] | None: ...
    def whitening_matrix(self) -> _Doubles: ...
    def dewhitening_matrix(self) -> _Doubles: ...
    def status(self) -> str: ...
    def settings(self) -> dict[str, Any]: ...

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
) -> list[_Doubles]: ...
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
) -> _Doubles: ...
def control_covariances(covariances: ArrayLike, seed: int) -> _Doubles: ...
def draw_stimuli(
    covariances: ArrayLike,
    presented: ArrayLike,
    samples: int,
    *,
    degrees_of_freedom: float | None,
    autocorrelation: float | None,
    single: bool,
    seed: int,
) -> _Array: ...
