"""Pictures are written whole or not at all, the same bytes each time."""

import struct

import matplotlib._pylab_helpers
import pytest

from scalegrad.results.figure import DOTS_PER_INCH, check_picture_path, new_figure, save_figure


def figure():
    drawn = new_figure(3, 2)
    drawn.subplots().plot([0, 1], [0, 1])
    return drawn


def test_png_has_the_size_asked_for(tmp_path):
    content = save_figure(figure(), tmp_path / "a.png").read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", content[16:24]) == (3 * DOTS_PER_INCH, 2 * DOTS_PER_INCH)


@pytest.mark.parametrize(("name", "start"), [("a.svg", b"<?xml"), ("a.PDF", b"%PDF"), ("a.png", b"\x89PNG")])
def test_suffix_decides_and_the_bytes_repeat(tmp_path, name, start):
    first = save_figure(figure(), tmp_path / name).read_bytes()
    assert first.startswith(start)
    assert save_figure(figure(), tmp_path / name).read_bytes() == first
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_a_failure_leaves_the_old_picture_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "a.png"
    path.write_bytes(b"old")
    drawn = figure()

    def fails(file, **_):
        file.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(drawn, "savefig", fails)
    with pytest.raises(OSError, match="disk full"):
        save_figure(drawn, path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_paths_that_cannot_be_are_told(tmp_path):
    with pytest.raises(ValueError, match=r"ends in \.png, \.svg or \.pdf, not '\.jpg'"):
        check_picture_path(tmp_path / "a.jpg")
    with pytest.raises(ValueError, match="missing does not exist"):
        check_picture_path(tmp_path / "missing" / "a.png")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(ValueError, match="is a folder"):
        check_picture_path(tmp_path / "folder.png")


def test_no_global_figure_is_made():
    before = dict(matplotlib._pylab_helpers.Gcf.figs)
    figure()
    assert matplotlib._pylab_helpers.Gcf.figs == before
