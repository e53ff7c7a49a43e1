"""scikit-learn takes NDArrays and returns them, with ``array_api_dispatch=True``."""

import pytest
import sklearn
import sklearn.metrics as metrics
import sklearn.metrics.pairwise as pairwise
from helpers.consumers import FEATURES, LABELS, MATRIX, TARGETS, check, limitation
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge, RidgeClassifier, RidgeCV
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    KernelCenterer,
    LabelBinarizer,
    LabelEncoder,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.utils.extmath import randomized_svd

import ndx

RIDGE = Ridge(solver="svd")
QR = {"power_iteration_normalizer": "QR"}  # the standard has no LU factorization
TRANSFORMERS = [
    Binarizer(threshold=0.5),
    MaxAbsScaler(),
    MinMaxScaler(),
    Normalizer(),
    Nystroem(kernel="rbf", n_components=5, random_state=0),
    PCA(2, svd_solver="full"),
    PCA(2, svd_solver="covariance_eigh"),
    PCA(2, svd_solver="randomized", random_state=0, **QR),
    PCA(2, whiten=True),
    PolynomialFeatures(3),
    StandardScaler(),
]
CLASSIFIERS = [
    GaussianNB(),
    LinearDiscriminantAnalysis(),
    RidgeClassifier(solver="svd"),
    make_pipeline(StandardScaler(), PCA(2), LinearDiscriminantAnalysis()),
]
REGRESSORS = [
    RIDGE,
    RidgeCV(),
    GridSearchCV(RIDGE, {"alpha": [0.1, 1.0]}),
    make_pipeline(MinMaxScaler(), PCA(3), RIDGE),
]
OF_LABELS = [
    "accuracy_score",
    "balanced_accuracy_score",
    "cohen_kappa_score",
    "confusion_matrix",
    "f1_score",
    "hamming_loss",
    "jaccard_score",
    "multilabel_confusion_matrix",
    "precision_score",
    "recall_score",
    "zero_one_loss",
]
OF_SCORES = [
    "average_precision_score",
    "brier_score_loss",
    "det_curve",
    "log_loss",
    "precision_recall_curve",
]
OF_TARGETS = [
    "d2_absolute_error_score",
    "d2_pinball_score",
    "d2_tweedie_score",
    "explained_variance_score",
    "max_error",
    "mean_absolute_error",
    "mean_absolute_percentage_error",
    "mean_gamma_deviance",
    "mean_pinball_loss",
    "mean_poisson_deviance",
    "mean_squared_error",
    "mean_squared_log_error",
    "median_absolute_error",
    "r2_score",
    "root_mean_squared_error",
]
PAIRWISE = [
    "additive_chi2_kernel",
    "chi2_kernel",
    "cosine_distances",
    "cosine_similarity",
    "euclidean_distances",
    "laplacian_kernel",
    "linear_kernel",
    "manhattan_distances",
    "paired_cosine_distances",
    "paired_euclidean_distances",
    "pairwise_distances",
    "pairwise_kernels",
    "polynomial_kernel",
    "rbf_kernel",
    "sigmoid_kernel",
]


@pytest.fixture(autouse=True)
def _dispatch():
    with sklearn.config_context(array_api_dispatch=True):
        yield


def label(estimator):
    return type(estimator).__name__


@pytest.mark.parametrize("estimator", TRANSFORMERS, ids=label)
def test_transformers(estimator):
    def call(xp, x):
        fitted = sklearn.clone(estimator).fit(x)
        result = fitted.transform(x)
        if hasattr(fitted, "inverse_transform"):
            return result, fitted.inverse_transform(result)
        return result

    check(call, FEATURES, rtol=1e-7)


def test_transformers_of_kernels_and_labels():
    kernel = FEATURES @ FEATURES.T
    check(lambda xp, k: KernelCenterer().fit_transform(k), kernel)
    check(lambda xp, y: LabelEncoder().fit_transform(y), LABELS + 3)
    check(lambda xp, y: LabelBinarizer().fit_transform(y), LABELS + 3)


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=label)
def test_classifiers(estimator):
    def call(xp, x, y):
        fitted = sklearn.clone(estimator).fit(x, y)
        found = [fitted.predict(x)]
        for method in ("decision_function", "predict_proba", "transform"):
            if hasattr(fitted, method):
                found.append(getattr(fitted, method)(x))
        return found

    check(call, FEATURES, LABELS, rtol=1e-5)


