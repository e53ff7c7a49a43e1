"""Metrics of `ndx.evaluate`: what is counted over batches, and reported.

`Classification` counts a confusion matrix: accuracy, precision, recall, F scores. `ROC`
ranks scores: receiver operating characteristic, area under the curve, average
precision. `Regression` sums errors: MSE, MAE, RMSE, R2, correlation. `Mean` averages a
function, such as a loss. `Metric` is the protocol for one's own.

ndx counts. Measures of a `Classification` and curves of a `ROC` are computed from the
counts by scikit-learn, which has to be installed for them.

Examples
--------
>>> import ndx
>>> metric = ndx.metrics.Classification(classes=2)
>>> metric.update(expected=ndx.asarray([0, 1]), outputs=ndx.asarray([0.2, 0.9]))
>>> metric.result().accuracy
1.0
"""

from ndx._pipelines.classification import Classification, ClassificationResult
from ndx._pipelines.metric import Mean, Metric
from ndx._pipelines.regression import Regression, RegressionResult
from ndx._pipelines.reports import Report
from ndx._pipelines.roc import ROC, ROCCurve, ROCResult

__all__ = [
    "Classification",
    "ClassificationResult",
    "Mean",
    "Metric",
    "ROC",
    "ROCCurve",
    "ROCResult",
    "Regression",
    "RegressionResult",
    "Report",
]


def __dir__() -> list[str]:
    return sorted(__all__)
