"""The whitener as a scikit-learn estimator."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import wraps
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._set_output import _wrap_data_with_container
from sklearn.utils.validation import check_is_fitted, validate_data

from ._leukos import ContextMoments, Moments, Whitener
from ._plain_arrays import refuse_disguised


P = ParamSpec("P")
R = TypeVar("R")


def _alone(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Lets one thread at a time change an estimator, and leaves it as it was after an error or Ctrl-C.

    Threads that only read it need not wait: what they read is replaced, never changed.
    """

    @wraps(method)
    def changing(self: Any, /, *arguments: P.args, **options: P.kwargs) -> R:
        mark = object()
        # One step of the interpreter, so of two threads only one succeeds.
        if self.__dict__.setdefault("_changing", mark) is not mark:
            raise RuntimeError(
                f"{method.__name__}: expected one thread at a time to change this {type(self).__name__}, got a call "
                "while another is still inside fit, partial_fit or adapt_transform; give each thread its own copy"
            )
        before = {name: value for name, value in self.__dict__.items() if name != "_changing"}
        try:
            return method(self, *arguments, **options)
        except BaseException:
            for name in self.__dict__.keys() - before.keys() - {"_changing"}:
                del self.__dict__[name]
            self.__dict__.update(before)
            raise
        finally:
            del self.__dict__["_changing"]

    return changing


