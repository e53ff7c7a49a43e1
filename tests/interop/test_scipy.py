"""SciPy takes NDArrays and returns them, with ``SCIPY_ARRAY_API=1`` (see conftest)."""

import numpy as np
import pytest
import scipy.cluster.hierarchy as hierarchy
import scipy.cluster.vq as vq
import scipy.constants as constants
import scipy.differentiate as differentiate
import scipy.fft as fft
import scipy.integrate as integrate
import scipy.interpolate as interpolate
import scipy.linalg as linalg
import scipy.ndimage as ndimage
import scipy.optimize as optimize
import scipy.optimize.elementwise as elementwise
import scipy.signal as signal
import scipy.spatial as spatial
import scipy.special as special
import scipy.stats as stats
from helpers.consumers import COUNTS, MATRIX, OTHER, VECTOR, check, limitation

import ndx
import ndx.numpy as face

ONE, TWO, OF_MATRIX = [VECTOR], [VECTOR, OTHER], [MATRIX]
TREE = hierarchy.linkage(MATRIX)


def of_operands(function, arguments):
    return lambda xp, *operands: function(*operands, *arguments)


def calls(module, operands, names, *arguments):
    """Return the calls of functions that take the operands and then the arguments."""
    return {
        name: (of_operands(getattr(module, name), arguments), operands)
        for name in names.split()
    }


