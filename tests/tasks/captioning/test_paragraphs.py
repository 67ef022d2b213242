"""COCO caption files, their splits, and words as ids."""

from __future__ import annotations

import json

import pytest

from scalegrad.data.records import Problems
from scalegrad.tasks.captioning.paragraphs import VISUAL_GENOME_SIZES, Captioned, check_sizes, read_coco
from scalegrad.tasks.captioning.vocabulary import build_tokenizer, join_words, paragraph_words, text_of


def write(path, images, annotations):
    content = {
        "images": [{"id": number, "file_name": f"{number}.jpg"} for number in images],
        "annotations": [{"image_id": number, "caption": text} for number, text in annotations],
    }
    path.write_text(json.dumps(content))
    return path


def test_images_and_their_paragraphs(tmp_path):
    path = write(tmp_path / "val.json", [7, 8], [(8, "Two  dogs.\n"), (7, "A cat."), (7, "A sleepy cat.")])
    assert read_coco(path) == [
        Captioned("8", "8.jpg", "Two dogs."),
        Captioned("7", "7.jpg", "A cat."),
        Captioned("7", "7.jpg", "A sleepy cat."),
    ]


def test_what_does_not_match_is_named_and_counted_or_stops_the_work(tmp_path):
    path = write(tmp_path / "val.json", [7, 8, 9], [(8, "Dogs."), (11, "No image."), (9, "  ")])
    problems = Problems(skip=True)
    assert [item.image_id for item in read_coco(path, problems)] == ["8"]
    assert problems.places == {
        "a caption and no image": ["val.json, image 11"],
        "an empty caption": ["val.json, image 9"],
        "no caption": ["val.json, image 7", "val.json, image 9"],
    }
    with pytest.raises(ValueError, match=r"val\.json, image 11: a caption and no image; --skip-bad"):
        read_coco(path)


@pytest.mark.parametrize("content", ["{", "[]", '{"images": []}', '{"images": [{}], "annotations": []}'])
def test_a_file_of_another_kind(tmp_path, content):
    (tmp_path / "val.json").write_text(content)
    with pytest.raises(ValueError, match=r"val\.json is (not JSON|no COCO caption file)"):
        read_coco(tmp_path / "val.json")


def test_published_sizes_are_checked():
    def split(start, count):
        return [Captioned(str(number), "", "a dog.") for number in range(start, start + count)]

    whole = {"train": split(0, 14_575), "val": split(20_000, 2_487), "test": split(30_000, 2_489)}
    check_sizes(whole)
    assert sum(VISUAL_GENOME_SIZES.values()) == 19_551
    with pytest.raises(ValueError, match="the test split has 2,488 images, and the published one 2,489"):
        check_sizes({**whole, "test": whole["test"][:-1]})
    with pytest.raises(ValueError, match=r"the train and val splits share 1 image \(20000\)"):
        check_sizes({**whole, "train": [*whole["train"][1:], *whole["val"][:1]]})


def test_words_with_the_count_threshold():
    """ "dog" occurs five times and is known, "cat" four times and is not; the most frequent word comes first."""
    tokenizer = build_tokenizer(["The dog."] * 5 + ["The cat."] * 4)
    assert tokenizer.convert_ids_to_tokens(range(7)) == ["<pad>", "<s>", "</s>", "<unk>", ".", "the", "dog"]
    assert tokenizer("THE DOG, the cat.")["input_ids"] == [5, 6, 3, 5, 3, 4, 2]
    assert text_of(tokenizer, [5, 6, 3, 4, 2]) == "the dog <unk>."
    with pytest.raises(ValueError, match="no word more than 4 times"):
        build_tokenizer(["A dog."])


def test_a_saved_tokenizer_is_the_same(tmp_path):
    import transformers as hf

    text = "A brown-ish dog, isn't it? (Yes!)"
    tokenizer = build_tokenizer([text] * 5)
    tokenizer.save_pretrained(tmp_path)
    again = hf.PreTrainedTokenizerFast.from_pretrained(tmp_path)
    assert again(text)["input_ids"] == tokenizer(text)["input_ids"]
    assert text_of(again, again(text)["input_ids"]) == "a brown - ish dog, isn't it? (yes!)"
    assert again.convert_ids_to_tokens(again(text)["input_ids"])[:-1] == paragraph_words(text)
    assert join_words(paragraph_words(text)) == text_of(again, again(text)["input_ids"])
