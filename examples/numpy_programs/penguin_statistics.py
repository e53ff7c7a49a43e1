"""Analyse a made-up survey of penguins: statistics and learning in plain NumPy.

Regression, principal components, clusters, a classifier with cross validation, a
bootstrap, missing values, contingency tables. The data are drawn from known
distributions, and the program prints what the methods find of them.
"""

import numpy as np

SEED = 5
SPECIES = ("Adelie", "Chinstrap", "Gentoo")
COLUMNS = ("bill length", "bill depth", "flipper", "mass")
MEANS = np.array(
    [[38.8, 18.3, 190.0, 3.70], [48.8, 18.4, 196.0, 3.73], [47.5, 15.0, 217.0, 5.08]]
)
SPREAD = np.array([2.6, 1.0, 6.5, 0.45])
CORRELATION = np.array(
    [[1, 0.5, 0.4, 0.5], [0.5, 1, 0.4, 0.6], [0.4, 0.4, 1, 0.6], [0.5, 0.6, 0.6, 1]]
)


def heading(text):
    """Print the title of a section."""
    print(f"\n== {text} ".ljust(64, "="))


def row(name, values, form="{:11.6f}"):
    """Print a name and numbers."""
    print(f"{name:<14}", " ".join(form.format(v) for v in values))


# ---- the data ----------------------------------------------------------------


def survey(rng, each=110):
    """Return measurements with missing values, and species as integers."""
    factor = np.linalg.cholesky(CORRELATION) * SPREAD[:, None]
    species = np.repeat(np.arange(len(SPECIES)), each)
    x = MEANS[species] + rng.standard_normal((species.size, 4)) @ factor.T
    x[rng.random(x.shape) < 0.03] = np.nan
    order = rng.permutation(species.size)
    return x[order], species[order]


def describe(x, species):
    """Print figures of each column, and replace missing values in place."""
    print("missing", np.isnan(x).sum(axis=0), "of", len(x))
    row("mean", np.nanmean(x, axis=0))
    row("deviation", np.nanstd(x, axis=0, ddof=1))
    row("median", np.nanmedian(x, axis=0))
    low, high = np.nanpercentile(x, [5, 95], axis=0)
    row("5 %", low)
    row("95 %", high)
    for kind in range(len(SPECIES)):
        of_kind = species == kind
        usual = np.nanmean(x[of_kind], axis=0)
        missing = np.isnan(x) & of_kind[:, np.newaxis]
        np.copyto(x, np.broadcast_to(usual, x.shape), where=missing)
    assert not np.isnan(x).any()


# ---- methods -----------------------------------------------------------------


def regression(x, y):
    """Return coefficients of least squares, their errors, and R squared."""
    design = np.column_stack([np.ones(len(x)), x])
    beta, residual, rank, _ = np.linalg.lstsq(design, y, rcond=None)
    variance = residual[0] / (len(y) - rank)
    errors = np.sqrt(variance * np.diag(np.linalg.inv(design.T @ design)))
    return beta, errors, 1 - residual[0] / np.sum((y - y.mean()) ** 2)


def principal_components(x):
    """Return scores, directions and shares of the variance."""
    centred = (x - x.mean(axis=0)) / x.std(axis=0)
    _, s, vt = np.linalg.svd(centred, full_matrices=False)
    vt *= np.sign(vt[np.arange(len(vt)), np.abs(vt).argmax(axis=1)])[:, None]
    return centred @ vt.T, vt, s**2 / np.sum(s**2)


def k_means(x, k, rng, rounds=50):
    """Return centres and the cluster of each row."""
    centres = x[rng.choice(len(x), size=k, replace=False)]
    for _ in range(rounds):
        distance = ((x[:, np.newaxis, :] - centres) ** 2).sum(axis=-1)
        nearest = distance.argmin(axis=1)
        counts = np.bincount(nearest, minlength=k)
        moved = np.stack(
            [np.bincount(nearest, weights=column, minlength=k) for column in x.T],
            axis=1,
        )
        moved /= np.maximum(counts, 1)[:, np.newaxis]
        if np.allclose(moved, centres):
            break
        centres = moved
    return centres, nearest


def softmax(z):
    """Return probabilities along the last axis."""
    z = np.exp(z - z.max(axis=-1, keepdims=True))
    return z / z.sum(axis=-1, keepdims=True)


def fit_classifier(x, labels, steps=200, rate=0.5, decay=1e-3):
    """Return the weights of a logistic regression, by gradient descent."""
    wanted = np.eye(len(SPECIES))[labels]
    design = np.c_[np.ones(len(x)), x]
    weights = np.zeros((design.shape[1], wanted.shape[1]))
    for _ in range(steps):
        gradient = design.T @ (softmax(design @ weights) - wanted) / len(x)
        gradient[1:] += decay * weights[1:]
        weights -= rate * gradient
    return weights


