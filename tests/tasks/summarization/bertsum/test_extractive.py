"""The sentence selector: its loss by hand, and sentences that do not depend on what a row is padded with."""

import math

import pytest
import torch

from scalegrad.tasks.summarization.bertsum import SentenceSelector, load_bert


@pytest.fixture
def selector(bert_folder):
    torch.manual_seed(2)
    return SentenceSelector.from_bert(load_bert(bert_folder)).eval()


IDS = torch.tensor([[2, 7, 8, 3, 2, 9, 3, 0], [2, 10, 3, 2, 11, 3, 2, 3]])
MASK = torch.tensor([[1] * 7 + [0], [1] * 8])
PLACES = torch.tensor([[0, 4, -1], [0, 3, 6]])
LABELS = torch.tensor([[1, 0, -100], [0, 0, 1]])


def test_the_default_shape_is_the_originals(selector):
    assert len(selector.layers.layers) == 2
    assert selector.layers.layers[0].linear1.weight.shape == (2048, 32)
    assert selector.layers.layers[0].self_attn.num_heads == 8
    assert selector.layers.layers[0].norm_first


def test_loss_is_binary_cross_entropy_by_hand(selector):
    out = selector(IDS, MASK, sentence_positions=PLACES, labels=LABELS)
    logits = out.logits.tolist()
    chance = [[1 / (1 + math.exp(-one)) if one > -math.inf else 0.0 for one in row] for row in logits]
    kept = [chance[0][0], 1 - chance[0][1], 1 - chance[1][0], 1 - chance[1][1], chance[1][2]]
    assert out.loss.item() == pytest.approx(-sum(map(math.log, kept)) / 5, rel=1e-5)
    parts = selector(IDS, MASK, sentence_positions=PLACES, labels=LABELS, num_items_in_batch=10).loss
    assert parts.item() == pytest.approx(out.loss.item() / 2, rel=1e-6)


def test_a_row_does_not_depend_on_its_padding(selector):
    both = selector(IDS, MASK, sentence_positions=PLACES).logits
    alone = selector(IDS[:1, :7], sentence_positions=PLACES[:1, :2]).logits
    assert torch.allclose(both[0, :2], alone[0], atol=1e-5)
    assert both[0, 2] == -math.inf


def test_its_gradient_reaches_the_encoder(selector):
    selector(IDS, MASK, sentence_positions=PLACES, labels=LABELS).loss.backward()
    assert selector.bert.embeddings.word_embeddings.weight.grad[7].abs().sum() > 0
    assert selector.bert.embeddings.word_embeddings.weight.grad[40].abs().sum() == 0


def test_positions_are_needed(selector):
    with pytest.raises(ValueError, match="sentence_positions must say where"):
        selector(IDS)
