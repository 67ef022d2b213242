"""The names of a run's files of texts."""

from __future__ import annotations


def samples_name(corpus: str, strategy: object) -> str:
    """The file that holds a decoding's texts on a corpus (strategy "human": how the corpus itself goes on).

    >>> samples_name("wikitext-103 test", "greedy,gamma=0.2")
    'wikitext-103-test.greedy,gamma=0.2.jsonl'
    """
    plain = "".join(sign if sign.isalnum() or sign in "-._,=+" else "-" for sign in f"{corpus}.{strategy}")
    return f"{plain}.jsonl"
