"""Small programs as people write them with NumPy: loops over rows, elements, slices.

Each is a function of the namespace, `numpy` or `ndx.numpy`, and of a seed; it returns
an array or a number, the same one for the same seed.
"""

import random

__all__ = ["PROGRAMS"]

PROGRAMS = []


def program(function):
    """Add a function to the list of programs."""
    PROGRAMS.append(function)
    return function


@program
def lu_pivoted_solve(np, seed):
    """Gaussian elimination with partial pivots, then back substitution."""
    n = 60
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n))
    b = rng.normal(size=n)
    for k in range(n - 1):
        p = k + np.argmax(np.abs(A[k:, k]))
        if p != k:
            A[[k, p]] = A[[p, k]]
            b[[k, p]] = b[[p, k]]
        for i in range(k + 1, n):
            factor = A[i, k] / A[k, k]
            A[i, k:] -= factor * A[k, k:]
            b[i] -= factor * b[k]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - np.dot(A[i, i + 1 :], x[i + 1 :])) / A[i, i]
    return x


@program
def cholesky_by_rows(np, seed):
    """The Cholesky factor of a matrix, element by element."""
    n = 60
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(n, n))
    A = B @ B.T + n * np.eye(n)
    L = np.zeros_like(A)
    for i in range(n):
        for j in range(i + 1):
            s = np.dot(L[i, :j], L[j, :j])
            if i == j:
                L[i, j] = np.sqrt(A[i, i] - s)
            else:
                L[i, j] = (A[i, j] - s) / L[j, j]
    return L


@program
def qr_gram_schmidt(np, seed):
    """QR factors by the modified process of Gram and Schmidt."""
    m, n = 60, 50
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(m, n))
    Q = np.zeros((m, n))
    R = np.zeros((n, n))
    for j in range(n):
        v = V[:, j].copy()
        for i in range(j):
            R[i, j] = Q[:, i] @ v
            v -= R[i, j] * Q[:, i]
        R[j, j] = np.linalg.norm(v)
        Q[:, j] = v / R[j, j]
    return np.concatenate([Q, R])


@program
def matmul_by_rows(np, seed):
    """A product of matrices, as a sum of multiples of rows."""
    n = 48
    rng = np.random.default_rng(seed)
    A = rng.random((n, n))
    B = rng.random((n, n))
    C = np.zeros((n, n))
    for i in range(n):
        for k in range(n):
            C[i, :] += A[i, k] * B[k, :]
    return C


@program
def thomas_algorithm(np, seed):
    """Tridiagonal systems, element by element."""
    n = 300
    rng = np.random.default_rng(seed)
    total = np.zeros(n)
    for _ in range(10):
        a = rng.random(n)
        b = rng.random(n) + 4
        c = rng.random(n)
        d = rng.random(n)
        for i in range(1, n):
            w = a[i] / b[i - 1]
            b[i] -= w * c[i - 1]
            d[i] -= w * d[i - 1]
        x = np.empty(n)
        x[-1] = d[-1] / b[-1]
        for i in range(n - 2, -1, -1):
            x[i] = (d[i] - c[i] * x[i + 1]) / b[i]
        total += x
    return total


@program
def gauss_seidel(np, seed):
    """A linear system by Gauss and Seidel's iterations."""
    n = 100
    rng = np.random.default_rng(seed)
    A = rng.random((n, n)) + n * np.eye(n)
    b = rng.random(n)
    x = np.zeros(n)
    for _ in range(50):
        old = x.copy()
        for i in range(n):
            s = A[i, :i] @ x[:i] + A[i, i + 1 :] @ x[i + 1 :]
            x[i] = (b[i] - s) / A[i, i]
        if np.linalg.norm(x - old, np.inf) < 1e-12:
            break
    return x


@program
def jacobi_eigenvalues(np, seed):
    """The eigenvalues of a symmetric matrix, by Jacobi's rotations."""
    n = 10
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n))
    A = (A + A.T) / 2
    for _ in range(6):
        for p in range(n - 1):
            for q in range(p + 1, n):
                if abs(A[p, q]) < 1e-14:
                    continue
                theta = 0.5 * np.arctan2(2 * A[p, q], A[q, q] - A[p, p])
                c, s = np.cos(theta), np.sin(theta)
                row_p, row_q = A[p, :].copy(), A[q, :].copy()
                A[p, :] = c * row_p - s * row_q
                A[q, :] = s * row_p + c * row_q
                col_p, col_q = A[:, p].copy(), A[:, q].copy()
                A[:, p] = c * col_p - s * col_q
                A[:, q] = s * col_p + c * col_q
    return np.sort(np.diag(A))


@program
def logistic_regression(np, seed):
    """A classifier of two classes, with a penalty, by gradient descent."""
    m, n = 80, 4
    rng = np.random.default_rng(seed)
    X = np.hstack([np.ones((m, 1)), rng.normal(size=(m, n - 1))])
    y = (X[:, 1] + X[:, 2] > 0.3).astype(float)
    w = np.zeros(n)
    loss = 0.0
    for _ in range(400):
        p = 1 / (1 + np.exp(-np.dot(X, w)))
        loss = -np.mean(y * np.log(p + 1e-12) + (1 - y) * np.log(1 - p + 1e-12))
        grad = np.dot(X.T, p - y) / m
        grad[1:] += 0.01 * w[1:]
        w -= 0.5 * grad
    return np.append(w, loss)


@program
def k_means(np, seed):
    """Clusters of points in the plane, by Lloyd's iterations."""
    rng = np.random.default_rng(seed)
    points = np.vstack([rng.normal(c, 1.0, size=(40, 2)) for c in (0, 4, 8, 12)])
    inertia = []
    for _ in range(8):
        centers = points[rng.choice(len(points), 4, replace=False)]
        for _ in range(15):
            distances = np.sqrt(((points[:, np.newaxis] - centers) ** 2).sum(axis=2))
            labels = np.argmin(distances, axis=1)
            new = np.array(
                [
                    points[labels == k].mean(axis=0)
                    if np.any(labels == k)
                    else centers[k]
                    for k in range(4)
                ]
            )
            if np.allclose(new, centers):
                break
            centers = new
        inertia.append(np.min(distances, axis=1).sum())
    return np.array(inertia)


@program
def particle_filter(np, seed):
    """A hidden position followed by particles that are resampled."""
    rng = np.random.default_rng(seed)
    n = 200
    particles = rng.normal(size=n)
    weights = np.ones(n) / n
    truth = 0.0
    estimates = []
    for _ in range(120):
        truth = 0.9 * truth + rng.normal()
        seen = truth + 0.5 * rng.normal()
        particles = 0.9 * particles + rng.normal(size=n)
        weights *= np.exp(-0.5 * ((seen - particles) / 0.5) ** 2)
        weights += 1e-300
        weights /= weights.sum()
        estimates.append(np.sum(weights * particles))
        if 1 / np.sum(weights**2) < n / 2:
            cumulative = np.cumsum(weights)
            cumulative[-1] = 1.0
            places = (np.arange(n) + rng.random()) / n
            particles = particles[np.searchsorted(cumulative, places)]
            weights = np.ones(n) / n
    return np.array(estimates)


@program
def viterbi(np, seed):
    """The likeliest path of a hidden Markov model."""
    states, symbols, length = 5, 6, 150
    rng = np.random.default_rng(seed)
    A = np.log(rng.dirichlet(np.ones(states), states))
    B = np.log(rng.dirichlet(np.ones(symbols), states))
    observed = rng.integers(0, symbols, length)
    delta = np.zeros((length, states))
    back = np.zeros((length, states), dtype=int)
    delta[0] = np.log(1 / states) + B[:, observed[0]]
    for t in range(1, length):
        for s in range(states):
            scores = delta[t - 1] + A[:, s]
            back[t, s] = np.argmax(scores)
            delta[t, s] = np.max(scores) + B[s, observed[t]]
    path = np.zeros(length, dtype=int)
    path[-1] = np.argmax(delta[-1])
    for t in range(length - 2, -1, -1):
        path[t] = back[t + 1, path[t + 1]]
    return path