class AdaptiveWhitener(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Whitens channels whose covariance changes, by gains that adapt as the samples come.

    The circuit M = leak I + W diag(g) W' whitens the centred and scaled samples, r = M^-1 (x - mean) / scale. `fit` finds
    its synapses W and gains g, `adapt_transform` adapts the gains sample by sample, and `transform` uses the present
    gains without changing them. Rows are samples, columns are channels.

    Parameters
    ----------
    n_interneurons : int, optional
        K, the number of interneurons, of each group if there are groups; as many as channels by default. Fewer whiten
        only the directions they reach; more give W a frame to choose from.
    time_constant : float
        How many samples the gains remember. Four times as many halve their noise, but the gains follow a change of
        context four times more slowly.
    synapse_time_constant : float, optional
        How many samples the synapses remember in `adapt_transform`; use a hundred time constants or more. By default
        the synapses do not change there.
    synapses : "eigenbasis", "random" or array of shape (channels, K)
        Where the synapses start: the eigenvectors of the contexts' mean covariance, random orthonormal columns, or these.
    strength : float
        How strongly to whiten: 0 only centres and scales, 1 whitens fully.
    bad_samples : "error", "mark", "hold" or "zero"
        What to return for a row with a NaN, an infinity or a saturated value: an exception, a row of NaN, the row
        before it once more, or zeros. With all but "error", `fit` leaves such rows out.
    groups : sequence of sequences of int, optional
        Groups of channels, numbered from 0, that are whitened separately; each channel is in one group.
    random_state : int, RandomState instance or None
        Of random synapses, and of those beyond the number of channels. An int gives what `leukos fit --random-state`
        gives.
    mean_time_constant : float, optional
        How many samples the running mean remembers; ten time constants by default.
    saturation : float, optional
        Values this large, of either sign, count as bad.
    update_every : int
        The number of samples between two updates of mean, gains and synapses. More is cheaper for many channels.
    floor : float
        Directions with a smaller standard deviation than this, relative to the scale, are not amplified to one.
    outlier_limit : float
        A response this many times larger than expected is given but not learned from.
    patience : float, optional
        How many samples the input must stay too large or too small before mean and scale are estimated again; two time
        constants, and at least 2000, by default.
    leak : float
        The leak in M; it matters where there are fewer interneurons than channels.

    Attributes
    ----------
    mean_, scale_ : arrays of shape (channels,)
        What is subtracted from the samples, and what they are divided by (one number for each group of channels).
    synapses_ : array of shape (channels, K)
        W; with groups side by side, and zeros between them.
    gains_ : array of shape (K,)
    prior_ : tuple of arrays of shapes (K,) and (K, K), or None
        Mean and covariance of the gains that were best in the contexts of `fit`.
    whitening_matrix_, dewhitening_matrix_ : arrays of shape (channels, channels)
        `transform(X)` is `(X - mean_) @ whitening_matrix_.T`, and back.
    n_samples_seen_ : int
        Rows that `fit` and `partial_fit` have summed up, and `adapt_transform` has seen since.
    n_features_in_, feature_names_in_
        As in all of scikit-learn.

    Notes
    -----
    With one context the gains are optimal for the covariance of X: with K >= N the covariance of transform(X) is I. With
    several the synapses are learned across them, and the gains are the mean of those that are best in each.

    Examples
    --------
    >>> import numpy as np
    >>> from leukos import AdaptiveWhitener
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 3)) @ [[2.0, 1.0, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 0.3]]
    >>> whitener = AdaptiveWhitener().fit(X)
    >>> bool(np.allclose(np.cov(whitener.transform(X).T, bias=True), np.eye(3), atol=1e-6))
    True
    >>> drifted = 3.0 * X  # the same axes, louder
    >>> responses = whitener.adapt_transform(drifted)
    >>> bool(np.allclose(np.cov(responses[2500:].T), np.eye(3), atol=0.3))
    True
    """

    _whitener: Whitener
    _sums: ContextMoments | None
    """What has been summed up; None for a model from a file."""
    _label: str | None
    """The context of the last sample of a stream with labels."""

    def __init__(
        self,
        n_interneurons: int | None = None,
        *,
        time_constant: float = 1000.0,
        synapse_time_constant: float | None = None,
        synapses: Literal["eigenbasis", "random"] | ArrayLike = "eigenbasis",
        strength: float = 1.0,
        bad_samples: Literal["error", "mark", "hold", "zero"] = "error",
        groups: Sequence[Sequence[int]] | None = None,
        random_state: int | np.random.RandomState | None = None,
        mean_time_constant: float | None = None,
        saturation: float | None = None,
        update_every: int = 1,
        floor: float = 1e-3,
        outlier_limit: float = 30.0,
        patience: float | None = None,
        leak: float = 1.0,
    ) -> None:
        self.n_interneurons = n_interneurons
        self.time_constant = time_constant
        self.synapse_time_constant = synapse_time_constant
        self.synapses = synapses
        self.strength = strength
        self.bad_samples = bad_samples
        self.groups = groups
        self.random_state = random_state
        self.mean_time_constant = mean_time_constant
        self.saturation = saturation
        self.update_every = update_every
        self.floor = floor
        self.outlier_limit = outlier_limit
        self.patience = patience
        self.leak = leak

    @_alone
    def fit(self, X: ArrayLike, y: object = None, *, contexts: ArrayLike | None = None) -> Self:
        """Finds synapses, gains, mean and scale.

        Parameters
        ----------
        X : array of shape (samples, channels)
        y : ignored
        contexts : array of shape (samples,), optional
            A label for each sample. Samples with the same label belong to the same context, in any order.
        """
        self._forget()
        return self._sum_up(X, contexts)

    @_alone
    def partial_fit(self, X: ArrayLike, y: object = None, *, contexts: ArrayLike | None = None) -> Self:
        """Adds more samples: the outcome is that of one `fit` with all of them.

        The whitener starts again from the sums of all samples; what `adapt_transform` has learned since is not kept.
        Parameters are those of `fit`.
        """
        return self._sum_up(X, contexts)

    def _sum_up(self, X: ArrayLike, contexts: ArrayLike | None) -> Self:
        known = getattr(self, "_sums", None)
        if known is None and hasattr(self, "_whitener"):
            raise ValueError(
                "partial_fit: expected an estimator that was fitted here, got one that was loaded from a model file, "
                "which does not keep the sums of its samples; use fit to start again, or adapt_transform to continue"
            )
        fitting = self._fitting()
        X = self._validated(X, reset=known is None)
        sums = ContextMoments(X.shape[1], self.saturation) if known is None else copy(known)
        for label, rows in _runs(X, contexts):
            sums.update(label, rows)
        if sums.bad and self.bad_samples == "error":
            raise ValueError(
                f"X: expected values below the saturation {self.saturation}, got {sums.bad} rows that are not "
                '(or another choice of bad_samples than "error")'
            )
        return self._fit_sums(sums, fitting)

    @_alone
    def fit_moments(self, contexts: Mapping[str, Moments] | Moments) -> Self:
        """Fits to samples that were summed up elsewhere: on other machines, or over months.

        Parameters
        ----------
        contexts : Moments, or a mapping from names of contexts to Moments
            What has been summed up of each context; one `Moments` alone is what `fit` makes of samples without labels.
            The outcome is that of `fit` with the same sums; `partial_fit` continues from there.
        """
        if isinstance(contexts, Moments):
            contexts = {"": contexts}
        if not isinstance(contexts, Mapping) or not contexts:
            raise ValueError(f"contexts: expected Moments, or a mapping of names to Moments, got {contexts!r}")
        for name, moments in contexts.items():
            if not isinstance(moments, Moments):
                raise ValueError(f"contexts[{name!r}]: expected Moments, got {type(moments).__name__}")
        fitting = self._fitting()
        channels = next(iter(contexts.values())).channels
        sums = ContextMoments.of(channels, self.saturation, [(str(name), m) for name, m in contexts.items()])
        self._forget()
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = channels
        return self._fit_sums(sums, fitting)

    def _fit_sums(self, sums: ContextMoments, fitting: dict[str, Any]) -> Self:
        if sums.rows - sums.bad < 2:
            raise ValueError(f"X: expected two usable samples or more, got n_samples = {sums.rows - sums.bad}")
        names = getattr(self, "feature_names_in_", None)
        names = None if names is None else [str(name) for name in names]
        self._whitener = Whitener.fit(sums, {**fitting, "channel_names": names})
        self._sums, self._label = sums, None
        self._tell_widgets("fitted")
        return self

    def transform(self, X: ArrayLike) -> Any:
        """Whitens samples without adapting; nothing is learned.

        Parameters
        ----------
        X : array of shape (samples, channels)

        Returns an array of the same shape and of the dtype of X.
        """
        check_is_fitted(self)
        return self._whitener.transform(self._validated(X, reset=False))

    def inverse_transform(self, X: ArrayLike) -> NDArray[Any]:
        """Turns responses of `transform` back into samples.

        Parameters
        ----------
        X : array of shape (samples, channels)
        """
        check_is_fitted(self)
        return self._whitener.inverse_transform(self._validated(X, reset=False, channels=False))

    @_alone
    def adapt_transform(self, X: ArrayLike, *, contexts: ArrayLike | None = None) -> Any:
        """Whitens samples one by one, and adapts to each.

        Parameters
        ----------
        X : array of shape (samples, channels)
            The next samples of the stream; how it is cut into calls changes no bit.
        contexts : array of shape (samples,), optional
            Labels, where the changes of context are known: at each change the gains go to the mean of their prior and
            adapt quickly. Without labels, changes are detected from the samples where possible.

        Returns an array of the same shape and of the dtype of X.
        """
        check_is_fitted(self)
        # The engine looks for bad samples itself, and says where they are.
        given, X = X, self._validated(X, reset=False, finite=False)
        whitener = copy(self._whitener)
        label, responses, told, position = getattr(self, "_label", None), [], [], 0
        for own, rows in _runs(X, contexts):
            if contexts is not None and label is not None and own != label:
                whitener.begin_context()
                told.append((position, own))
            label = own if contexts is not None else None
            responses.append(whitener.adapt(rows))
            position += len(rows)
        self._whitener, self._label = whitener, label
        joined = responses[0] if len(responses) == 1 else np.concatenate(responses)
        wrapped = _wrap_data_with_container("transform", joined, given, self)
        self._tell_widgets("saw", X, joined, told)
        return wrapped

    @_alone
    def adapt_inverse_transform(self, X: ArrayLike) -> NDArray[Any]:
        """Turns the responses of `adapt_transform` back into samples, by adapting in the same way.

        The estimator must be in the state in which that run began: make a copy before it, with `copy.deepcopy`.

        Parameters
        ----------
        X : array of shape (samples, channels)
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False, channels=False)
        whitener = copy(self._whitener)
        samples = whitener.adapt_inverse(X)
        self._whitener = whitener
        return samples

    @_alone
    def begin_context(self) -> Self:
        """Announces that a new context begins: the gains go to the mean of their prior and adapt quickly."""
        check_is_fitted(self)
        whitener = copy(self._whitener)
        whitener.begin_context()
        self._whitener = whitener
        self._tell_widgets("told")
        return self

    def whitening_error(self, X: ArrayLike) -> float:
        """How far transform(X) is from white: the operator norm of cov(transform(X)) - I, 0 where it is white.

        Rows that are bad do not count. With few rows the error of a perfect whitener is not 0 either: about
        2 sqrt(N / T) for N channels and T rows.
        """
        check_is_fitted(self)
        responses = np.asarray(self._whitener.transform(self._validated(X, reset=False)), dtype=np.float64)
        responses = responses[np.isfinite(responses).all(axis=1)]
        if len(responses) == 0:
            raise ValueError("X: expected at least one usable sample, got none")
        covariance = np.atleast_2d(np.cov(responses.T, bias=True))
        return float(np.linalg.norm(covariance - np.eye(len(covariance)), 2))

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Minus `whitening_error(X)`, for scikit-learn, where more is better: 0 is white."""
        return -self.whitening_error(X)

    def status(self) -> str:
        """A summary in words: samples by kind, actions of the guard, channels left out, error."""
        check_is_fitted(self)
        return self._whitener.status()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model file, which the command line and `load` read; completely or not at all.

        The same samples and parameters make the same bytes here and by `leukos fit`.
        """
        check_is_fitted(self)
        path = Path(path)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            try:
                file.write(self._whitener.to_bytes())
                file.flush()
                os.fsync(file.fileno())
                os.chmod(file.name, 0o666 & ~_umask())
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Reads a model file, from here or from `leukos fit`, also one in the middle of a stream."""
        whitener = Whitener.from_bytes(Path(path).read_bytes())
        estimator = cls(**whitener.settings())
        estimator._whitener, estimator._sums = whitener, None
        estimator.n_features_in_ = whitener.channels
        if whitener.channel_names is not None:
            estimator.feature_names_in_ = np.array(whitener.channel_names, dtype=object)
        return estimator

    @property
    def mean_(self) -> NDArray[np.float64]:
        return self._fitted().mean

    @property
    def scale_(self) -> NDArray[np.float64]:
        return self._fitted().scale

    @property
    def synapses_(self) -> NDArray[np.float64]:
        return self._fitted().synapses

    @property
    def gains_(self) -> NDArray[np.float64]:
        return self._fitted().gains

    @property
    def prior_(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        return self._fitted().prior

    @property
    def whitening_matrix_(self) -> NDArray[np.float64]:
        return self._fitted().whitening_matrix()

    @property
    def dewhitening_matrix_(self) -> NDArray[np.float64]:
        return self._fitted().dewhitening_matrix()

    @property
    def n_samples_seen_(self) -> int:
        adapted = self._fitted().samples_seen
        return adapted if self._sums is None else adapted + self._sums.rows

    def __getstate__(self) -> Any:
        # A thread that is changing this estimator is not changing its copy, and a widget does not show it.
        left_out = ("_changing", "_widgets")
        return {name: value for name, value in super().__getstate__().items() if name not in left_out}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_whitener")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.bad_samples != "error"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _fitted(self) -> Whitener:
        # An AttributeError, so that hasattr tells whether there is such a thing yet.
        if not hasattr(self, "_whitener"):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet")
        return self._whitener

    def _forget(self) -> None:
        for name in ("_whitener", "_sums", "_label"):
            self.__dict__.pop(name, None)

    def _tell_widgets(self, what: Literal["fitted", "told", "saw"], *arguments: object) -> None:
        """Lets the widgets of `leukos.widget` show what has happened; where one cannot, that is no error here."""
        for widget in tuple(self.__dict__.get("_widgets", ())):
            try:
                getattr(widget, what)(self._whitener, *arguments)
            except Exception as error:
                warnings.warn(f"leukos.widget: {type(error).__name__}: {error}", RuntimeWarning, stacklevel=4)

    def _validated(self, X: ArrayLike, *, reset: bool, channels: bool = True, finite: bool = True) -> NDArray[Any]:
        """X as an array of float32 or float64, in whatever order its numbers lie."""
        refuse_disguised("X", X)
        finite = finite and self.bad_samples == "error"
        options = {"dtype": [np.float64, np.float32], "ensure_all_finite": finite}
        if channels:
            return validate_data(self, X, reset=reset, **options)
        # Responses have no names of their own to agree with.
        return validate_data(self, np.asarray(X), reset=reset, **options)

    def _fitting(self) -> dict[str, Any]:
        """The parameters as the engine takes them, checked for their types; it checks their numbers."""
        seed = self.random_state
        if not isinstance(seed, Integral):
            seed = check_random_state(seed).randint(2**31)
        fitting: dict[str, Any] = {"seed": _whole("random_state", seed, least=0)}
        for name in ("time_constant", "strength", "floor", "outlier_limit", "leak"):
            fitting[name] = _number(name, getattr(self, name))
        for name in ("synapse_time_constant", "mean_time_constant", "saturation", "patience"):
            value = getattr(self, name)
            fitting[name] = None if value is None else _number(name, value)
        fitting["update_every"] = _whole("update_every", self.update_every, least=1)
        count = self.n_interneurons
        fitting["n_interneurons"] = None if count is None else _whole("n_interneurons", count, least=0)
        fitting["synapses"] = self.synapses
        fitting["bad_samples"] = self.bad_samples
        if not isinstance(self.bad_samples, str):
            raise ValueError(f'bad_samples: expected "error", "mark", "hold" or "zero", got {self.bad_samples!r}')
        fitting["groups"] = None if self.groups is None else _groups(self.groups)
        return fitting


def _number(name: str, value: object) -> float:
    if isinstance(value, Real) and not isinstance(value, bool):
        return float(value)
    raise ValueError(f"{name}: expected a number, got {value!r}")


def _whole(name: str, value: object, *, least: int) -> int:
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least:
        return int(value)
    raise ValueError(f"{name}: expected a whole number of {least} or more, got {value!r}")


def _groups(groups: object) -> list[list[int]]:
    try:
        return [[_whole("groups", channel, least=0) for channel in group] for group in groups]  # type: ignore[attr-defined]
    except TypeError:
        raise ValueError(f"groups: expected lists of channels such as [[0, 1], [2, 3]], got {groups!r}") from None


def _runs(X: NDArray[Any], contexts: ArrayLike | None) -> Iterator[tuple[str, NDArray[Any]]]:
    """The stretches of X with one label, and the label as text."""
    if contexts is None:
        yield "", X
        return
    if isinstance(contexts, np.ma.MaskedArray):
        raise ValueError("contexts: expected labels without a mask, got a masked array")
    labels = np.asarray(contexts)
    if labels.shape != (len(X),):
        raise ValueError(f"contexts: expected one label for each of {len(X)} samples, got shape {labels.shape}")
    changes = np.flatnonzero(labels[1:] != labels[:-1]) + 1
    starts = [0, *changes.tolist(), len(X)]
    for start, end in zip(starts[:-1], starts[1:], strict=True):
        label = labels[start]
        if label != label or label is None or str(label) == "":
            raise ValueError(f"contexts: expected a label for each sample, got {label!r} at position {start}")
        yield str(label), X[start:end]


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask
