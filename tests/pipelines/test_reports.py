"""Reports as text, as HTML and as pictures."""

import sys
from html.parser import HTMLParser

import numpy as np
import pytest

import ndx
from ndx import metrics

pytest.importorskip("sklearn.metrics")

NASTY = ["<script>alert(1)</script>", 'a & "b"', "two\nlines", "cost $x_1$", "日本語"]


def report_of(classes, *more, n=60, noise=0.6):
    rng = np.random.default_rng(0)
    size = classes if isinstance(classes, int) else len(classes)
    expected = rng.integers(0, size, n)
    scores = np.eye(size)[expected] + noise * rng.standard_normal((n, size))
    return ndx.evaluate(
        lambda x: x,
        [(scores[:40], expected[:40]), (scores[40:], expected[40:])],
        metrics.Classification(classes),
        metrics.ROC(classes=classes),
        *more,
    )


class Text(HTMLParser):
    """Checks that elements are closed in order, and keeps the text of cells."""

    def __init__(self):
        super().__init__()
        self.open, self.cells, self.tags = [], [], set()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1] += text


def test_text_is_aligned():
    report = report_of(["cat", "dog", "a longer name"])
    assert repr(report) == str(report)
    title, *tables = str(report).split("\n\n")
    assert title == "Evaluation of 2 batches"
    assert len(tables) == 3
    for table in tables:
        _, *lines = table.splitlines()
        assert all(line.startswith("  ") and line == line.rstrip() for line in lines)
        full = [line for line in lines if line.split()[-1] == lines[1].split()[-1]]
        assert full
    header = tables[0].splitlines()[1]
    for line in tables[0].splitlines()[2:]:
        assert len(line) == len(header)  # all end with the column of support
    assert "a longer name" in tables[1]


def test_text_of_any_names_keeps_its_lines():
    report = report_of(NASTY)
    table = str(report).split("\n\n")[1]
    assert len(table.splitlines()) == 2 + len(NASTY) + 3
    assert "two lines" in table
    # Wide characters take two columns.
    assert "日本語" + " " * (len(NASTY[0]) - 6) in table


def test_html_is_escaped_and_complete():
    class Odd:
        name = "<b>odd</b>"

        def reset(self):
            pass

        def update(self, expected, outputs):
            pass

        def result(self):
            return "<i>1</i>"

    text = report_of(NASTY, Odd())._repr_html_()
    parser = Text()
    parser.feed(text)
    assert parser.open == []
    assert not {"script", "b", "i"} & parser.tags
    for name in NASTY:
        assert name in parser.cells
    assert "&lt;i&gt;1&lt;/i&gt;" in text
    assert "&lt;b&gt;odd" in text
    assert "background: rgb(" in text


def test_many_classes_are_shortened():
    report = report_of(30, n=300, noise=1.0)
    text = str(report)
    assert text.count("... 10 more") == 2
    assert "most frequent errors" in text
    assert max(map(len, text.splitlines())) < 80
    assert "... 10 more" in report._repr_html_()
    table = report["classification"].tables()[1]
    counts = [float(row[-1]) for row in table.rows]
    assert counts == sorted(counts, reverse=True)
    wrong = np.asarray(report["classification"].confusion).copy()
    np.fill_diagonal(wrong, 0)
    assert counts[0] == wrong.max()
    first = [int(name) for name in table.rows[0][:2]]
    assert wrong[tuple(first)] == counts[0]
    assert report["classification"].support.shape == (30,)
    numbers = metrics.Regression(25)
    numbers.update(np.ones((3, 25)), np.ones((3, 25)))
    assert "... 5 more" in str(numbers.result().tables()[0])


def test_results_without_tables_are_shown_as_text():
    report = report_of(3, metrics.Mean(lambda a, b: 1 / 3, "third"))
    assert str(report).endswith("third: 0.333333")


def test_the_picture_is_saved_and_returned(tmp_path):
    names = NASTY[:-1]  # not all fonts have the last one
    figure = report_of(names).plot(tmp_path / "report.png", dpi=50)
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")
    matrix, curves = figure.axes
    assert matrix.get_title().startswith("classification: accuracy ")
    assert [text.get_text() for text in matrix.get_xticklabels()][3] == r"cost \$x_1\$"
    assert curves.get_title().startswith("ROC: mean area under the curve ")
    assert len(curves.lines) == 1 + len(names)
    report_of(3).plot(str(tmp_path / "report.svg"))
    assert b"<svg" in (tmp_path / "report.svg").read_bytes()


def test_pictures_of_extreme_results(tmp_path):
    metric = metrics.Classification(40)
    metric.update(np.arange(40), np.arange(40))
    empty = metrics.Classification(2, name="empty")
    curves = metrics.ROC(classes=30, name="many")
    rng = np.random.default_rng(0)
    curves.update(rng.integers(0, 29, 200), rng.random((200, 30)))
    none = metrics.ROC(name="none")
    parts = {each.name: each.result() for each in (metric, empty, curves, none)}
    figure = metrics.Report(parts, 1).plot(tmp_path / "x.png")
    # Counts are written in the cells of few classes.
    assert [len(axes.texts) for axes in figure.axes] == [0, 4, 0, 0]
    assert len(figure.axes[2].lines) == 1 + 29  # one class is absent
    assert len(figure.axes[2].get_legend().texts) == 10
    assert figure.axes[3].get_legend() is None


def test_a_result_of_ones_own_may_have_a_picture():
    class Bars:
        def plot(self, axes):
            axes.bar([1, 2], [3, 4])

    figure = metrics.Report({"bars": Bars()}, 1).plot()
    assert figure.axes[0].get_title() == "bars"
    assert len(figure.axes[0].patches) == 2


def test_no_picture_and_no_matplotlib(monkeypatch):
    metric = metrics.Regression()
    with pytest.raises(ValueError, match="no result .* picture .*'regression'"):
        metrics.Report({"regression": metric.result()}, 1).plot()
    report = report_of(2)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match="pip install 'ndxarray.plot.'"):
        report.plot()


def test_without_scikit_learn_there_are_counts_and_an_error_that_names_it(monkeypatch):
    report = report_of(2)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    result = report["classification"]
    assert 0.0 <= result.accuracy <= 1.0
    assert result.support.shape == (2,)
    for measure in (result.precision, result.recall, result.f1):
        with pytest.raises(ImportError, match=r"pip install 'ndxarray\[metrics\]'"):
            measure()
    with pytest.raises(ImportError, match="ROC needs scikit-learn"):
        metrics.ROC()
    # A report is readable all the same, and says what it lacks.
    for text in (str(report), report._repr_html_()):
        assert "ClassificationResult(confusion=" in text
        assert "needs scikit-learn" in text