@program
def savitzky_golay(np, seed):
    """A series smoothed by polynomials that are fitted to each window."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0, 4 * np.pi, 200)
    y = np.sin(x) + rng.normal(0, 0.1, 200)
    half, degree = 5, 3
    offsets = np.arange(-half, half + 1)
    weights = np.linalg.pinv(np.vander(offsets, degree + 1, increasing=True))[0]
    padded = np.pad(y, half, mode="edge")
    smooth = np.array([weights @ padded[i : i + 2 * half + 1] for i in range(len(y))])
    for i in range(0, len(y) - 11, 2):
        smooth[i + 5] += np.polyval(np.polyfit(offsets, y[i : i + 11], 2), 0)
    return smooth


@program
def edit_distance(np, seed):
    """Levenshtein's distance of two words, by a table."""
    rand = random.Random(seed)
    s, t = ("".join(rand.choices("abcd", k=70)) for _ in range(2))
    d = np.zeros((len(s) + 1, len(t) + 1), dtype=int)
    d[:, 0] = np.arange(len(s) + 1)
    d[0, :] = np.arange(len(t) + 1)
    for i in range(1, len(s) + 1):
        for j in range(1, len(t) + 1):
            cost = 0 if s[i - 1] == t[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d[-1, -1]


@program
def longest_common_subsequence(np, seed):
    """The longest common subsequence of two arrays, with its trace back."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 4, 80)
    b = rng.integers(0, 4, 80)
    L = np.zeros((81, 81), dtype=np.int32)
    for i in range(80):
        for j in range(80):
            if a[i] == b[j]:
                L[i + 1, j + 1] = L[i, j] + 1
            else:
                L[i + 1, j + 1] = max(L[i, j + 1], L[i + 1, j])
    i = j = 80
    found = []
    while i and j:
        if L[i, j] == L[i - 1, j]:
            i -= 1
        elif L[i, j] == L[i, j - 1]:
            j -= 1
        else:
            found.append(a[i - 1])
            i, j = i - 1, j - 1
    return np.array(found[::-1])


@program
def floyd_warshall(np, seed):
    """Shortest paths between all nodes, by rows."""
    n = 40
    rng = np.random.default_rng(seed)
    D = np.where(rng.random((n, n)) < 0.2, rng.random((n, n)) * 10, np.inf)
    np.fill_diagonal(D, 0)
    for k in range(n):
        for i in range(n):
            D[i, :] = np.minimum(D[i, :], D[i, k] + D[k, :])
    return D


@program
def markov_chain(np, seed):
    """Visits of a chain of states, and its stationary distribution."""
    n = 6
    rng = np.random.default_rng(seed)
    P = rng.random((n, n))
    P /= P.sum(axis=1, keepdims=True)
    cumulative = np.cumsum(P, axis=1)
    visits = np.zeros(n, dtype=int)
    state = 0
    for u in rng.random(2000):
        state = min(np.searchsorted(cumulative[state], u), n - 1)
        visits[state] += 1
    stationary = np.ones(n) / n
    for _ in range(100):
        stationary = stationary @ P
    return np.concatenate([visits / visits.sum(), stationary])


@program
def game_of_life(np, seed):
    """Generations of Conway's game, with edges that meet."""
    rng = np.random.default_rng(seed)
    board = rng.integers(0, 2, (16, 16))
    for _ in range(40):
        neighbours = sum(
            np.roll(np.roll(board, dy, 0), dx, 1)
            for dy in (-1, 0, 1)
            for dx in (-1, 0, 1)
            if (dy, dx) != (0, 0)
        )
        board = ((neighbours == 3) | ((board == 1) & (neighbours == 2))).astype(int)
    return board


@program
def wave_equation(np, seed):
    """A wave on a string with fixed ends, by central differences."""
    rng = np.random.default_rng(seed)
    n = 200
    x = np.linspace(0, 1, n)
    u = np.exp(-200 * (x - 0.3 - 0.1 * rng.random()) ** 2)
    before = u.copy()
    energy = []
    for _ in range(500):
        after = np.zeros(n)
        after[1:-1] = 2 * u[1:-1] - before[1:-1] + 0.8 * np.diff(u, 2)
        before, u = u, after
        energy.append(np.sum((u - before) ** 2))
    return np.concatenate([u, energy])


@program
def ising_metropolis(np, seed):
    """The magnetization of a lattice of spins, by Metropolis' steps."""
    n = 12
    rand = random.Random(seed)
    rng = np.random.default_rng(seed)
    spins = rng.choice([-1, 1], size=(n, n))
    track = []
    for _ in range(12):
        for _ in range(n * n):
            i, j = rand.randrange(n), rand.randrange(n)
            total = (
                spins[(i + 1) % n, j]
                + spins[i - 1, j]
                + spins[i, (j + 1) % n]
                + spins[i, j - 1]
            )
            change = 2 * spins[i, j] * total
            if change <= 0 or rand.random() < np.exp(-0.5 * change):
                spins[i, j] *= -1
        track.append(abs(spins.mean()))
    return np.append(spins.ravel(), track)


@program
def runge_kutta_lorenz(np, seed):
    """The attractor of Lorenz by Runge and Kutta's method."""
    rng = np.random.default_rng(seed)

    def slope(s):
        x, y, z = s
        return np.array([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])

    state = rng.random(3)
    path = np.empty((300, 3))
    h = 0.01
    for i in range(len(path)):
        k1 = slope(state)
        k2 = slope(state + h / 2 * k1)
        k3 = slope(state + h / 2 * k2)
        k4 = slope(state + h * k3)
        state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        path[i] = state
    return path


@program
def quaternion_rotations(np, seed):
    """Vectors turned by products of quaternions, and by their matrices."""
    rng = np.random.default_rng(seed)

    def multiply(a, b):
        w1, x1, y1, z1 = a
        w2, x2, y2, z2 = b
        return np.array(
            [
                w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2,
                w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
                w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2,
                w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2,
            ]
        )

    q = np.array([1.0, 0, 0, 0])
    rows = []
    for _ in range(200):
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        half = 0.05
        q = multiply(q, np.concatenate([[np.cos(half)], np.sin(half) * axis]))
        q /= np.sqrt(np.sum(q**2))
        w, v = q[0], q[1:]
        p = np.array([1.0, 2.0, 3.0])
        t = 2 * np.cross(v, p)
        rows.append(p + w * t + np.cross(v, t))
    return np.array(rows)


@program
def cubic_spline(np, seed):
    """A natural cubic spline, evaluated point by point."""
    rng = np.random.default_rng(seed)
    n = 40
    x = np.cumsum(rng.random(n) + 0.1)
    y = np.sin(x)
    h = np.diff(x)
    A = np.eye(n)
    rhs = np.zeros(n)
    for i in range(1, n - 1):
        A[i, i - 1 : i + 2] = h[i - 1], 2 * (h[i - 1] + h[i]), h[i]
        rhs[i] = 6 * ((y[i + 1] - y[i]) / h[i] - (y[i] - y[i - 1]) / h[i - 1])
    m = np.linalg.solve(A, rhs)
    points = np.linspace(x[0], x[-1], 300)
    values = np.zeros_like(points)
    for k, p in enumerate(points):
        i = np.clip(np.searchsorted(x, p) - 1, 0, n - 2)
        left, right = x[i + 1] - p, p - x[i]
        values[k] = (m[i] * left**3 + m[i + 1] * right**3) / (6 * h[i])
        values[k] += (y[i] / h[i] - m[i] * h[i] / 6) * left
        values[k] += (y[i + 1] / h[i] - m[i + 1] * h[i] / 6) * right
    return values


@program
def fft_recursive(np, seed):
    """A fast Fourier transform by recursion on even and odd samples."""
    rng = np.random.default_rng(seed)

    def fft(x):
        n = x.shape[0]
        if n == 1:
            return x.astype(complex)
        even, odd = fft(x[::2]), fft(x[1::2])
        twiddle = np.exp(-2j * np.pi * np.arange(n // 2) / n) * odd
        return np.concatenate([even + twiddle, even - twiddle])

    spectra = [fft(rng.normal(size=256)) for _ in range(4)]
    return np.abs(np.array(spectra))


@program
def mandelbrot(np, seed):
    """Escape times of a row of points, and of whole rows with masks."""
    rng = np.random.default_rng(seed)
    shift = 0.01 * rng.random()
    counts = np.zeros((24, 40), dtype=int)
    for row, y in enumerate(np.linspace(-1.2, 1.2, 24)):
        c = np.linspace(-2, 0.6, 40) + 1j * (y + shift)
        z = np.zeros_like(c)
        for _ in range(40):
            alive = np.abs(z) <= 2
            if not alive.any():
                break
            z[alive] = z[alive] ** 2 + c[alive]
            counts[row, alive] += 1
    return counts


@program
def black_scholes_tree(np, seed):
    """American puts priced on binomial trees."""
    rng = np.random.default_rng(seed)
    steps = 100
    prices = []
    for spot in 90 + 20 * rng.random(10):
        dt = 1.0 / steps
        up = np.exp(0.2 * np.sqrt(dt))
        p = (np.exp(0.05 * dt) - 1 / up) / (up - 1 / up)
        discount = np.exp(-0.05 * dt)
        s = spot * up ** np.arange(steps, -steps - 1, -2.0)
        value = np.maximum(100 - s, 0)
        for _ in range(steps):
            s = s[:-1] / up
            value = discount * (p * value[:-1] + (1 - p) * value[1:])
            value = np.maximum(value, 100 - s)
        prices.append(value[0])
    return np.array(prices)


@program
def monte_carlo_pi(np, seed):
    """Estimates of pi, by points in a square."""
    rng = np.random.default_rng(seed)
    inside = 0
    estimates = np.zeros(300)
    for i in range(len(estimates)):
        xy = rng.uniform(-1, 1, size=(100, 2))
        inside += np.count_nonzero((xy**2).sum(axis=1) <= 1)
        estimates[i] = 4 * inside / (100 * (i + 1))
    return estimates


@program
def bootstrap_interval(np, seed):
    """Intervals of a mean and a median, by samples of a sample."""
    rng = np.random.default_rng(seed)
    x = rng.exponential(size=60)
    means = np.empty(250)
    medians = []
    for i in range(250):
        sample = rng.choice(x, size=len(x), replace=True)
        means[i] = sample.mean()
        medians.append(np.median(sample))
    return np.append(np.percentile(means, [2.5, 97.5]), np.percentile(medians, [5, 95]))


@program
def median_filter(np, seed):
    """A picture without salt and pepper, by medians of windows."""
    rng = np.random.default_rng(seed)
    image = rng.random((22, 22))
    noise = rng.random((22, 22))
    image[noise < 0.05] = 0.0
    image[noise > 0.95] = 1.0
    padded = np.pad(image, 1, mode="edge")
    result = np.empty_like(image)
    for i in range(22):
        for j in range(22):
            result[i, j] = np.median(padded[i : i + 3, j : j + 3])
    return result


@program
def histogram_equalization(np, seed):
    """Pictures of 8 bits made even by their cumulative histograms."""
    rng = np.random.default_rng(seed)
    results = []
    for _ in range(60):
        image = np.clip(rng.normal(100, 20, (16, 16)), 0, 255).astype(np.uint8)
        counts, _ = np.histogram(image, bins=256, range=(0, 256))
        cdf = counts.cumsum()
        low = cdf[cdf > 0].min()
        table = np.round((cdf - low) / (image.size - low) * 255).astype(np.uint8)
        results.append(table[image])
    return np.array(results)


@program
def convex_hull(np, seed):
    """The hull of points in the plane, by cross products of sides."""
    rng = np.random.default_rng(seed)

    def cross(o, a, b):
        return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])

    areas = []
    for _ in range(6):
        points = rng.normal(size=(100, 2))
        points = points[np.lexsort((points[:, 1], points[:, 0]))]
        hull = []
        for sequence in (points, points[::-1]):
            start = len(hull)
            for p in sequence:
                while len(hull) - start >= 2 and cross(hull[-2], hull[-1], p) <= 0:
                    hull.pop()
                hull.append(p)
            hull.pop()
        ring = np.array(hull)
        x, y = ring[:, 0], ring[:, 1]
        areas.append(0.5 * np.abs(x @ np.roll(y, 1) - y @ np.roll(x, 1)))
    return np.array(areas)


@program
def sieve_of_primes(np, seed):
    """Primes and counts of divisors, by strides of an array."""
    start = random.Random(seed).randrange(280, 300)
    totals = []
    for n in range(start, start + 200):
        prime = np.ones(n + 1, dtype=bool)
        prime[:2] = False
        for i in range(2, int(np.sqrt(n)) + 1):
            if prime[i]:
                prime[i * i :: i] = False
        totals.append(np.nonzero(prime)[0].sum())
    divisors = np.zeros(300, dtype=int)
    for d in range(1, 300):
        divisors[d::d] += 1
    return np.concatenate([totals, divisors])


@program
def run_length_encoding(np, seed):
    """Runs of equal values, with masks and by a loop, and back."""
    rng = np.random.default_rng(seed)
    total = 0
    for _ in range(60):
        x = np.sort(rng.integers(0, 4, 100)) // rng.integers(1, 3, 100)
        change = np.concatenate(([True], x[1:] != x[:-1]))
        starts = np.where(change)[0]
        lengths = np.diff(np.append(starts, len(x)))
        back = np.repeat(x[starts], lengths)
        runs = 1
        for i in range(1, len(x)):
            if x[i] != x[i - 1]:
                runs += 1
        total += runs * int(np.array_equal(back, x)) + lengths.max()
    return total


@program
def gene_counting(np, seed):
    """Counts of bases and of words of three in pieces of a genome."""
    rng = np.random.default_rng(seed)
    genome = rng.integers(0, 4, 300)
    words = genome[:-2] * 16 + genome[1:-1] * 4 + genome[2:]
    profile = np.zeros(64, dtype=int)
    content = []
    for start in range(0, 298, 2):
        piece = genome[start : start + 40]
        bases = np.bincount(piece, minlength=4)
        content.append((bases[1] + bases[2]) / bases.sum())
        found, counts = np.unique(words[start : start + 40], return_counts=True)
        profile[found] += counts
        profile[np.where(piece == 3)[0]] -= 1
    return np.concatenate([profile, content])


@program
def time_series(np, seed):
    """Irregular series on a common grid, their changes and peaks."""
    rng = np.random.default_rng(seed)
    grid = np.linspace(0, 50, 101)
    rows = []
    for _ in range(100):
        t = np.cumsum(rng.exponential(0.5, size=120))
        y = np.cumsum(rng.normal(size=120))
        regular = np.interp(grid, t, y)
        change = np.diff(regular)
        last = np.searchsorted(t, grid[::10], side="right")
        peaks = np.where((change[:-1] > 0) & (change[1:] <= 0))[0] + 1
        integral = np.cumsum(np.abs(change))
        half = np.searchsorted(integral, integral[-1] / 2)
        rows.append([len(peaks), half, last.sum(), regular[peaks].max()])
    return np.array(rows)
