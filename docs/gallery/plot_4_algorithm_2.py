r"""
Algorithm 2: synapses for natural contexts are like cosines
===========================================================

The offline algorithm learns from covariances instead of stimuli (Fig. 4). Its contexts here are those of 5 × 5 image
patches, from a generator of Gaussian fields with a 1/f spectrum, which behaves much like natural images: neighbouring
pixels are alike, and one image is smoother, noisier or more upright than another.

The question is what the synapses learn, and whether it serves contexts that were kept back.
"""

import matplotlib.pyplot as plt
import numpy as np

import leukos
from leukos import datasets, plotting

SIDE, SEEDS, STRETCHES, PRESENTATIONS = 5, 3, 12, 40
N = SIDE**2
natural = datasets.field_contexts(56, (SIDE, SIDE), random_state=0)
controls = datasets.matched_controls(natural, random_state=0)  # the same spectra, random eigenvectors
TRAINING, KEPT_BACK = slice(0, 50), slice(50, 56)


# %%
# Learning
# --------
#
# A run shows one context after another and takes 50 steps in each, of gains and synapses alike. Columns keep the length
# one, and in the last quarter the synapses are five times slower, so that they settle. We stop every 40 presentations
# and ask what the synapses are worth: the mean whitening error of the six contexts that were kept back, with the gains
# that are best in each.


def error_with(synapses, covariances):
    circuits = (leukos.Circuit(synapses, leukos.optimal_gains(synapses, C)) for C in covariances)
    return np.mean(
        [leukos.whitening_error(c.inverse_whitening_matrix(), C) for c, C in zip(circuits, covariances)]
    )


def learn(covariances, seed):
    rng = np.random.default_rng(seed)
    circuit = leukos.Circuit(np.linalg.qr(rng.normal(size=(N, N)))[0], np.zeros(N))
    errors = [error_with(circuit.synapses, covariances[KEPT_BACK])]
    for stretch in range(STRETCHES):
        rate = 0.05 if stretch < 9 else 0.01
        presented = rng.integers(50, size=PRESENTATIONS)
        circuit = leukos.run_offline(
            circuit,
            covariances[TRAINING],
            presented,
            steps=50,
            gain_rate=0.5,
            synapse_rate=rate,
            unit_norm="projected",
            errors=False,
        ).circuit
        errors.append(error_with(circuit.synapses, covariances[KEPT_BACK]))
    return np.array(errors), circuit.synapses


runs = [learn(natural, seed) for seed in range(SEEDS)]
control_runs = [learn(controls, seed) for seed in range(SEEDS)]

# %%
# Cosines
# -------
#
# The basis of the discrete cosine transform, and the best signed assignment of learned columns to it.

frequency, position = np.meshgrid(np.arange(SIDE), np.arange(SIDE) + 0.5)
waves = np.cos(np.pi * frequency * position / SIDE)
waves /= np.linalg.norm(waves, axis=0)
cosines = np.einsum("ya,xb->yxab", waves, waves).reshape(N, N)


def matched(synapses):
    """The learned columns in the order of the cosines, and the match of each, |cos| of an angle."""
    aligned, _ = leukos.align(synapses / np.linalg.norm(synapses, axis=0), cosines)
    return aligned, (aligned * cosines).sum(axis=0)


aligned, match = matched(runs[0][1])
random = [
    matched(np.linalg.qr(np.random.default_rng(s).normal(size=(N, N)))[0])[1].mean() for s in range(SEEDS)
]

# %%
# Results
# -------

figure = plt.figure(figsize=(9.6, 3.2), layout="constrained")
left, middle, right = figure.subfigures(1, 3, width_ratios=[3, 2.8, 2.8])
ax = left.subplots()
shown = np.arange(STRETCHES + 1) * PRESENTATIONS
for each, colour, name in [(control_runs, "#D55E00", "controls"), (runs, "#0072B2", "1/f contexts")]:
    for own, _ in each:
        ax.plot(shown, own, color=colour, linewidth=0.7, alpha=0.45)
    ax.plot(shown, np.median([own for own, _ in each], axis=0), color=colour, linewidth=2, label=name)
ax.set(xlabel="presentations", ylabel="whitening error, contexts kept back", yscale="log", xlim=(0, shown[-1]))
ax.set_yticks([0.05, 0.1, 0.2, 0.5, 1, 2, 5], ["0.05", "0.1", "0.2", "0.5", "1", "2", "5"])
ax.minorticks_off()
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)

for part, weights, title in [(middle, aligned, "learned synapses"), (right, cosines, "cosines")]:
    ax = part.subplots()
    plotting.filters(weights, (SIDE, SIDE), ax, columns=SIDE)
    ax.set_title(title, fontsize=10)
plt.show()

# %%
# Left: thin lines are starts, thick ones their medians. Middle: the 25 columns of W of the first start, each as a
# picture of 5 × 5 pixels, in the order of the cosines that they match. The low frequencies are clear after so few
# presentations; the high ones, which hardly differ in strength, are still mixed.

learned = np.median([matched(W)[1].mean() for _, W in runs])
print(f"median match to cosines {learned:.2f}; of random synapses {np.median(random):.2f}")
for name, each in [("1/f contexts", runs), ("controls", control_runs)]:
    start, end = np.median([own[[0, -1]] for own, _ in each], axis=0)
    print(f"{name:13} error with best gains {start:.2f} before, {end:.3f} after learning")

# %%
# Smooth fields have nearly the same eigenvectors whatever their spectrum is, and these are nearly cosines. So one set
# of synapses serves all of them, and a context only has to say how strong each frequency is. The controls have the same
# spectra and no axes in common: there is nothing for synapses to learn, and what they pick up from one context is in the
# way in another.
#
# These fields are easier than photographs, whose error stays near 0.4: see :doc:`what reproduces
# </docs/reproducibility>`. On natural covariances the pseudo-code of Algorithm 2, with its other order of updates,
# diverges; ``order="concurrent"``, the default, does not (:doc:`the list of differences </PAPER>`).
