"""Simulate waves: a plasma of particles, heat on a plate, a flow, a quantum well.

Written for NumPy: four small solvers that share a few helpers.

1. A two-stream instability in one dimension: particles deposit their charge on a grid
   (`np.add.at`), a spectral Poisson solver gives the field, particles move by leapfrog.
2. Heat on a plate: an explicit stencil with `out=` ufuncs, against a Crank-Nicolson
   step by `np.linalg.solve`.
3. Decaying vorticity on a periodic square: a pseudo-spectral solver with the 2/3 rule.
4. Bound states of a quantum well: `np.linalg.eigh` of a Hamiltonian of finite
   differences, its expectation values by `np.einsum` and `np.trapezoid`.
"""

import numpy as np

SEED = 20240611
LINE = "-" * 64


def heading(text):
    """Print the title of a section."""
    print(LINE)
    print(text)
    print(LINE)


def show(name, value, digits=8):
    """Print a named number, or the elements of a short array."""
    if np.ndim(value) == 0:
        print(f"{name:<34} {value:.{digits}e}")
        return
    print(f"{name:<34}", " ".join(f"{v:.{digits}e}" for v in np.ravel(value)))


# ---- 1. particles ------------------------------------------------------------


def load_beams(rng, count, length, speed):
    """Return positions and velocities of two opposed beams of electrons."""
    x = rng.uniform(0, length, size=count)
    v = np.where(np.arange(count) % 2 == 0, speed, -speed)
    v = v + 0.05 * rng.standard_normal(count)
    v += 0.01 * np.sin(2 * np.pi * x / length)
    return x, v


def deposit(x, cells, width):
    """Return the density of charge on the grid: linear weights, neutral on average."""
    place = x / width
    left = np.floor(place).astype(np.intp)
    weight = place - left
    left %= cells
    right = (left + 1) % cells
    density = np.zeros(cells)
    np.add.at(density, left, 1 - weight)
    np.add.at(density, right, weight)
    density *= cells / x.size
    return 1 - density, (left, right, weight)


def electric_field(charge, length):
    """Solve Poisson's equation by Fourier transforms."""
    modes = np.fft.rfft(charge)
    k = 2 * np.pi * np.fft.rfftfreq(charge.size, d=length / charge.size)
    potential = np.zeros_like(modes)
    potential[1:] = modes[1:] / k[1:] ** 2
    return np.fft.irfft(-1j * k * potential, n=charge.size)


def two_streams(rng, particles=6000, cells=64, steps=160, dt=0.1):
    """Run the instability; return the energies and the last distribution."""
    length = 4 * np.pi
    x, v = load_beams(rng, particles, length, speed=1.0)
    width = length / cells
    energies = np.empty((steps, 2))
    for step in range(steps):
        charge, (left, right, weight) = deposit(x, cells, width)
        field = electric_field(charge, length)
        push = field[left] * (1 - weight) + field[right] * weight
        np.subtract(v, dt * push, out=v)
        x += dt * v
        np.mod(x, length, out=x)
        energies[step] = 0.5 * np.mean(v**2), 0.5 * np.mean(field**2)
    counts, edges = np.histogram(v, bins=12, range=(-3, 3))
    return energies, counts, edges


# ---- 2. heat -----------------------------------------------------------------


def explicit_heat(plate, rate, steps):
    """Advance a plate with cold borders by an explicit stencil, in place."""
    change = np.empty_like(plate[1:-1, 1:-1])
    for _ in range(steps):
        np.add(plate[:-2, 1:-1], plate[2:, 1:-1], out=change)
        change += plate[1:-1, :-2]
        change += plate[1:-1, 2:]
        change -= 4 * plate[1:-1, 1:-1]
        np.multiply(change, rate, out=change)
        plate[1:-1, 1:-1] += change
    return plate


def implicit_heat(plate, rate, steps):
    """Advance the same plate by Crank-Nicolson steps of a dense system."""
    n = plate.shape[0] - 2
    line = np.diag(np.full(n, -2.0))
    line += np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)
    laplace = np.kron(line, np.eye(n)) + np.kron(np.eye(n), line)
    ahead = np.eye(n * n) - 0.5 * rate * laplace
    behind = np.eye(n * n) + 0.5 * rate * laplace
    state = plate[1:-1, 1:-1].ravel()
    for _ in range(steps):
        state = np.linalg.solve(ahead, behind @ state)
    return np.pad(state.reshape(n, n), 1)


# ---- 3. vorticity ------------------------------------------------------------


