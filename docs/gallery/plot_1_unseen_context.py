r"""
An unseen context, whitened by moving gains
===========================================

Once the synapses have learned what contexts share, a new context asks for one number for each interneuron. A method
without synapses has to find all N(N + 1)/2 numbers of a covariance. This example counts the samples that each needs.

Contexts have eight channels and share their axes. A whitener is fitted to sixteen of them, which also learns synapses
that suit them all. Then the stream switches, unannounced, to a context that was not among them.
"""

# %%
# Contexts that share their axes
# ------------------------------
#
# The paper's synthetic family, M = I + V Λ Vᵀ and C = M², with orthonormal axes V. Half of the strengths in Λ are zero.

import copy

import matplotlib.pyplot as plt
import numpy as np

import leukos
from leukos import AdaptiveWhitener, datasets, plotting

N, KNOWN, SEEDS, SAMPLES, EVERY = 8, 16, 12, 2000, 10


def contexts_of(seed):
    return datasets.synthetic_contexts(KNOWN + 1, N, N, axes="orthogonal", random_state=seed).covariances


# %%
# Four ways to follow a switch
# ----------------------------
#
# We know the true covariance C of the new context, so the whitening error can be measured without the noise of an
# estimate: it is the operator norm of M⁻¹CM⁻ᵀ − I, for the M that each method has at that moment.


def follow_gains(whitener, before, stream, truth):
    """The paper's circuit with the learned synapses: its gains move with each sample (Algorithm 1)."""
    scale, synapses = whitener.scale_[0], whitener.synapses_
    circuit = leukos.Circuit(synapses, leukos.optimal_gains(synapses, before / scale**2))
    run = leukos.run_online(
        circuit,
        stream / scale,
        gain_rate=0.003,
        synapse_rate=None,
        covariances=truth[np.newaxis] / scale**2,
        presented=[0],
        every=EVERY,
    )
    return run.errors


def follow_whitener(whitener, stream, truth):
    """The whitener: a mixture of memories. Nobody tells it of the switch."""
    whitener, errors = copy.deepcopy(whitener), []
    for start in range(0, SAMPLES, EVERY):
        errors.append(leukos.whitening_error(whitener.dewhitening_matrix_, truth))
        whitener.adapt_transform(stream[start : start + EVERY])
    return errors


def follow_covariance(start, memory, stream, truth):
    """A running covariance; `memory` is the number of samples it has at each step."""
    covariance, errors = start.copy(), []
    for i, sample in enumerate(stream):
        if i % EVERY == 0:
            values, axes = np.linalg.eigh(covariance)
            root = axes * np.sqrt(np.maximum(values, 1e-3)) @ axes.T
            errors.append(leukos.whitening_error(root, truth))
        covariance += (np.outer(sample, sample) - covariance) / memory[i]
    return errors


names = [
    "gains on learned synapses",
    "whitener",
    "running covariance, memory 500",
    "covariance, told of the switch",
]
errors = np.empty((SEEDS, len(names), SAMPLES // EVERY))
for seed in range(SEEDS):
    covariances = contexts_of(seed)
    labels = np.arange(KNOWN).repeat(2000)
    known = datasets.draw(covariances, np.arange(KNOWN), 2000, random_state=seed)
    whitener = AdaptiveWhitener().fit(known, contexts=labels)
    whitener.adapt_transform(known[-2000:])  # it stands in the last of the known contexts
    stream, truth = datasets.draw(covariances, [KNOWN], SAMPLES, random_state=100 + seed), covariances[KNOWN]
    errors[seed, 0] = follow_gains(whitener, covariances[KNOWN - 1], stream, truth)
    errors[seed, 1] = follow_whitener(whitener, stream, truth)
    errors[seed, 2] = follow_covariance(covariances[KNOWN - 1], np.full(SAMPLES, 500), stream, truth)
    errors[seed, 3] = follow_covariance(np.eye(N), np.arange(1, SAMPLES + 1), stream, truth)

# %%
# Results
# -------

figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.4), layout="constrained", width_ratios=[3, 2])
figure.get_layout_engine().set(wspace=0.08)
time = np.arange(0, SAMPLES, EVERY)
for name, own, colour in zip(names, errors.swapaxes(0, 1), plotting.COLOURS):
    low, middle, high = np.quantile(own, [0.25, 0.5, 0.75], axis=0)
    left.plot(time, middle, color=colour, label=name)
    left.fill_between(time, low, high, color=colour, alpha=0.2, linewidth=0)
left.axhline(1.0, color="0.6", linewidth=0.8, linestyle=":")
left.annotate(
    "silence", (SAMPLES, 1.0), (-2, 2), textcoords="offset points", ha="right", va="bottom", color="0.45"
)
left.set(
    xlabel="samples since the switch", ylabel="whitening error", xscale="log", yscale="log", xlim=(10, SAMPLES)
)
left.set_ylim(0.05, 60)
left.set_xticks([10, 30, 100, 300, 1000], ["10", "30", "100", "300", "1000"])
left.set_yticks([0.1, 0.2, 0.5, 1, 2, 5, 10], ["0.1", "0.2", "0.5", "1", "2", "5", "10"])
left.minorticks_off()
left.legend(frameon=False)


def samples_to(bound, curve):
    """After how many samples the error stays below a bound; infinite where it does not."""
    above = np.flatnonzero(curve > bound)
    return 0 if len(above) == 0 else np.inf if above[-1] == len(curve) - 1 else time[above[-1] + 1]


counts = np.array([[samples_to(0.5, curve) for curve in own] for own in errors.swapaxes(0, 1)])
for place, (own, colour) in enumerate(zip(counts, plotting.COLOURS)):
    spread = 0.12 * np.linspace(-1, 1, SEEDS)
    right.scatter(place + spread, np.minimum(own, SAMPLES), s=12, color=colour, alpha=0.6, linewidth=0)
    right.hlines(np.median(own), place - 0.3, place + 0.3, color=colour, linewidth=2)
right.set_xticks(range(4), ["gains", "whitener", "running\ncovariance", "told of\nthe switch"], fontsize=8)
right.set(ylabel="samples until the error\nstays below 0.5", ylim=(0, None))
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Medians and quartiles over 12 seeds; each dot on the right is a seed, each line a median. The dotted line is the error
# of silence: responses that are all zero have an error of exactly 1.

for name, own in zip(names, counts):
    low, half, high = np.quantile(own, [0.25, 0.5, 0.75])
    print(f"{name:32} {half:5.0f} samples (quartiles {low:.0f}, {high:.0f})")
for name, own in zip(names, errors.swapaxes(0, 1)):
    print(f"{name:32} median error {np.median(own[:, -1]):.3f} after {SAMPLES} samples")

# %%
# This is the case that the circuit is made for: the new context has the axes of the known ones. The tutorial has one
# that does not, where gains are not enough (:doc:`/docs/tutorial`). The whitener does not use the synapses; it finds all
# numbers of the covariance, and so can follow any context. What the 36 and
# more numbers cost in samples, and what it is worth to be told, the lines above say.
