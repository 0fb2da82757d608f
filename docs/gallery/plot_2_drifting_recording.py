"""
A drifting recording, adapting and not
======================================

``examples/recordings/awkward.csv`` is artificial, and has what real recordings have: six channels with offsets, in
microvolts, a person who rests, walks and rests again, an empty cell, a channel that goes dead for a while, and an
outlier. Here it goes through ZCA, with one matrix for all of it, and through a whitener that adapts.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from leukos import AdaptiveWhitener, plotting

SAMPLE_RATE = 250.0  # samples a second
recording = pd.read_csv(Path("../../examples/recordings/awkward.csv"))
state = recording.pop("state")
names = list(recording.columns)
usable = (recording.notna() & (recording.abs() < 1000.0)).all(axis=1).to_numpy()
changes = np.flatnonzero(state.to_numpy()[1:] != state.to_numpy()[:-1]) + 1
print(
    f"{len(recording)} samples of {names}, {np.sum(~usable)} of them not usable, changes at {changes.tolist()}"
)

# %%
# ZCA, and a whitener that adapts
# -------------------------------
#
# ZCA from scratch: the inverse root of the covariance of all usable samples. Then the same data through
# ``AdaptiveWhitener``, fitted to the whole recording. Its ``transform`` would be the same as ZCA, its
# ``adapt_transform`` follows; nobody tells it of the states. Values of 1000 and more count as saturated, as for ZCA.

clean = recording[usable].to_numpy()
values, axes = np.linalg.eigh(np.cov(clean.T))
zca = (recording.to_numpy() - clean.mean(axis=0)) @ (axes / np.sqrt(values) @ axes.T)

whitener = AdaptiveWhitener(bad_samples="mark", saturation=1000.0)
whitener.fit(recording, contexts=state)
adapted = np.asarray(whitener.adapt_transform(recording))
print(whitener.status())

# %%
# How white are two seconds of responses?
# ---------------------------------------
#
# The whitening error of the covariance of a sliding window of 500 samples, two seconds. Even perfect responses show an
# error there, because 500 samples are few: the dotted line is its median for independent white ones. The channel that
# goes dead, C4, has no variance to be whitened, so it is left out where it is dead.

WINDOW, STEP = 500, 50
starts = np.arange(0, len(recording) - WINDOW + 1, STEP)
dead = np.zeros(len(recording), dtype=bool)
dead[3200:3900] = True


def window_errors(responses):
    errors = []
    for start in starts:
        rows = slice(start, start + WINDOW)
        block = responses[rows][usable[rows]]
        if dead[rows].any():
            block = np.delete(block, names.index("C4"), axis=1)
        second = block.T @ block / len(block)
        errors.append(np.linalg.norm(second - np.eye(len(second)), 2))
    return np.array(errors)


rng = np.random.default_rng(0)
floor = np.median([np.linalg.norm(np.cov(rng.normal(size=(WINDOW, 6)).T) - np.eye(6), 2) for _ in range(200)])
curves = {"ZCA, one matrix": window_errors(zca), "adapting": window_errors(adapted)}

# %%
# Results
# -------

figure = plt.figure(figsize=(8.0, 7.0), layout="constrained")
above, below = figure.subfigures(2, 1, height_ratios=[2.1, 1])
top, middle = above.subplots(2, 1, sharex=True)
time = np.arange(len(recording)) / SAMPLE_RATE

shown = recording.mask(pd.Series(~usable))
for k, name in enumerate(names):
    top.plot(
        time, (shown[name] - shown[name].median()) / 15.0 - 6 * k, color=plotting.COLOURS[k % 7], linewidth=0.3
    )
top.set_yticks([-6 * k for k in range(len(names))], names)
top.set(ylabel="channel, less its median", xlim=(0, time[-1]), ylim=(-35, 5))
edge = 1.01 * time[-1]
top.plot([edge, edge], [-30, -30 + 100 / 15.0], color="black", linewidth=1.5, clip_on=False)
top.text(1.02 * time[-1], -30 + 50 / 15.0, "100 µV", rotation=90, va="center", fontsize=9)
for start, end, name in zip([0, *changes], [*changes, len(state)], state.iloc[[0, *changes]]):
    top.text((start + end) / 2 / SAMPLE_RATE, 5.2, name, ha="center", va="bottom", fontsize=9)
for ax in (top, middle):
    ax.vlines(
        changes / SAMPLE_RATE, 0, 1, color="0.6", linewidth=0.8, transform=ax.get_xaxis_transform(), zorder=0
    )

for (name, errors), colour in zip(curves.items(), ["#D55E00", "#0072B2"]):
    middle.plot((starts + WINDOW / 2) / SAMPLE_RATE, errors, color=colour, label=name)
middle.axhline(floor, color="0.3", linestyle=":", linewidth=1, label="white, in so few samples")
middle.axvspan(3200 / SAMPLE_RATE, 3900 / SAMPLE_RATE, color="0.93", zorder=0)
middle.text(
    3550 / SAMPLE_RATE,
    0.97,
    "C4 dead",
    transform=middle.get_xaxis_transform(),
    ha="center",
    va="top",
    fontsize=9,
)
middle.set(yscale="log", xlim=(0, time[-1]), xlabel="time (s)", ylabel="whitening error\nof two seconds")
middle.set_yticks([0.2, 0.5, 1, 2, 5], ["0.2", "0.5", "1", "2", "5"])
middle.minorticks_off()
middle.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, borderaxespad=0.2)

pictures = below.subplots(1, 3)
walking = usable & (state == "walk").to_numpy() & ~dead
walking[: changes[0] + 500] = False  # not the first two seconds
for ax, title, responses in zip(
    pictures, ["stimuli", "ZCA", "adapting"], [recording.to_numpy(), zca, adapted]
):
    covariance = np.cov(responses[walking].T)
    if title == "stimuli":
        covariance = covariance / np.median(covariance.diagonal())
    image = ax.imshow(covariance, "RdBu_r", vmin=-2, vmax=2)
    ax.set_title(f"{title}, walking", fontsize=10)
    ax.set_xticks(range(6), names, fontsize=8)
    ax.set_yticks(range(6), names, fontsize=8)
below.colorbar(image, ax=pictures, label="covariance", extend="both")
for ax in (top, middle):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Above: the channels, and when the person rests and walks. Middle: the error over time. Below: covariances while the
# person walks; that of the stimuli is divided by its median variance, to be on the same scale.

for name, errors in curves.items():
    print(f"{name:16} median error {np.median(errors):.2f}, worst {errors.max():.2f}")

# %%
# One matrix for both states is right for neither. How near the whitener comes to
# white, and how far off it is at worst, right after a change, the lines above say.