def vorticity(rng, n=48, steps=60, dt=0.02, viscosity=2e-3):
    """Run a decaying flow; return the history of energy and the last vorticity."""
    y, x = np.mgrid[0:n, 0:n] * (2 * np.pi / n)
    w = np.sin(2 * x) * np.cos(3 * y) + 0.3 * np.cos(x + 2 * y)
    w += 0.05 * rng.normal(size=(n, n))
    k = np.fft.fftfreq(n, d=1 / n)
    kx, ky = np.meshgrid(k, k)
    k2 = kx**2 + ky**2
    safe = np.where(k2 == 0, 1, k2)
    keep = (np.abs(kx) < n / 3) & (np.abs(ky) < n / 3)

    def rate(modes):
        stream = modes / safe
        u = np.fft.ifft2(1j * ky * stream).real
        v = np.fft.ifft2(-1j * kx * stream).real
        wx = np.fft.ifft2(1j * kx * modes).real
        wy = np.fft.ifft2(1j * ky * modes).real
        return np.where(keep, -np.fft.fft2(u * wx + v * wy), 0) - viscosity * k2 * modes

    modes = np.fft.fft2(w) * keep
    energy = []
    for _ in range(steps):
        middle = modes + 0.5 * dt * rate(modes)
        modes = modes + dt * rate(middle)
        energy.append(0.5 * np.sum(np.abs(modes) ** 2 / safe) / n**4)
    return np.array(energy), np.fft.ifft2(modes).real


# ---- 4. a quantum well -------------------------------------------------------


def bound_states(points=160, states=4):
    """Return energies, orthogonality and mean squares of the position."""
    x, step = np.linspace(-6, 6, points, retstep=True)
    well = 0.5 * x**2 + 0.3 * np.exp(-4 * x**2)
    hamiltonian = np.diag(1 / step**2 + well)
    index = np.arange(points - 1)
    hamiltonian[index, index + 1] = hamiltonian[index + 1, index] = -0.5 / step**2
    energies, vectors = np.linalg.eigh(hamiltonian)
    waves = vectors[:, :states] / np.sqrt(step)
    waves *= np.sign(waves[points // 3])
    overlap = np.einsum("xi,xj->ij", waves, waves) * step
    squares = np.trapezoid(x[:, np.newaxis] ** 2 * waves**2, x, axis=0)
    slope = np.gradient(waves, step, axis=0)
    kinetic = 0.5 * np.trapezoid(slope**2, x, axis=0)
    crossings = [
        np.count_nonzero(np.diff(np.sign(w[np.abs(w) > 1e-6]))) for w in waves.T
    ]
    return energies[:states], overlap, squares, kinetic, crossings


def main():
    """Run the four parts and print their results."""
    rng = np.random.default_rng(SEED)

    heading("1. Two streams")
    energies, counts, edges = two_streams(rng)
    kinetic, electric = energies.T
    show("kinetic energy, first and last", kinetic[[0, -1]])
    show("field energy, first and last", electric[[0, -1]])
    growth = np.polyfit(np.arange(20, 80) * 0.1, np.log(electric[20:80]), 1)[0] / 2
    show("growth rate", growth)
    for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
        print(f"  {low:5.2f} .. {high:5.2f} {count:6d}")

    heading("2. Heat")
    n = 18
    plate = np.zeros((n, n))
    plate[4:9, 5:12] = 100.0
    plate += 10 * np.roll(np.eye(n), 3, axis=1)
    plate[[0, -1], :] = plate[:, [0, -1]] = 0
    ours = explicit_heat(plate.copy(), 0.05, 80)
    theirs = implicit_heat(plate, 0.2, 20)
    show("mean, explicit and implicit", np.array([ours.mean(), theirs.mean()]))
    show("largest difference", np.abs(ours - theirs).max())
    hottest = np.unravel_index(np.argmax(ours), ours.shape)
    print("hottest cell", tuple(int(i) for i in hottest))
    profile = np.interp([2.5, 7.25, 11.75], np.arange(n), ours[7])
    show("profile", profile)

    heading("3. Vorticity")
    energy, w = vorticity(rng)
    show("energy, first and last", energy[[0, -1]])
    show("enstrophy", 0.5 * np.mean(w**2))
    show("extremes", [w.min(), w.max()])
    print("monotonic:", bool(np.all(np.diff(energy) < 0)))

    heading("4. A quantum well")
    values, overlap, squares, kinetic, crossings = bound_states()
    show("energies", values)
    print("orthonormal:", np.allclose(overlap, np.eye(len(values)), atol=1e-12))
    show("<x^2>", squares)
    show("<T>", kinetic)
    print("nodes", *crossings)


if __name__ == "__main__":
    main()