@pytest.mark.parametrize("estimator", REGRESSORS, ids=label)
def test_regressors(estimator):
    def call(xp, x, y):
        fitted = sklearn.clone(estimator).fit(x, y)
        return fitted.predict(x), fitted.score(x, y)

    check(call, FEATURES, TARGETS, rtol=1e-7)


def test_calibration_of_three_classes():
    def call(xp, x, y):
        calibrated = CalibratedClassifierCV(
            LinearDiscriminantAnalysis(), method="temperature"
        )
        return calibrated.fit(x, y).predict_proba(x)

    check(call, FEATURES, LABELS + (FEATURES[:, 1] > 0.6), rtol=1e-5)


def test_the_attributes_of_an_estimator_are_ours():
    fitted = sklearn.clone(RIDGE).fit(ndx.asarray(FEATURES), ndx.asarray(TARGETS))
    assert isinstance(fitted.coef_, ndx.NDArray)
    check(
        lambda xp, x, y: sklearn.clone(RIDGE).fit(x, y).coef_,
        FEATURES,
        TARGETS,
        rtol=1e-7,
    )


def test_mixture():
    def call(xp, x, means):
        model = GaussianMixture(
            2, means_init=means, init_params="random", random_state=0, max_iter=5,
            tol=0.0,
        )  # fmt: skip
        return model.fit(x).means_

    with pytest.warns(sklearn.exceptions.ConvergenceWarning):
        check(call, FEATURES, FEATURES[:2] + 0.25, rtol=1e-7)


@pytest.mark.parametrize("name", OF_LABELS)
def test_metrics_of_labels(name):
    predicted = LABELS.copy()
    predicted[::4] = 1 - predicted[::4]
    check(lambda xp, y, p: getattr(metrics, name)(y, p), LABELS, predicted)


@pytest.mark.parametrize("name", OF_SCORES)
def test_metrics_of_scores(name):
    scores = FEATURES[:, 0] / 1.25
    check(lambda xp, y, p: getattr(metrics, name)(y, p), LABELS, scores)


@pytest.mark.parametrize("name", ["roc_auc_score", "roc_curve"])
def test_metrics_that_can_not_take_them(name):
    reason = f"{name} calls diff(x, 2); the standard's n is keyword-only"
    with limitation(TypeError, "diff", reason):
        getattr(metrics, name)(ndx.asarray(LABELS), ndx.asarray(FEATURES[:, 0]))


def test_calibration_of_two_classes():
    calibrated = CalibratedClassifierCV(RidgeClassifier(solver="svd"))
    calibrated.set_params(method="temperature")
    reason = "CalibratedClassifierCV calls x.reshape, which the standard has not"
    with limitation(AttributeError, "'reshape'", reason):
        calibrated.fit(ndx.asarray(FEATURES), ndx.asarray(LABELS))


@pytest.mark.parametrize("name", OF_TARGETS)
def test_metrics_of_targets(name):
    check(lambda xp, y, p: getattr(metrics, name)(y, p), TARGETS, TARGETS[::-1] + 1)


@pytest.mark.parametrize("name", PAIRWISE)
def test_pairwise(name):
    check(lambda xp, x, y: getattr(pairwise, name)(x, y), MATRIX, MATRIX[::-1] + 1)


def test_model_selection():
    def split(xp, x, y):
        return train_test_split(x, y, random_state=0)

    check(split, FEATURES, LABELS)
    check(lambda xp, x, y: cross_val_predict(RIDGE, x, y), FEATURES, TARGETS, rtol=1e-7)
    check(
        lambda xp, x, y: cross_val_score(RIDGE, x, y).tolist(),
        FEATURES,
        TARGETS,
        rtol=1e-7,
    )


def test_randomized_svd():
    check(lambda xp, x: randomized_svd(x, 2, random_state=0, **QR), FEATURES, rtol=1e-7)


def test_in_a_workspace():
    fitted = StandardScaler().fit(ndx.asarray(FEATURES))
    with ndx.workspace() as workspace:
        result = fitted.transform(ndx.asarray(FEATURES))
        assert result.workspace == workspace.name
        kept = result.detach()
    check(lambda xp, x: StandardScaler().fit_transform(x), FEATURES)
    ndx.testing.assert_allclose(kept, fitted.transform(ndx.asarray(FEATURES)))
    with pytest.raises(ndx.StaleArrayError):
        fitted.transform(result)
