"""What stays of an evaluation in a run's folder when the run is evaluated again."""

from __future__ import annotations

from typing import Any

# What is counted, the settings its figures depend on, what else the protocol says of it, where its figures are, and
# where those that each decoding has.
_PARTS = (
    ("chunks", ("chunk_targets",), ("gamma",), "language_modelling", "penalised"),
    ("prefixes", ("prefix_tokens", "new_tokens", "seed"), (), "completion", "completion"),
)


def merged(kept: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """The evaluation `found`, with what it left out from an earlier one of the same corpus and protocol.

    Language modelling depends on how chunks were cut, completion on prefixes, length and seed: each is kept alone.
    """
    before, now = kept.get("protocol", {}), found["protocol"]
    result = {**found, "human": dict(found["human"]), "protocol": dict(now)}
    if any(before.get(key) != now.get(key) for key in ("corpus_sha256", "gpt2_tokenizer", "unknown", "start")):
        return result
    for count, settings, aside, measured, by_decoding in _PARTS:
        if not now[count] and before.get(count):  # left out this time
            result |= {part: kept[part] for part in (measured, by_decoding) if part in kept}
            result["human"] |= {part: figures for part, figures in kept["human"].items() if part == measured}
            result["protocol"] |= {key: before[key] for key in (count, *settings, *aside)}
        elif by_decoding in kept and all(before[key] == now[key] for key in (count, *settings)):
            result[by_decoding] = {**kept[by_decoding], **found.get(by_decoding, {})}
    return result


def lost(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What an evaluation had and a later one of the same corpus has not.

    >>> lost({"completion": {"greedy": {}, "top_k=5": {}}, "penalised": {}}, {"completion": {"greedy": {}}})
    ['top_k=5']
    """
    names: list[str] = [part for part in ("language_modelling", "completion") if part in before and part not in after]
    for part in ("completion", "penalised"):
        names += [name for name in before.get(part, {}) if name not in after.get(part, {}) and part not in names]
    return names
