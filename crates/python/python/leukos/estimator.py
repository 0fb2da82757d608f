"""The whitener as a scikit-learn estimator."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import wraps
from itertools import pairwise
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._set_output import _get_output_config, _wrap_data_with_container
from sklearn.utils.validation import check_is_fitted, validate_data

from ._leukos import ContextMoments, Moments, Setting, Whitener, settings
from ._plain_arrays import refuse_disguised


P = ParamSpec("P")
R = TypeVar("R")


def _alone(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Lets one thread at a time change an estimator, and leaves it as it was after an error or Ctrl-C.

    Threads that only read it need not wait: they see it as it was.
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
    """Whitens channels whose covariance changes, by a map that adapts as the samples come.

    `transform` centres samples and multiplies them by the symmetric root of an inverse covariance, r = C^-1/2 (x - mean).
    After `fit` that is the covariance of all its samples; `adapt_transform` follows the covariance in force, which it
    estimates from the samples themselves, and `transform` then uses the map as it stands. The paper's circuit, M = I +
    W diag(g) W' in units of the scale, explains the map: `fit` finds synapses W that suit all contexts, and the gains g
    are those that are best for the covariance in force. Rows are samples, columns are channels.

    Parameters
    ----------
    n_interneurons : int, optional
        K, the number of interneurons, of each group if there are groups. The map does not depend on it: fewer explain
        only the directions they reach, more give the synapses a frame to choose from. By default as many as there are
        channels.
    synapses : "eigenbasis", "random" or array of shape (channels, K), default="eigenbasis"
        The synapses to start from; with several contexts they are then learned. "eigenbasis" takes the eigenvectors of
        the contexts' mean covariance; "random" takes random orthonormal columns. An array has one column for each
        interneuron.
    time_constant : "auto" or float, default="auto"
        What is signal and what is context, as the length of the shortest memory. What changes faster is signal and is
        left alone; a new context is believed when it has been there for about as long. "auto" takes about two samples
        for each channel, and lets the samples themselves show how long to remember. Times are in samples.
    synapse_time_constant : float, optional
        How long the synapses remember while the whitener adapts; use a hundred time constants or more, because synapses
        that follow one context forget the others. Times are in samples. By default the synapses do not change.
    strength : float, default=1.0
        How strongly to whiten: 0 only centres and scales, 1 whitens fully. Values between keep some of the
        correlations, and amplify weak directions less.
    bad_samples : "mark", "hold", "zero" or "error", default="error"
        The answer to a sample with a NaN, an infinity or a saturated value, which is never learned from. "mark" gives a
        row of NaN; "hold" gives the row before it once more; "zero" gives a row of zeros; "error" stops with an error.
    groups : sequence of sequences of int, optional
        Groups of channels, numbered from 0, that are whitened separately; each channel is in one group. By default one
        group of all channels.
    random_state : int or RandomState instance, optional
        The seed of random synapses, and of those beyond the number of channels. An int gives what the command line
        gives. By default a seed from numpy's own generator.
    follow : "contexts" or "nothing", default="contexts"
        What the whitener follows while it adapts. "contexts" follows the covariance in force, whatever it changes with;
        "nothing" lets all stay as it was fitted.
    saturation : float, optional
        Values of this size or larger, of either sign, count as saturated and therefore bad. By default no limit.
    floor : float, default=0.001
        Directions with a smaller standard deviation than this, relative to the scale of the input, count as empty and
        are not amplified to one; a smaller floor amplifies weaker ones, and their noise.
    update_every : int, optional
        The number of samples between two updates. More is cheaper, and delays adaptation by as much; every sample is
        answered at once all the same. By default a third of the number of channels, 128 at most.
    exclude_above : float, optional
        Samples with a channel further from its mean than so many of its standard deviations are answered, but not
        learned from unless they go on. By default no limit, but wild samples are left out.

    Attributes
    ----------
    mean_, scale_ : arrays of shape (channels,)
        What is subtracted from the samples, and their scale: the root of the mean variance (one number for each group
        of channels).
    whitening_matrix_, dewhitening_matrix_ : arrays of shape (channels, channels)
        The map that answers: `transform(X)` is `(X - mean_) @ whitening_matrix_.T`, and back.
    synapses_ : array of shape (channels, K)
        W; with groups side by side, and zeros between them.
    gains_ : array of shape (K,)
        g, the best for the covariance in force. They are computed each time they are asked for.
    prior_ : tuple of arrays of shapes (K,) and (K, K), or None
        Mean and covariance of the gains that were best in the contexts of `fit`; None without labels or with groups.
    changes_ : int
        How many changes of context `adapt_transform` has found; with groups, in the one with the most.
    memories_ : structured array of shape (memories,)
        How much each memory counts in the covariance in force. The fields are `group`, from 0; `length` in samples,
        infinite for the memory since the last change; and its weights `plain`, as it is, `trend`, with its mean carried
        on along its trend, and `gain`, scaled by how large samples have been lately. All weights of a group sum to 1.
    rows_in_force_ : float
        How many samples the covariance in force rests on; with groups, in the one with the fewest.
    n_samples_seen_ : int
        Rows that `fit` and `partial_fit` have summed up, and `adapt_transform` has seen since `fit`.
    n_features_in_, feature_names_in_
        As in all of scikit-learn.

    Notes
    -----
    The covariance of transform(X) after fit(X) is I, with and without contexts, up to directions below the floor and
    wild samples, which `fit` leaves out (see `leukos.Moments`). Contexts shape the synapses, which are learned across
    them, and the prior.

    With another choice of `bad_samples` than "error", `fit` leaves bad rows out.

    An error, or Ctrl-C in a long call, leaves the estimator as it was. A short call of `adapt_transform` is completed
    before Ctrl-C is heard; `n_samples_seen_` says whether its rows were seen.

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

    def __init__(
        self,
        n_interneurons: int | None = None,
        *,
        synapses: Literal["eigenbasis", "random"] | ArrayLike = "eigenbasis",
        time_constant: Literal["auto"] | float = "auto",
        synapse_time_constant: float | None = None,
        strength: float = 1.0,
        bad_samples: Literal["mark", "hold", "zero", "error"] = "error",
        groups: Sequence[Sequence[int]] | None = None,
        random_state: int | np.random.RandomState | None = None,
        follow: Literal["contexts", "nothing"] = "contexts",
        saturation: float | None = None,
        floor: float = 1e-3,
        update_every: int | None = None,
        exclude_above: float | None = None,
    ) -> None:
        self.n_interneurons = n_interneurons
        self.synapses = synapses
        self.time_constant = time_constant
        self.synapse_time_constant = synapse_time_constant
        self.strength = strength
        self.bad_samples = bad_samples
        self.groups = groups
        self.random_state = random_state
        self.follow = follow
        self.saturation = saturation
        self.floor = floor
        self.update_every = update_every
        self.exclude_above = exclude_above

    @_alone
    def fit(self, X: ArrayLike, y: object = None, *, contexts: ArrayLike | None = None) -> Self:
        """Finds the mean and covariance of all samples, and synapses that suit their contexts; a stream begins anew.

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
        """Adds more samples to what was learned, which becomes that of one `fit` with all of them.

        A stream that has begun goes on: after the first `adapt_transform`, what is in force there stays as it is, and
        so do `transform`, `mean_`, `scale_` and `whitening_matrix_`, with the parameters of the `fit` before. What was
        learned changes: `prior_`, `synapses_`, the gains that are best with them, and what `save` writes, with which
        another stream may begin. Before the first `adapt_transform`, `transform` is that of all samples too. Parameters
        are those of `fit`, which begins a stream anew.
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
        for start, end, label in _runs(len(X), contexts):
            sums.update(label, X[start:end])
        bad = sums.bad if known is None else sums.bad - known.bad
        if bad and self.bad_samples == "error":
            limit = "those whose squares overflow" if self.saturation is None else f"the saturation {self.saturation}"
            raise ValueError(
                f"X: expected values below {limit}, got {bad} rows that are not "
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
        fitted = Whitener.fit(sums, {**fitting, "channel_names": names})
        if hasattr(self, "_whitener") and self._whitener.samples_seen > 0:
            whitener = copy(self._whitener)
            whitener.take_over(fitted)
            self._whitener, self._sums = whitener, sums
        else:
            self._whitener, self._sums = fitted, sums
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
            Labels, where the changes of context are known: at each change what is in force counts as little as one
            sample for each channel, and the next samples soon outweigh it. Without labels, the samples themselves show
            how far back to look.

        Returns an array of the same shape and of the dtype of X.
        """
        check_is_fitted(self)
        # The engine looks for bad samples itself, and says where they are.
        given, X = X, self._validated(X, reset=False, finite=False)
        # What is done with the responses may fail, and then nothing must have been learned.
        plain = _get_output_config("transform", self)["dense"] == "default" and not self.__dict__.get("_widgets")
        whitener = self._whitener if plain else copy(self._whitener)
        label, told = whitener.label, []
        for start, _, own in _runs(len(X), contexts):
            if contexts is not None and label not in (None, own):
                told.append((start, own))
            label = own if contexts is not None else None
        responses = whitener.adapt(X, [start for start, _ in told], label)
        if plain:
            return responses
        wrapped = _wrap_data_with_container("transform", responses, given, self)
        self._whitener = whitener
        self._tell_widgets("saw", X, responses, told)
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
        return self._whitener.adapt_inverse(X)

    @_alone
    def begin_context(self) -> Self:
        """Announces that a new context begins: what is in force counts as little as one sample for each channel."""
        check_is_fitted(self)
        self._whitener.begin_context()
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
        """A summary in words: samples by kind, changes of context, error, channels left out, and memories."""
        check_is_fitted(self)
        return self._whitener.status()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a model, which the command line and `load` read; completely or not at all.

        A model is what `fit` and `partial_fit` have learned, and synapses as `adapt_transform` has left them where it
        changes them; a stream that begins with it begins anew. `pickle` keeps a stream in its middle. The same samples
        and parameters make the same bytes here and by `leukos fit`.
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
        """Reads a model, from here or from `leukos fit`, or a checkpoint of `leukos whiten`, whose stream goes on."""
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
    def changes_(self) -> int:
        return self._fitted().changes

    @property
    def memories_(self) -> NDArray[np.void]:
        return np.array(self._fitted().memories(), dtype=_MEMORY)

    @property
    def rows_in_force_(self) -> float:
        return self._fitted().rows_in_force

    @property
    def n_samples_seen_(self) -> int:
        adapted = self._fitted().samples_seen
        return adapted if self._sums is None else adapted + self._sums.rows

    def __getstate__(self) -> Any:
        # A thread that is changing this estimator is not changing its copy, and a widget does not show it.
        left_out = ("_changing", "_widgets")
        state = {name: value for name, value in super().__getstate__().items() if name not in left_out}
        # Nor does a copy adapt when this one does.
        return {name: copy(value) if isinstance(value, Whitener) else value for name, value in state.items()}

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
        for name in ("_whitener", "_sums"):
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
        """The parameters as the engine takes them, checked for their types; it checks their numbers and words."""
        return {setting.name: _checked(setting, getattr(self, setting.name)) for setting in settings()}


_MEMORY = np.dtype([("group", np.int64), *((name, np.float64) for name in ("length", "plain", "trend", "gain"))])


def _checked(setting: Setting, value: Any) -> Any:
    match setting.values:
        case "seed":
            seed = value if isinstance(value, Integral) else check_random_state(value).randint(2**31)
            return _whole(setting.name, seed, least=setting.least)
        case _ if value is None and setting.default is None:
            return None
        case "words":
            return _word(setting, value)
        case "number" | "time":
            return _number(setting, value)
        case "interneurons" | "samples":
            return _whole(setting.name, value, least=setting.least)
        case "groups":
            return _groups(value)
        case _:
            return value


def _number(setting: Setting, value: object) -> float | None:
    """A number; or a word, which is None for the engine."""
    words = [word for word, _ in setting.words]
    if isinstance(value, str) and value in words:
        return None
    if isinstance(value, Real) and not isinstance(value, bool):
        return float(value)
    or_else = "".join(f' or "{word}"' for word in words)
    raise ValueError(f"{setting.name}: expected a number{or_else}, got {value!r}")


def _word(setting: Setting, value: object) -> str:
    if isinstance(value, str):
        return value
    words = " or ".join(f'"{word}"' for word, _ in setting.words)
    raise ValueError(f"{setting.name}: expected {words}, got {value!r}")


def _whole(name: str, value: object, *, least: int) -> int:
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least:
        return int(value)
    raise ValueError(f"{name}: expected a whole number of {least} or more, got {value!r}")


def _groups(groups: object) -> list[list[int]]:
    try:
        return [[_whole("groups", channel, least=0) for channel in group] for group in groups]  # type: ignore[attr-defined]
    except TypeError:
        raise ValueError(f"groups: expected lists of channels such as [[0, 1], [2, 3]], got {groups!r}") from None


def _runs(count: int, contexts: ArrayLike | None) -> Iterator[tuple[int, int, str]]:
    """The stretches of samples with one label: where each begins and ends, and the label as text."""
    if contexts is None:
        yield 0, count, ""
        return
    if isinstance(contexts, np.ma.MaskedArray):
        raise ValueError("contexts: expected labels without a mask, got a masked array")
    labels = np.asarray(contexts)
    if labels.shape != (count,):
        raise ValueError(f"contexts: expected one label for each of {count} samples, got shape {labels.shape}")
    changes = np.flatnonzero(labels[1:] != labels[:-1]) + 1
    for start, end in pairwise([0, *changes.tolist(), count]):
        label = labels[start]
        if label != label or label is None or str(label) == "":
            raise ValueError(f"contexts: expected a label for each sample, got {label!r} at position {start}")
        yield start, end, str(label)


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask
