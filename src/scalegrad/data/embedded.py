"""What ships inside the package: WikiText-103 valid and test, WikiText-2 train, SciTLDR, GPT-2's byte-pair vocabulary.

The files lie compressed in `files/`, with their licences in `files/LICENSES.md`. Each is checked against the SHA-256
of its uncompressed content when it is read, so a damaged installation says so instead of giving other numbers.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from importlib.resources import files
from typing import Any

from scalegrad.data.pairs import Pair
from scalegrad.extras import need

# SHA-256 of the uncompressed bytes; those of GPT-2's two files are the ones tiktoken also holds them to.
_SHA256 = {
    "wikitext-103.test": "56db52eb157b1ab5c89646eef70510c1eca6e12a3bfdb99f0d6b05b4eacb75b9",
    "wikitext-103.valid": "9aee9f52d6e77de6c7751fc5e7c44287db3ec0eaf15477098acc6b93c1c4250b",
    "wikitext-2.train": "728c77e87e176af4730f9a80fc6008bcaff421a7202c1c048877c0eec3685f89",
    "scitldr.train.jsonl": "6b8f5737167c8b326732419bbbc6edb43fe2ed524e80e140139fb9f2fd728326",
    "scitldr.validation.jsonl": "90f6c19e1082de686708fa9279900a889fdf847457cf1136465a36cbe29d5e9e",
    "scitldr.test.jsonl": "d80101ed7f5c3f204f07a4a7d3c02b7aee3363683e767b06d6e4c9ebe5c31fe3",
    "gpt2-vocab.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    "gpt2-merges.txt": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
}


def wikitext103(split: str) -> str:
    """The WikiText-103 text of `split`, "valid" or "test": the tokenised version, rare words as `<unk>`.

    Every line starts and ends with a space; a blank line is `" \\n"`.

    >>> text = wikitext103("test")
    >>> text.count("\\n"), text[:24]
    (4358, ' \\n = Robert Boulter = \\n ')
    """
    if split not in ("valid", "test"):
        raise ValueError(f'split is {split!r}; WikiText-103 is embedded as "valid" and "test"')
    return _embedded(f"wikitext-103.{split}")


def wikitext2() -> str:
    """The training text of WikiText-2 (2.09 million words), all of it also in WikiText-103's training text.

    Its articles stand in another order than in the upstream file.

    >>> text = wikitext2()
    >>> text.count("\\n"), len(text.split())
    (36718, 2051910)
    """
    return _embedded("wikitext-2.train")


def scitldr(split: str) -> list[Pair]:
    """SciTLDR: abstracts of 3,229 papers, by sentence, with one-sentence summaries ("train", "validation", "test").

    A paper of the training set has one summary, of the others up to several: the author's and those of readers.

    >>> pairs = scitldr("test")
    >>> len(pairs), pairs[0].references[0][:60]
    (618, 'FearNet is a memory efficient neural-network, inspired by me')
    >>> len(scitldr("train")), len(scitldr("validation"))
    (1992, 619)
    """
    if split not in ("train", "validation", "test"):
        raise ValueError(f'split is {split!r}; SciTLDR is embedded as "train", "validation" and "test"')
    rows = [json.loads(line) for line in _embedded(f"scitldr.{split}.jsonl").splitlines()]
    return [Pair(row["id"], tuple(row["source"]), tuple(row["references"])) for row in rows]


def gpt2_tokenizer() -> Any:
    """GPT-2's byte-level BPE as a `tokenizers.Tokenizer`: 50,257 ids, the last one `<|endoftext|>`.

    `transformers.PreTrainedTokenizerFast(tokenizer_object=gpt2_tokenizer())` gives it to a transformers model.

    >>> tokenizer = gpt2_tokenizer()
    >>> tokenizer.encode("Hello world<|endoftext|>").ids
    [15496, 995, 50256]
    >>> tokenizer.decode([15496, 995])
    'Hello world'
    """
    tokenizers = need("tokenizers", extra="measure")
    merges = [tuple(line.split(" ")) for line in _embedded("gpt2-merges.txt").splitlines()[1:]]  # line 1: the version
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(json.loads(_embedded("gpt2-vocab.json")), merges))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return tokenizer


def _embedded(name: str) -> str:
    try:
        content = lzma.decompress(files("scalegrad.data").joinpath("files", f"{name}.xz").read_bytes())
        found = hashlib.sha256(content).hexdigest()
    except lzma.LZMAError:
        found = "cut short"
    if found != _SHA256[name]:
        raise ValueError(
            f"the embedded file {name}.xz is damaged (SHA-256 {found[:12]}…, expected {_SHA256[name][:12]}…): "
            "install scalegrad again"
        )
    return content.decode()
