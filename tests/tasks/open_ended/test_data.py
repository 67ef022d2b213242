"""From files, folders and data sets to sequences: every token where it belongs."""

import gzip
import io
import json
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from scalegrad.data import Problems, encode_corpus, gpt2_tokenizer, wikitext103
from scalegrad.data.readers import read_records
from scalegrad.tasks.open_ended import data
from scalegrad.tasks.open_ended.config import Fields
from scalegrad.tasks.open_ended.data import read_examples
from scalegrad.tasks.open_ended.examples import Examples, hold_out
from tests.tasks.open_ended.conftest import start_tokenizer

END = 50256


@pytest.fixture(scope="module")
def tokenizer():
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_object=gpt2_tokenizer(), eos_token="<|endoftext|>")


def rows(examples):
    return [examples[i]["input_ids"].tolist() for i in range(len(examples))]


def write_jsonl(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def test_a_text_file_is_one_text_cut_every_n_tokens(tmp_path, tokenizer):
    text = "The horses are brown.\n\nThey run.\n" * 40
    (tmp_path / "a.txt").write_text(text)
    ids = [*tokenizer.encode(text), END]
    found = read_examples([str(tmp_path / "a.txt")], tokenizer, length=16)
    assert rows(found) == [ids[i : i + 16] for i in range(0, len(ids) - 15, 16)]
    assert found[0]["labels"].tolist() == ids[:16]
    assert found.targets == 15 * len(found)


def test_long_texts_are_encoded_in_pieces_without_loss(tmp_path, tokenizer, monkeypatch):
    monkeypatch.setattr("scalegrad.tasks.open_ended.examples._PIECE", 50)
    monkeypatch.setattr("scalegrad.tasks.open_ended.examples._BATCH", 3)
    text = "".join(f"Line {i} of a story that goes on and on.\n" for i in range(30))
    (tmp_path / "a.txt").write_text(text)
    found = read_examples([str(tmp_path / "a.txt")], tokenizer, length=10_000)
    assert rows(found) == [[*tokenizer.encode(text), END]]  # shorter than one sequence: kept whole


def test_records_follow_each_other_with_the_end_symbol(tmp_path, tokenizer):
    path = write_jsonl(tmp_path / "a.jsonl", [{"text": "One two."}, {"text": "Three."}, {"text": "Four five six."}])
    (tmp_path / "b.csv").write_text("n,body\n1,Seven.\n2,Eight.\n")
    ids = [token for text in ("One two.", "Three.", "Four five six.") for token in (*tokenizer.encode(text), END)]
    assert rows(read_examples([path], tokenizer, length=5)) == [ids[i : i + 5] for i in range(0, len(ids) - 4, 5)]
    other = read_examples([str(tmp_path / "b.csv")], tokenizer, length=6, fields=Fields(field="body"))
    assert rows(other) == [[*tokenizer.encode("Seven."), END, *tokenizer.encode("Eight."), END][:6]]


def test_a_folder_is_its_files_in_order(tmp_path, tokenizer):
    (tmp_path / "deep").mkdir()
    (tmp_path / "a.txt").write_text("Alpha.\n")
    (tmp_path / "deep" / "b.txt.gz").write_bytes(gzip.compress(b"Beta.\n"))
    (tmp_path / "notes.md").write_text("no")
    ids = [*tokenizer.encode("Alpha.\n"), END, *tokenizer.encode("Beta.\n"), END]
    assert rows(read_examples([str(tmp_path)], tokenizer, length=100)) == [ids]


def test_standard_input_is_a_text_or_records(monkeypatch, tokenizer):
    def bring(content):
        monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(content)))

    bring(b"Alpha.\nBeta.\n")
    assert rows(read_examples(["-"], tokenizer, length=100)) == [[*tokenizer.encode("Alpha.\nBeta.\n"), END]]
    bring(b'{"body": "Alpha."}\n')
    found = read_examples(["-"], tokenizer, length=100, fields=Fields(field="body"))
    assert rows(found) == [[*tokenizer.encode("Alpha."), END]]
    bring(b'{"q": "A", "a": "B"}\n')
    pairs = read_examples(["-"], tokenizer, length=100, fields=Fields(prompt_field="q", completion_field="a"))
    assert pairs[0]["labels"].tolist()[0] == -100