def classify(x, weights):
    """Return the most probable species of each row."""
    return np.argmax(np.c_[np.ones(len(x)), x] @ weights, axis=1)


def cross_validate(x, labels, rng, folds=5):
    """Return the accuracy in each fold, and the table of confusions."""
    parts = np.array_split(rng.permutation(len(x)), folds)
    table = np.zeros((len(SPECIES),) * 2, dtype=int)
    accuracy = []
    for part in parts:
        rest = np.setdiff1d(np.arange(len(x)), part)
        mean, deviation = x[rest].mean(axis=0), x[rest].std(axis=0)
        weights = fit_classifier((x[rest] - mean) / deviation, labels[rest])
        found = classify((x[part] - mean) / deviation, weights)
        np.add.at(table, (labels[part], found), 1)
        accuracy.append(np.mean(found == labels[part]))
    return np.array(accuracy), table


def bootstrap(values, rng, draws=400):
    """Return an interval of 95 % for the median."""
    picks = rng.integers(0, values.size, size=(draws, values.size))
    return np.quantile(np.median(values[picks], axis=1), [0.025, 0.975])


@np.vectorize
def size_class(mass):
    """Return 0, 1 or 2 for a small, usual or large animal."""
    return 0 if mass < 3.5 else 1 if mass < 4.75 else 2


def main():
    """Run the analyses and print what they find."""
    np.set_printoptions(precision=5, suppress=True)
    rng = np.random.default_rng(SEED)
    x, species = survey(rng)

    heading("Survey")
    print(" " * 14, " ".join(f"{name:>11}" for name in COLUMNS))
    describe(x, species)
    print(np.corrcoef(x, rowvar=False))
    print("generalised variance", f"{np.linalg.det(np.cov(x.T)):.8f}")

    heading("Mass by the other columns")
    beta, errors, r2 = regression(x[:, :3], x[:, 3])
    row("coefficients", beta)
    row("errors", errors)
    print(f"R squared {r2:.8f}")
    bent = np.polyfit(x[:, 2] - 200, x[:, 3], 2)
    print("parabola", bent, "at 210 mm:", f"{np.polyval(bent, 10.0):.6f}")

    heading("Principal components")
    scores, directions, shares = principal_components(x)
    row("shares", shares)
    print(directions[:2])
    print(
        "uncorrelated:",
        np.allclose(np.cov(scores.T), np.diag(np.var(scores, 0, ddof=1))),
    )

    heading("Clusters")
    centres, nearest = k_means(scores[:, :2], 3, rng)
    order = np.argsort(centres[:, 0])
    print("centres", centres[order].round(4).tolist())
    pairs = np.ravel_multi_index((species, np.argsort(order)[nearest]), (3, 3))
    print(np.bincount(pairs, minlength=9).reshape(3, 3))

    heading("Classifier")
    accuracy, table = cross_validate(x, species, rng)
    row("accuracy", accuracy, "{:.4f}")
    for name, counts in zip(SPECIES, table, strict=True):
        print(f"{name:<14}", " ".join(f"{n:4d}" for n in counts))
    print(f"kappa {kappa(table):.8f}")

    heading("Distributions")
    for kind, name in enumerate(SPECIES):
        low, high = bootstrap(x[species == kind, 3], rng)
        print(f"median mass of {name:<10} in [{low:.6f}, {high:.6f}] kg")
    edges = np.arange(170, 241, 10)
    place = np.digitize(x[:, 2], edges)
    inside = np.searchsorted(np.sort(x[:, 2]), [190, 200, 210])
    print("flippers by 10 mm", np.bincount(place, minlength=edges.size + 1))
    print("shorter than 190, 200, 210:", *inside)
    counts, _, _ = np.histogram2d(x[:, 0], x[:, 1], bins=[4, 3])
    print(counts.astype(int))
    sizes = size_class(x[:, 3])
    kinds, counts_of = np.unique(sizes, return_counts=True)
    print("sizes", dict(zip(kinds.tolist(), counts_of.tolist(), strict=True)))
    trimmed = np.apply_along_axis(lambda c: np.sort(c)[20:-20].mean(), 0, x)
    row("trimmed means", trimmed)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = counts / counts.sum(axis=1, keepdims=True) / np.array([1, 0, 1])
    print(
        "finite ratios", np.isfinite(ratio).sum(), f"sum {np.nansum(ratio[:, ::2]):.6f}"
    )


def kappa(table):
    """Return Cohen's kappa of a table of confusions."""
    total = table.sum()
    agreed = np.trace(table) / total
    chance = table.sum(axis=0) @ table.sum(axis=1) / total**2
    return (agreed - chance) / (1 - chance)


if __name__ == "__main__":
    main()
