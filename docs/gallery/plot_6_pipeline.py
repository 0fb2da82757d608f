"""
A classifier whose sensors drift
================================

A classifier is trained on some sessions and used in others. In each session the sensors have other gains along axes
that all sessions share. The whitener adapts to each session without labels. Does that help the classifier, what does it
cost where nothing drifts, and when does it do harm?
"""

import copy

import matplotlib.pyplot as plt
import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline

from leukos import AdaptiveWhitener

CHANNELS, CLASSES, SAMPLES, TRAINING, TEST, SEEDS = 8, 4, 600, 8, 4, 5
DRIFTS = [0.0, 0.3, 0.6, 0.9]
STAYS = [1, 10, 30, 100, 300]


# %%
# Sessions
# --------
#
# Eight sources, whose means depend on the class, reach eight channels through a mixture V. In each session the sources
# are stronger or weaker by factors exp(drift × normal), so the drift is the standard deviation of the logarithm of a
# source's strength. ``stay`` is how long a class stays before another is drawn.


class World:
    def __init__(self, seed, drift):
        self.rng = np.random.default_rng(seed)
        self.mixture = np.linalg.qr(self.rng.normal(size=(CHANNELS, CHANNELS)))[0]
        self.means = 0.9 * self.rng.normal(size=(CLASSES, CHANNELS))
        self.means -= self.means.mean(axis=0)
        self.strengths = np.exp(drift * self.rng.normal(size=(TRAINING + TEST, CHANNELS)))

    def record(self, sessions, stay=1):
        """Samples of some sessions one after another, and their classes."""
        labels = self.rng.integers(CLASSES, size=-(-len(sessions) * SAMPLES // stay)).repeat(stay)
        labels = labels[: len(sessions) * SAMPLES]
        sources = self.means[labels] + self.rng.normal(size=(len(labels), CHANNELS))
        return sources * self.strengths[np.repeat(sessions, SAMPLES)] @ self.mixture.T, labels


# %%
# Three classifiers
# -----------------
#
# *Fixed* is an ordinary pipeline. To linear discriminant analysis any fixed whitening is as good as none, so it stands
# for both. *Adapting* follows the sessions, and its classifier is trained on responses that have adapted; in use it meets
# the test sessions in their order, and nobody tells it where one ends. Its time constant is 300 samples, half a session:
# what changes faster is left alone. *Own session* is what labels would buy: a classifier that is trained on the first
# half of each test session and tested on the second.


def correct(seed, drift):
    """For each classifier, and for each stay of the adapting one, which test samples it gets right."""
    world = World(seed, drift)
    known, unseen = np.arange(TRAINING), TRAINING + np.arange(TEST)
    X, y = world.record(known)
    sessions = known.repeat(SAMPLES)
    fixed = make_pipeline(AdaptiveWhitener(), LinearDiscriminantAnalysis()).fit(X, y)
    whitener = AdaptiveWhitener(time_constant=300).fit(X, contexts=sessions)
    classifier = LinearDiscriminantAnalysis().fit(whitener.adapt_transform(X, contexts=sessions), y)

    outcome = {}
    for stay in STAYS if drift == 0.6 else [1]:
        stream, labels = world.record(unseen, stay)
        outcome["fixed", stay] = fixed.predict(stream) == labels
        outcome["adapting", stay] = (
            classifier.predict(copy.deepcopy(whitener).adapt_transform(stream)) == labels
        )
    stream, labels = world.record(unseen)
    halves = zip(stream.reshape(TEST, 2, -1, CHANNELS), labels.reshape(TEST, 2, -1))
    own = [LinearDiscriminantAnalysis().fit(x[0], t[0]).predict(x[1]) == t[1] for x, t in halves]
    outcome["own session", 1] = np.concatenate(own)
    return outcome


outcomes = {drift: [correct(seed, drift) for seed in range(SEEDS)] for drift in DRIFTS}

# %%
# Results
# -------

STYLES = {"own session": ("0.35", ":"), "adapting": ("#0072B2", "-"), "fixed": ("#D55E00", "-")}
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(9.0, 3.2), layout="constrained", sharey=True)


def draw(ax, x, curves, name):
    """Medians, with quartiles over seeds; `curves` has a row for each seed."""
    colour, style = STYLES[name]
    low, half, high = np.quantile(curves, [0.25, 0.5, 0.75], axis=0)
    ax.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)
    ax.plot(x, half, style, color=colour, marker="o", markersize=3, label=name)


for name in STYLES:
    draw(left, DRIFTS, np.array([[own[name, 1].mean() for own in outcomes[drift]] for drift in DRIFTS]).T, name)
left.set(xlabel="drift between sessions\n(s.d. of log strength)", ylabel="share of correct answers")
left.legend(frameon=False, loc="lower left")

BIN = 50
for name in ("adapting", "fixed"):
    shares = [own[name, 1].reshape(TEST, -1, BIN).mean(axis=(0, 2)) for own in outcomes[0.9]]
    draw(middle, (np.arange(SAMPLES // BIN) + 0.5) * BIN, shares, name)
middle.set(xlabel="samples since a session began", title="drift 0.9")

for name in ("adapting", "fixed"):
    draw(right, STAYS, [[own[name, stay].mean() for stay in STAYS] for own in outcomes[0.6]], name)
right.axhline(1 / CLASSES, color="0.6", linewidth=0.8, linestyle="--")
right.annotate("guessing", (1, 1 / CLASSES), (0, 2), textcoords="offset points", va="bottom", color="0.45")
right.set(xlabel="samples that a class stays", xscale="log", title="drift 0.6", ylim=(0.2, 0.95))
right.set_xticks(STAYS, [str(stay) for stay in STAYS])
right.minorticks_off()
for ax in (left, middle, right):
    ax.spines[["top", "right"]].set_visible(False)
    ax.title.set_fontsize(10)
plt.show()

# %%
# Medians and quartiles over five seeds, each with a mixture, classes and sessions of its own.

for drift in DRIFTS:
    medians = {name: np.median([own[name, 1].mean() for own in outcomes[drift]]) for name in STYLES}
    print(f"drift {drift}: " + ", ".join(f"{name} {share:.3f}" for name, share in medians.items()))

# %%
# Left: what adapting costs without a drift, and how much of the loss under a drift it makes up for, beside a classifier
# with labels of its own session; the numbers are printed above. Middle: the same along a session.
#
# Right is the warning. A whitener follows whatever lasts, and takes it out. If a class lasts, its mean and variance
# become part of the context, and the longer it stays the more adapting costs. Adapt only to what changes more slowly than what you want to keep, and say so with ``time_constant``:
# with ``"auto"`` the shortest memory is 32 samples here, and a class that stays longer is a context.
