"""The example does its job: it filters, in all ways alike, and asks for nothing."""

import numpy as np
import pytest
from helpers.commands import run_example
from helpers.together import FREE_THREADED

import ndx

COUNT, SIZE = 12, 32


@pytest.fixture
def folder(tmp_path):
    from photo_data import Folder, make_folder

    make_folder(tmp_path, COUNT, SIZE, 0)
    return Folder(tmp_path)


@pytest.fixture
def ways(folder):
    """Return the variants by their labels."""
    from filter_images import prefetched, variants

    with prefetched(folder, 2) as images:
        yield {way.label: way for way in variants(folder, images, 2, "host")}
    ndx.memory.destroy_all(trim=False)


def test_the_blur_is_scipys():
    from image_filter import DEVIATION, RADIUS, padded, smooth
    from scipy.ndimage import gaussian_filter

    x = np.random.default_rng(0).random((9, 14, 3))
    found = ndx.asarray(x)
    for axis in (0, 1):
        found = smooth(padded(found, RADIUS, axis), axis)
    sigma = DEVIATION, DEVIATION, 0
    expected = gaussian_filter(x, sigma, mode="nearest", truncate=RADIUS / DEVIATION)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_edges_are_where_the_image_has_some():
    from image_filter import filtered

    pixels = np.full((20, 24, 3), 40, dtype=np.uint8)
    pixels[:, 12:] = 200
    result = filtered(ndx.asarray(pixels))
    assert result["image"].dtype == result["edges"].dtype == ndx.uint8
    assert result["image"].shape == (20, 24, 3)
    edges = np.asarray(result["edges"])
    assert (edges[:, 11:13] > 200).all()
    assert (edges[:, :7] == 0).all()
    assert (edges[:, 17:] == 0).all()
    image = np.asarray(result["image"])
    np.testing.assert_array_equal(image[:, :7], pixels[:, :7])
    np.testing.assert_array_equal(image[:, 17:], pixels[:, 17:])


@pytest.mark.parametrize("shape", [(1, 1, 3), (2, 9, 3)], ids=str)
def test_images_smaller_than_the_gaussian(shape):
    from image_filter import FUSED, filtered

    pixels = ndx.full(shape, 77, dtype=ndx.uint8)
    for result in (filtered(pixels), filtered(pixels, FUSED)):
        assert ndx.all(result["image"] == 77)
        assert ndx.all(result["edges"] == 0)


def test_all_ways_have_the_same_results_which_stay(folder, ways):
    """Results that are kept are in no workspace, and nothing overwrites them."""
    from image_filter import filtered

    expected = [filtered(pixels) for pixels in folder]
    assert len(ways) == 6
    for way in ways.values():
        kept = list(way.results())
        assert len(kept) == COUNT
        for found, right in zip(kept, expected, strict=True):
            for name, x in found.items():
                assert x.workspace is None
                np.testing.assert_array_equal(x, right[name])


def test_it_asks_the_system_for_nothing_after_the_first_images(ways):
    """In workspaces only the two results are buffers; workers begin new arenas."""
    from filter_images import compare

    assert compare(list(ways.values()), 3, lambda way: None) == []
    for label, way in ways.items():
        made, system = zip(*way.meter.counts[2:], strict=True)
        assert system == (0, 0)
        if label == "loop":
            assert min(made) > 10 * COUNT
        elif "worker" not in label:
            assert made == (2 * COUNT, 2 * COUNT)
        else:
            assert max(made) <= 2 * COUNT + 2 * (60 if FREE_THREADED else 20)


@pytest.mark.nightly
def test_the_command(tmp_path):
    picture, output = tmp_path / "photos.png", tmp_path / "out"
    output.mkdir()
    small = "--images", 5, "--size", 48, "--repeats", 1, "--workers", 3
    done = run_example(
        "filter_images.py", *small, "--picture", picture, "--output", output
    )
    assert done.returncode == 0, done.stderr
    for text in ("loop", "+ workspace", "+ prefetch", "+ 3 workers", "to the last bit"):
        assert text in done.stdout
    assert "60/60" in done.stderr, "the progress bar"
    assert picture.read_bytes().startswith(b"\x89PNG")
    names = [f"{number:04}.png" for number in range(5)]
    assert sorted(path.name for path in output.iterdir()) == names


def small_main(tmp_path, *arguments):
    from filter_images import main

    small = ("--images", "2", "--size", "16", "--repeats", "1", "--no-progress")
    return main([*small, "--picture", str(tmp_path / "photos.png"), *arguments])


def test_other_results_fail(tmp_path, capsys, monkeypatch):
    import filter_images

    wrong = filter_images.FUSED._replace(lightness=lambda x: x[:, :, 0])
    monkeypatch.setattr(filter_images, "FUSED", wrong)
    assert small_main(tmp_path) == 1
    labels = "+ fused, + prefetch, + 2 workers, 2 workers, reading"
    assert capsys.readouterr().err == f"other results than the loop: {labels}\n"
