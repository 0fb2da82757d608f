r"""
Algorithm 1: gains and synapses learn together
==============================================

The paper's online algorithm on its synthetic family (Fig. 3): two neurons, two interneurons, contexts
C = (I + V Λ Vᵀ)² that share the axes V. After each stimulus the gains take a large step and the synapses a small one.
Nobody tells the circuit V, or when a context ends.
"""

import matplotlib.pyplot as plt
import numpy as np

import leukos
from leukos import datasets, plotting

SEEDS, PRESENTATIONS, SAMPLES, EVERY = 12, 400, 400, 20
# Columns stay of length one, as in Fig. 3E.
RATES = dict(gain_rate=0.05, synapse_rate=1e-4, unit_norm="projected")


def learn(seed, **changes):
    """One run from random orthogonal synapses: its errors, its synapses on the way, and the axes V."""
    contexts = datasets.synthetic_contexts(64, axes="angles", blank="redrawn", random_state=seed)
    rng = np.random.default_rng(seed)
    presented = rng.integers(64, size=PRESENTATIONS)
    stimuli = datasets.draw(contexts.covariances, presented, SAMPLES, random_state=seed)
    start = leukos.Circuit(np.linalg.qr(rng.normal(size=(2, 2)))[0], np.zeros(2))
    known = dict(covariances=contexts.covariances, presented=presented)
    run = leukos.run_online(start, stimuli, **{**RATES, **changes}, **known, record=["synapses"], every=EVERY)
    return run.errors, run.trace["synapses"], contexts.axes


# %%
# Both, and gains alone
# ---------------------
#
# A rate of ``None`` freezes a part. Both variants of a seed have the same contexts, stimuli and start.

variants = {"gains and synapses": {}, "gains alone": dict(synapse_rate=None)}
runs = {name: [learn(seed, **changes) for seed in range(SEEDS)] for name, changes in variants.items()}

# %%
# The error jumps at each change of context and falls within it, so the curves are means over ten presentations. What
# gains could do with perfect synapses is the same run with W = V, which stands still.

TEN = 10 * SAMPLES // EVERY
errors = {name: np.array([own[0].reshape(-1, TEN).mean(axis=1) for own in each]) for name, each in runs.items()}


def with_true_axes(seed):
    contexts = datasets.synthetic_contexts(64, axes="angles", blank="redrawn", random_state=seed)
    presented = np.random.default_rng(seed).integers(64, size=100)
    stimuli = datasets.draw(contexts.covariances, presented, SAMPLES, random_state=seed)
    known = dict(covariances=contexts.covariances, presented=presented, every=EVERY)
    return leukos.run_online(
        leukos.Circuit(contexts.axes, np.zeros(2)), stimuli, gain_rate=0.05, synapse_rate=None, **known
    ).errors.mean()


floor = np.median([with_true_axes(seed) for seed in range(SEEDS)])

# %%
# How far the synapses are from V is measured by the Frobenius norm, after the columns of W have been permuted and
# flipped to be nearest to those of V.

LOOK = 100  # look at every hundredth of the recorded synapses
distances = np.array(
    [[leukos.align(W, V)[1] for W in trace[::LOOK]] for _, trace, V in runs["gains and synapses"]]
)

# %%
# Results
# -------

figure, (left, middle, right) = plt.subplots(
    1, 3, figsize=(8.8, 3.1), layout="constrained", width_ratios=[3, 3, 2.3]
)
figure.get_layout_engine().set(wspace=0.06)


def band(ax, x, curves, colour, label=None):
    low, half, high = np.quantile(curves, [0.25, 0.5, 0.75], axis=0)
    ax.plot(x, half, color=colour, label=label)
    ax.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)


thousands = (np.arange(PRESENTATIONS // 10) + 0.5) * 10 * SAMPLES / 1000
for (name, own), colour in zip(errors.items(), plotting.COLOURS):
    band(left, thousands, own, colour, name)
left.axhline(floor, color="0.3", linestyle=":", linewidth=1, label="synapses W = V")
left.set(ylabel="whitening error", ylim=(0, 1.3))
left.legend(frameon=False, fontsize=9)
band(middle, np.arange(distances.shape[1]) * LOOK * EVERY / 1000, distances, plotting.COLOURS[0])
middle.set(ylabel="distance of W from V", yscale="log")
middle.set_yticks([0.01, 0.03, 0.1, 0.3, 1], ["0.01", "0.03", "0.1", "0.3", "1"])
middle.minorticks_off()
for ax in (left, middle):
    ax.set(xlabel="stimuli (thousands)", xlim=(0, PRESENTATIONS * SAMPLES / 1000))
    ax.spines[["top", "right"]].set_visible(False)

farthest = distances[:, 0].argmax()
_, trace, V = runs["gains and synapses"][farthest]
order = leukos.align(V, trace[-1])[0]  # V in the order and signs of the learned columns
for k, colour in enumerate(plotting.COLOURS[:2]):
    right.axline((0, 0), order[:, k], color="0.6", linewidth=1, linestyle="--", label="V" if k == 0 else None)
    right.plot(*trace[:, :, k].T, color=colour, linewidth=1.2, label=f"path of w$_{k + 1}$")
    right.plot(*trace[0, :, k], "o", markerfacecolor="white", color=colour, markersize=6)
    right.plot(*trace[-1, :, k], "o", color=colour, markersize=6)
right.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), aspect="equal", xlabel="neuron 1", ylabel="neuron 2")
right.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1])
right.legend(
    frameon=False,
    fontsize=9,
    loc="lower left",
    bbox_to_anchor=(0.0, 1.0),
    ncols=3,
    handlelength=1.2,
    columnspacing=0.8,
    handletextpad=0.4,
    borderaxespad=0.2,
)
plt.show()

# %%
# Left and middle: medians and quartiles over twelve seeds, each with axes, contexts and a start of its own. Right: the
# two columns of W in the run that had the longest way, from where they start (open) to where they end (filled).

last = {name: np.median(own[:, -5:].mean(axis=1)) for name, own in errors.items()}
print("error over the last 50 presentations:", {name: round(float(own), 2) for name, own in last.items()})
print(f"with W = V: {floor:.2f}")
print(
    f"distance from V: {np.median(distances[:, 0]):.2f} at the start, {np.median(distances[:, -1]):.3f} at the end"
)

# %%
# What is left of the error is no fault of the synapses: a gain rate of 0.05 is noisy, and contexts of 400 stimuli spend
# a part of their time on the way from the last one. :doc:`What reproduces </docs/reproducibility>` has the paper's own
# settings, over hundreds of starts.
