"""Readers of the Penn Treebank and of IMDB reviews."""

import json

import pytest

from scalegrad.data import imdb, ptb


def test_parse_trees_are_not_text(tmp_path):
    path = tmp_path / "wsj.mrg"
    path.write_text("\n( (S (NP-SBJ (NNP Pierre)))) \n")
    with pytest.raises(ValueError, match="holds parse trees; expected plain text"):
        ptb(path)


def test_ptb_folder_names_the_file_it_lacks(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"ptb\.valid\.txt: there is no such file"):
        ptb(tmp_path, split="valid")


@pytest.fixture
def folder(tmp_path):
    for side in ("pos", "neg"):
        (tmp_path / "test" / side).mkdir(parents=True)
        for n in range(20):
            (tmp_path / "test" / side / f"{n}_7.txt").write_text(f"{side} {n}<br /><br />end")
    (tmp_path / "test" / "urls_pos.txt").write_text("http://example.com")
    return tmp_path


def test_imdb_draw_depends_on_the_seed_alone(folder, tmp_path):
    reviews = imdb(folder, reviews=10, seed=3).splitlines()
    assert len(set(reviews)) == 10
    assert all(line.endswith(" end") and line.startswith(("pos ", "neg ")) for line in reviews)
    assert imdb(folder, reviews=10, seed=3).splitlines() == reviews
    assert imdb(folder, reviews=10, seed=4).splitlines() != reviews
    assert len(imdb(folder, reviews=40).splitlines()) == 40  # the URL list is not a review


def test_imdb_from_a_file(tmp_path):
    path = tmp_path / "reviews.jsonl"
    path.write_text("".join(json.dumps({"text": f"line\nbreak {n}"}) + "\n" for n in range(30)))
    drawn = imdb(path, reviews=30, seed=1).splitlines()
    assert sorted(drawn) == sorted(f"line break {n}" for n in range(30))
    with pytest.raises(ValueError, match=r"reviews is 31; .*reviews\.jsonl has 30"):
        imdb(path, reviews=31)


def test_imdb_folder_without_reviews(tmp_path):
    with pytest.raises(ValueError, match="holds no reviews"):
        imdb(tmp_path)
