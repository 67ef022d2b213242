"""The embedded texts and tokenizer are the published ones, and a damaged file says so."""

import hashlib
import lzma

import pytest

from scalegrad.data import embedded, encode_corpus, gpt2_tokenizer, wikitext2, wikitext103


@pytest.mark.parametrize(
    ("split", "lines", "bytes_", "ids", "distinct"),
    [("test", 4_358, 1_281_077, 289_583, 18_291), ("valid", 3_760, 1_142_309, 253_483, 17_702)],
)
def test_wikitext103_is_the_published_text(split, lines, bytes_, ids, distinct):
    text = wikitext103(split)
    assert (text.count("\n"), len(text.encode())) == (lines, bytes_)
    encoded = encode_corpus(text, gpt2_tokenizer())
    assert (len(encoded), len(set(encoded.tolist()))) == (ids, distinct)


def test_wikitext2_is_whole():
    assert len(wikitext2().encode()) == 10_797_148


def test_unknown_split_is_named():
    with pytest.raises(ValueError, match='split is \'train\'; WikiText-103 is embedded as "valid" and "test"'):
        wikitext103("train")


def test_gpt2_tokenizer_gives_the_ids_gpt2_was_trained_on():
    tokenizer = gpt2_tokenizer()
    assert tokenizer.get_vocab_size() == 50_257
    assert tokenizer.token_to_id("<|endoftext|>") == 50_256
    # The sentence of GPT-2's own demonstration, and bytes that are no letters.
    assert tokenizer.encode("The quick brown fox jumps over the lazy dog").ids == [
        464, 2068, 7586, 21831, 18045, 625, 262, 16931, 3290,
    ]  # fmt: skip
    for text in ("naïve café ☕\n\n  don't 12345", " <unk> @-@ \n", "漢字 😀"):
        assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_damaged_file_is_refused(tmp_path, monkeypatch):
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "wikitext-103.test.xz").write_bytes(lzma.compress(b"something else"))
    monkeypatch.setattr(embedded, "files", lambda package: tmp_path)
    with pytest.raises(ValueError, match=r"wikitext-103\.test\.xz is damaged \(SHA-256 " + _start(b"something else")):
        wikitext103("test")


def _start(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]