def test_bad_records_are_left_out_and_counted(tmp_path, tokenizer):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "One two."}\n{"text": 3}\nbroken\n{"text": "Three."}\n')
    problems = Problems(skip=True)
    found = read_examples([str(path)], tokenizer, length=100, problems=problems)
    assert rows(found) == [[*tokenizer.encode("One two."), END, *tokenizer.encode("Three."), END]]
    assert problems.count == 2
    with pytest.raises(ValueError, match=r"a\.jsonl, line 2: the text is a number"):
        read_examples([str(path)], tokenizer, length=100)
    path.write_text('{"prompt": "a", "completion": "b"}\n{"prompt": "a"}\n')
    assert len(read_examples([str(path)], tokenizer, length=100, problems=problems)) == 1
    assert problems.count == 3


def test_the_same_text_is_read_and_encoded_once(tmp_path, tokenizer, monkeypatch):
    """What the second run of a sweep asks for is there; another length, file or tokenizer is not."""
    reads = []

    def counting(file, **options):
        reads.append(Path(file).name)
        return read_records(file, **options)

    monkeypatch.setattr("scalegrad.tasks.open_ended.data.read_records", counting)
    path = tmp_path / "a.txt"
    path.write_text("The horses are brown.\n" * 50)
    (tmp_path / "b.jsonl").write_text('{"text": "Some words."}\nbroken\n')
    first = read_examples([str(path)], tokenizer, length=16)
    assert read_examples([str(path)], tokenizer, length=16) is first
    assert reads == ["a.txt"]
    assert read_examples([str(path)], tokenizer, length=17).about() != first.about()
    assert len(reads) == 2
    read_examples([str(path)], start_tokenizer(), length=16)
    assert len(reads) == 3
    path.write_text("The horses are white.\n" * 51)
    assert read_examples([str(path)], tokenizer, length=16).about() != first.about()
    assert len(reads) == 4
    for _ in range(2):  # what was left out is counted again, not read again
        problems = Problems(skip=True)
        read_examples([str(tmp_path / "b.jsonl")], tokenizer, problems=problems)
        assert problems.count == 1
        assert reads[4:] == ["b.jsonl"] * 2  # once for its first record, and whole
    assert len(data._EXAMPLES) == 2


def test_reading_and_tokenising_are_reported(tmp_path, tokenizer, monkeypatch):
    monkeypatch.setattr("scalegrad.tasks.open_ended.examples._PIECE", 2_000)
    monkeypatch.setattr("scalegrad.tasks.open_ended.examples._BATCH_CHARACTERS", 5_000)
    text = "The horses are brown.\n" * 1_000
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(text)
    calls = {}
    read_examples(
        [str(tmp_path)], tokenizer, progress=lambda what, done, total: calls.setdefault(what, []).append((done, total))
    )
    assert calls[f"reading {tmp_path.name} (bytes)"][-1] == (2 * len(text), 2 * len(text))
    for name in ("a.txt", "b.txt"):
        done = calls[f"tokenising {name} (characters)"]
        assert done[-1] == (len(text), len(text))
        assert len(done) >= 3
    paper = []
    encode_corpus(text, tokenizer, lambda *call: paper.append(call))
    assert paper[-1][1] == paper[-1][2] > len(text)


def test_prompts_are_no_targets(tmp_path, tokenizer):
    """Asked for by their usual names without being told; the completion ends with the end symbol."""
    records = [{"prompt": "Say A:", "completion": " A B C"}, {"prompt": "Say nothing:", "completion": " Nothing."}]
    found = read_examples([write_jsonl(tmp_path / "a.jsonl", records)], tokenizer, length=50)
    for i, record in enumerate(records):
        prompt, completion = (tokenizer.encode(record[name]) for name in ("prompt", "completion"))
        assert found[i]["input_ids"].tolist() == [*prompt, *completion, END]
        assert found[i]["labels"].tolist() == [-100] * len(prompt) + [*completion, END]
    renamed = [{"q": record["prompt"], "a": record["completion"]} for record in records]
    named = read_examples(
        [write_jsonl(tmp_path / "b.jsonl", renamed)],
        tokenizer,
        length=50,
        fields=Fields(prompt_field="q", completion_field="a"),
    )
    assert rows(named) == rows(found)
    assert named.about() == found.about()


def test_too_long_a_prompt_loses_its_beginning():
    pairs = [([1, 2, 3, 4], [5, 6]), ([1], [2, 3, 4, 5, 6]), ([], [7]), ([8], [])]
    examples = Examples.of_pairs(pairs, length=4)
    assert rows(examples) == [[3, 4, 5, 6], [1, 2, 3, 4]]  # one token alone has nothing to predict
    assert examples[0]["labels"].tolist() == [-100, -100, 5, 6]
    assert examples.targets == 2 + 3


def test_a_completion_that_does_not_fit_keeps_the_end_of_its_prompt():
    """190 prompts of 21 tokens whose completions alone fill a sequence of 64: 43 targets each, not 63."""
    prompts = [list(range(100, 121))] * 190
    examples = Examples.of_pairs([(prompt, [*range(200, 300)]) for prompt in prompts], length=64)
    assert (len(examples), examples.targets) == (190, 190 * 43)
    assert rows(examples)[0] == [*range(100, 121), *range(200, 243)]
    assert examples[0]["labels"].tolist() == [-100] * 21 + [*range(200, 243)]


@pytest.mark.parametrize("length", [2, 3, 5, 8, 13, 64])
@pytest.mark.parametrize("start", [(), (7,)])
def test_no_target_is_trained_without_its_prompt(length, start):
    """Whatever the lengths: the prompt's last token stands before the first target, and nothing is wasted."""
    pairs = [([*range(100, 100 + p)], [*range(200, 200 + c)]) for p in range(1, 20) for c in range(1, 20)]
    if length - len(start) < 2:
        with pytest.raises(ValueError, match="length must be at least 3 tokens"):
            Examples.of_pairs(pairs, length, start)
        return
    examples = Examples.of_pairs(pairs, length, start)
    assert len(examples) == len(pairs)
    for (prompt, completion), example in zip(pairs, (examples[i] for i in range(len(examples))), strict=True):
        ids, labels = example["input_ids"].tolist(), example["labels"].tolist()
        first = next(place for place, label in enumerate(labels) if label != -100)
        assert ids[: len(start)] == list(start)
        assert ids[first - 1] == prompt[-1]
        assert ids[first] == completion[0]
        whole = len(start) + len(prompt) + len(completion)
        assert len(ids) == min(whole, length)


def test_what_was_cut_is_counted(tmp_path, tokenizer):
    pairs = [([1] * 3, [2] * 3), ([1] * 9, [2] * 3), ([1] * 3, [2] * 9), ([1] * 9, [2] * 9), ([1], []), ([], [2])]
    reading = Examples.of_pairs(pairs, length=8).reading
    assert (reading.records, reading.prompts, reading.completions) == (6, 2, 2)
    assert (reading.left_out, reading.longest) == (2, 18)
    for words in ("6 records", "2 prompts", "2 completions", "2 records", "18 tokens"):
        assert words in reading.sentence()
    whole = Examples.of_pairs(pairs[:1], length=8).reading.sentence()
    assert "no prompt and no completion" in whole
    assert "left out" not in whole


def test_sequences_begin_with_the_start_symbol(tmp_path):
    """As in evaluation: it is read and no target, and every token of the text is one."""
    tokenizer = start_tokenizer()
    (tmp_path / "a.txt").write_text("The horses are brown and white. " * 20)
    ids = [*tokenizer.encode((tmp_path / "a.txt").read_text() + "\n", add_special_tokens=False), tokenizer.eos_token_id]
    examples = read_examples([str(tmp_path / "a.txt")], tokenizer, length=16)
    begin = tokenizer.bos_token_id
    assert rows(examples) == [[begin, *ids[i : i + 15]] for i in range(0, len(ids) - 14, 15)]
    assert examples[1]["labels"].tolist() == [-100, *ids[15:30]]
    assert examples.targets == 15 * len(examples)
    assert examples.about()["start"] == [begin]
    without = Examples(examples.ids, examples.starts, examples.lengths, examples.prompts)
    assert without.about()["checksum"] != examples.about()["checksum"]
    record = {"prompt": "Say A " * 20, "completion": " A B"}
    (pair,) = rows(read_examples([write_jsonl(tmp_path / "a.jsonl", [record])], tokenizer, length=16))
    prompt, completion = (tokenizer.encode(record[name], add_special_tokens=False) for name in record)
    assert pair == [begin, *prompt[len(completion) - 14 :], *completion, tokenizer.eos_token_id]