SPECIAL = {
    **calls(
        special,
        ONE,
        "entr erf erfc expit gamma gammaln i0 i0e i1 i1e log_ndtr log_softmax logit "
        "logsumexp ndtr ndtri softmax",
    ),
    **calls(
        special,
        TWO,
        "betaln binom chdtr chdtrc gammainc gammaincc kl_div poch rel_entr stdtr "
        "xlog1py xlogy",
    ),
    "betainc": (lambda xp, a, b: special.betainc(a, b, a * b), TWO),
    "logsumexp of axis": (lambda xp, x: special.logsumexp(x, axis=1), OF_MATRIX),
    "logsumexp of weights": (lambda xp, x, b: special.logsumexp(x, b=b), TWO),
    "multigammaln": (lambda xp, x: special.multigammaln(x + 5, 2), ONE),
    "softmax of axis": (lambda xp, x: special.softmax(x, axis=0), OF_MATRIX),
}
STATS = {
    **calls(
        stats,
        ONE,
        "circmean circstd circvar differential_entropy entropy gstd gzscore hmean "
        "iqr jarque_bera kstat kstatvar kurtosistest lmoment mode normaltest "
        "rankdata skewtest tmax tmean tmin tsem tstd tvar",
    ),
    **calls(
        stats,
        TWO,
        "bartlett f_oneway kruskal levene mannwhitneyu pearsonr ttest_ind ttest_rel "
        "wilcoxon zmap",
    ),
    **calls(
        stats, OF_MATRIX, "directional_stats gmean kurtosis sem skew variation zscore"
    ),
    "chisquare": (lambda xp, x: stats.chisquare(x), [COUNTS.astype(float)]),
    "combine_pvalues": (lambda xp, p: stats.combine_pvalues(p), ONE),
    "false_discovery_control": (
        lambda xp, p: stats.false_discovery_control(p),
        ONE,
    ),
    "moment": (lambda xp, x: stats.moment(x, 3), ONE),
    "pmean": (lambda xp, x: stats.pmean(x, 2.0), ONE),
    "quantile": (lambda xp, x, p: stats.quantile(x, p), TWO),
    "sigmaclip": (lambda xp, x: stats.sigmaclip(x, 1.5, 1.5), ONE),
    "skew of axis": (lambda xp, x: stats.skew(x, axis=None), OF_MATRIX),
    "trim_mean": (lambda xp, x: stats.trim_mean(x, 0.1), ONE),
    "ttest_1samp": (lambda xp, x: stats.ttest_1samp(x, 0.5), ONE),
    "describe": (lambda xp, x: stats.describe(x)[2:], ONE),
}
SIGNAL = {
    **calls(signal, ONE, "detrend envelope hilbert medfilt wiener"),
    **calls(signal, TWO, "convolve correlate fftconvolve oaconvolve upfirdn"),
    **calls(signal, [MATRIX, MATRIX], "convolve2d correlate2d"),
    "convolve direct": (lambda xp, x, y: signal.convolve(x, y, method="direct"), TWO),
    "filtfilt": (lambda xp, x, b: signal.filtfilt(b[:2], b[:1], x), TWO),
    "freqz": (lambda xp, b: signal.freqz(b), ONE),
    "hann": (lambda xp: signal.windows.hann(8, xp=xp), []),
    "lfilter": (lambda xp, x, b: signal.lfilter(b[:3], b[:1], x), TWO),
    "resample": (lambda xp, x: signal.resample(x, 13), ONE),
    "savgol_filter": (lambda xp, x: signal.savgol_filter(x, 5, 2), ONE),
    "sosfilt": (
        lambda xp, x, sos: signal.sosfilt(sos, x),
        [VECTOR, signal.butter(2, 0.2, output="sos")],
    ),
}
NDIMAGE = {
    **calls(
        ndimage,
        OF_MATRIX,
        "center_of_mass distance_transform_edt laplace maximum_position prewitt sobel "
        "sum_labels",
    ),
    **calls(ndimage, OF_MATRIX, "gaussian_filter rotate shift", 1.0),
    **calls(ndimage, OF_MATRIX, "maximum_filter median_filter uniform_filter", 3),
    "binary_erosion": (lambda xp, x: ndimage.binary_erosion(x > 0.1), OF_MATRIX),
    "label": (lambda xp, x: ndimage.label(x > 0.5), OF_MATRIX),
    "zoom": (lambda xp, x: ndimage.zoom(x, 1.5), OF_MATRIX),
}
FFT = {
    **calls(
        fft,
        OF_MATRIX,
        "dct dctn dst dstn fft fft2 fftn fftshift hfft idct idctn idst ifft ifft2 "
        "ifftn ifftshift ihfft irfft irfftn rfft rfftn",
    ),
    "fftfreq": (lambda xp: fft.fftfreq(5, xp=xp), []),
    "fht": (lambda xp, x: fft.fht(x, 0.1, 0.1), ONE),
    "rfft of n": (lambda xp, x: fft.rfft(x, n=7, axis=0, norm="ortho"), OF_MATRIX),
    "rfftfreq": (lambda xp: fft.rfftfreq(5, xp=xp), []),
}
INTEGRATE = {
    **calls(integrate, ONE, "cumulative_simpson cumulative_trapezoid trapezoid"),
    "cubature": (
        lambda xp, a, b: integrate.cubature(lambda p: p[:, 0] * p[:, 1], a, b).estimate,
        [np.zeros(2), np.ones(2)],
    ),
    "cumulative_trapezoid of x": (
        lambda xp, x, y: integrate.cumulative_trapezoid(y, xp.sort(x), initial=0),
        TWO,
    ),
    "romb": (lambda xp, x: integrate.romb(x[:17]), ONE),
    "tanhsinh": (
        lambda xp, a, b: integrate.tanhsinh(xp.exp, a, b).integral,
        TWO,
    ),
    "trapezoid of axis": (lambda xp, x: integrate.trapezoid(x, axis=0), OF_MATRIX),
}
CLUSTER = {
    "cophenet": (lambda xp, tree: hierarchy.cophenet(tree), [TREE]),
    "fcluster": (lambda xp, tree: hierarchy.fcluster(tree, 2, "maxclust"), [TREE]),
    "inconsistent": (lambda xp, tree: hierarchy.inconsistent(tree), [TREE]),
    "kmeans": (lambda xp, x: vq.kmeans(x, x[:2]), OF_MATRIX),
    "kmeans2": (lambda xp, x: vq.kmeans2(x, x[:2], minit="matrix"), OF_MATRIX),
    "leaves_list": (lambda xp, tree: hierarchy.leaves_list(tree), [TREE]),
    "linkage": (lambda xp, x: hierarchy.linkage(x, "ward"), OF_MATRIX),
    "vq": (lambda xp, x: vq.vq(x, x[:2]), OF_MATRIX),
    "whiten": (lambda xp, x: vq.whiten(x), OF_MATRIX),
}
OTHERS = {
    "block_diag": (lambda xp, x: linalg.block_diag(x, x), OF_MATRIX),
    "convert_temperature": (
        lambda xp, x: constants.convert_temperature(x, "C", "K"),
        ONE,
    ),
    "BSpline": (
        lambda xp, t, c: interpolate.BSpline(t, c[:4], 3)(c),
        [np.arange(8.0), VECTOR],
    ),
    "CubicSpline": (
        lambda xp, x, y: interpolate.CubicSpline(x, y)(y),
        [np.arange(20.0), VECTOR],
    ),
    "PchipInterpolator": (
        lambda xp, x, y: interpolate.PchipInterpolator(x, y)(y),
        [np.arange(20.0), VECTOR],
    ),
    "derivative": (lambda xp, x: differentiate.derivative(xp.exp, x).df, ONE),
    "jacobian": (lambda xp, x: differentiate.jacobian(xp.square, x[:3]).df, ONE),
    "find_minimum": (
        lambda xp, x: (
            elementwise.find_minimum(lambda t: (t - 1) ** 2, (x - 1, x, x + 2)).x
        ),
        ONE,
    ),
    "find_root": (
        lambda xp, x: elementwise.find_root(lambda t: t**2 - 2, (x - 1, x + 2)).x,
        ONE,
    ),
    "rosen": (lambda xp, x: optimize.rosen(x), ONE),
    "rosen_der": (lambda xp, x: optimize.rosen_der(x), ONE),
    "Rotation": (
        lambda xp, q: spatial.transform.Rotation.from_quat(q).as_matrix(),
        OF_MATRIX,
    ),
    "Rotation.apply": (
        lambda xp, q: spatial.transform.Rotation.from_quat(q[0]).apply(q[:, :3]),
        OF_MATRIX,
    ),
    "pdist": (lambda xp, x: spatial.distance.pdist(x), OF_MATRIX),
}
TABLES = {
    "special": SPECIAL,
    "stats": STATS,
    "signal": SIGNAL,
    "ndimage": NDIMAGE,
    "fft": FFT,
    "integrate": INTEGRATE,
    "cluster": CLUSTER,
    "others": OTHERS,
}
CALLS = {f"{t}: {name}": TABLES[t][name] for t in TABLES for name in TABLES[t]}
# These take NDArrays, but SciPy computes them by NumPy's functions and returns its
# arrays, whatever the namespace: they have not been converted.
INSIDE_NUMPY = {
    **calls(linalg, [MATRIX.T @ MATRIX], "cholesky det expm inv pinv"),
    **calls(signal, ONE, "czt periodogram"),
    **calls(spatial.distance, [MATRIX, MATRIX], "cdist"),
}
# These fail with any array but NumPy's, array-api-strict's too: the reasons.
CANNOT = {
    "differentiate.hessian": (
        "calls a method that arrays of the standard have not: ndarray.sum",
        lambda x: differentiate.hessian(optimize.rosen, x[:3]),
    ),
    "integrate.nsum": (
        "calls a method that arrays of the standard have not: ndarray.sum",
        lambda x: integrate.nsum(lambda k: 1 / k**2, x[:1] + 1, x[:1] * 0 + np.inf),
    ),
    "interpolate.RBFInterpolator": (
        "calls a method that arrays of the standard have not: ndarray.view",
        lambda x: interpolate.RBFInterpolator(x[:, None], x)(x[:, None]),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_returns_our_arrays(name):
    call, operands = CALLS[name]
    check(call, *operands)


@pytest.mark.parametrize("name", INSIDE_NUMPY)
def test_takes_our_arrays(name):
    call, operands = INSIDE_NUMPY[name]
    check(call, *operands, returns=None)


@pytest.mark.parametrize("name", CANNOT)
def test_can_not_take_them(name):
    reason, call = CANNOT[name]
    with limitation(AttributeError, "no attribute", f"scipy.{name} {reason}"):
        call(ndx.asarray(VECTOR))


@pytest.mark.parametrize(
    "name",
    ["array", "broadcast", "concatenate", "copy", "cov", "diag", "isclose",
     "isscalar", "logspace", "median", "nan_to_num", "ndarray", "pad", "partition",
     "put_along_axis", "setdiff1d", "shape", "sinc", "swapaxes", "transpose",
     "unique"],
)  # fmt: skip
def test_names_of_numpy_that_scipy_asks_for_are_in_numpys_face(name):
    """The standard's namespace, which NDArrays name, has none but the standard's."""
    assert hasattr(face, name)
    assert not hasattr(ndx, name)


@pytest.mark.parametrize(
    "method",
    [
        "BFGS",
        "CG",
        "L-BFGS-B",
        "Newton-CG",
        "SLSQP",
        "TNC",
        "trust-constr",
        "trust-ncg",
    ],
)
@pytest.mark.parametrize("together", [False, True])
def test_derivatives_may_be_arrays_of_ours(method, together):
    def value(p):
        p = face.array(p)
        return ((p - 1) ** 2).sum()

    def gradient(p):
        return 2 * (face.array(p) - 1)

    function = (lambda p: (value(p), gradient(p))) if together else value
    needed = {"hess": lambda p: 2 * face.eye(2)} if method.startswith("trust") else {}
    found = optimize.minimize(
        function,
        [0.0, 0.0],
        jac=True if together else gradient,
        method=method,
        **needed,
    )
    assert found.success
    assert np.allclose(found.x, 1)


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
def test_jacobians_may_be_arrays_of_ours(method):
    found = optimize.least_squares(
        lambda p: face.array(p) - 1,
        [0.0, 0.0],
        jac=lambda p: face.eye(2),
        method=method,
    )
    assert found.success
    assert np.allclose(found.x, 1)