def test_embedded_text_is_encoded_as_the_paper_does(tokenizer):
    found = read_examples(["wikitext-103:valid"], tokenizer, length=300)
    ids = encode_corpus(wikitext103("valid"), tokenizer)
    assert np.array_equal(np.concatenate([found.ids[s : s + 300] for s in found.starts]), ids[: len(ids) // 300 * 300])


def test_parquet_as_the_hub_has_it(tmp_path, tokenizer):
    """`datasets` reads a folder as it reads the hub; WikiText's blank lines are empty records there."""
    datasets = pytest.importorskip("datasets")
    lines = ["", " = Title = \n", "", " A sentence of some words . \n", " Another one . \n"]
    datasets.Dataset.from_dict({"text": lines}).to_parquet(str(tmp_path / "train.parquet"))
    found = read_examples([str(tmp_path)], tokenizer, length=1000, protocol="paper")
    corpus = " \n = Title = \n \n A sentence of some words . \n Another one . \n"
    assert rows(found) == [encode_corpus(corpus, tokenizer).tolist()]


@pytest.mark.parametrize(
    ("columns", "options", "sentence"),
    [
        ({"id": ["x"], "body": ["words"]}, {}, "record 1: no field .*its fields are 'id', 'body'"),
        ({"text": ["words", None]}, {}, "record 2: the text is null, not a text"),
        ({"text": ["words", None]}, {"protocol": "paper"}, "record 2: the text is null, not a text"),
        ({"number": [7]}, {}, "record 1: the text is a number, not a text"),
        ({"prompt": ["a"], "completion": [1.5]}, {}, "record 1: field 'completion' is a number, not a text"),
    ],
)
def test_columns_that_are_no_text(tmp_path, tokenizer, columns, options, sentence):
    datasets = pytest.importorskip("datasets")
    datasets.Dataset.from_dict(columns).to_parquet(str(tmp_path / "train.parquet"))
    with pytest.raises(ValueError, match=sentence):
        read_examples([str(tmp_path)], tokenizer, length=4, **options)


def test_an_only_column_needs_no_name(tmp_path, tokenizer):
    datasets = pytest.importorskip("datasets")
    datasets.Dataset.from_dict({"body": ["Some words."]}).to_parquet(str(tmp_path / "train.parquet"))
    assert rows(read_examples([str(tmp_path)], tokenizer, length=100)) == [[*tokenizer("Some words.").input_ids, END]]


def test_held_out_sequences_are_spread_and_apart():
    examples = Examples.cut(np.arange(600, dtype=np.int32), length=3)
    rest, held = hold_out(examples)
    assert len(held) == 10
    assert sorted([*rest.starts, *held.starts]) == sorted(examples.starts)
    assert len(hold_out(examples, most=4)[1]) == 4
    assert [len(part) for part in hold_out(Examples.cut(np.arange(4, dtype=np.int32), length=2))] == [1, 1]


def test_the_checksum_knows_ids_and_targets():
    ids = np.arange(12, dtype=np.int32)
    base = Examples.cut(ids, 4)
    assert base.about() == Examples.cut(ids.copy(), 4).about()
    others = [Examples.cut(ids, 3), Examples.cut(ids[::-1].copy(), 4), base.chosen(slice(0, 2))]
    masked = Examples(base.ids, base.starts, base.lengths, base.prompts + 1)
    assert len({example.about()["checksum"] for example in (base, masked, *others)}) == 5


@pytest.mark.parametrize(
    ("sources", "options", "sentence"),
    [
        ([], {}, "data: none was named"),
        (["a.txt"], {"length": 1}, "length must be at least 2 tokens, not 1"),
        (["a.txt"], {"protocol": "mine"}, "protocol must be plain or paper, not 'mine'"),
        (["nowhere.txt"], {}, r"nowhere\.txt: there is no such file"),
        (["empty"], {}, r"empty has no file ending in \.txt"),
        (["a.txt", "pairs.jsonl"], {}, "some of it has prompts and completions and some has not"),
        (["pairs.jsonl"], {"fields": Fields(field="body")}, "no field 'body'"),
        (["no/such/data:a:b:c"], {}, "has more than a configuration and a split after its name"),
    ],
)
def test_mistakes_are_one_sentence(tmp_path, monkeypatch, tokenizer, sources, options, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("Some words.\n")
    (tmp_path / "empty").mkdir()
    write_jsonl(tmp_path / "pairs.jsonl", [{"prompt": "a", "completion": "b"}])
    with pytest.raises((ValueError, OSError), match=sentence):
        read_examples(sources, tokenizer, **options)


def test_fields_go_together():
    with pytest.raises(ValueError, match="prompt_field and completion_field belong together"):
        Fields(prompt_field="q")
    with pytest.raises(ValueError, match="field is 't', and prompt_field is named too"):
        Fields(field="t", prompt_field="q", completion_field="a")
