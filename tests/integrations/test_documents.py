"""Packed documents, by every mark they have: each gives the loss of the documents on their own."""

import pytest
import torch
import transformers

from scalegrad import ScaleGradLoss
from scalegrad.integrations import hf
from scalegrad.integrations.labels import causal_batch, document_starts
from tests.integrations import architectures, tiny
from tests.integrations.training import attached, packed

LENGTHS = (6, 3, 5)
T = sum(LENGTHS)


def rows():
    source = torch.Generator().manual_seed(3)
    ids = [torch.randint(3, 12, (length,), generator=source) for length in LENGTHS]
    return [{"input_ids": each, "labels": each.clone()} for each in ids]


def positions():
    return torch.cat([torch.arange(length) for length in LENGTHS])[None]


def numbers():
    return torch.repeat_interleave(torch.arange(1, 4), torch.tensor(LENGTHS))[None]


def apart(dtype):
    """[1, 1, T, T] a mask that keeps the documents from each other."""
    allowed = (numbers().mT == numbers()).tril()[None, None]
    return allowed if dtype == torch.bool else torch.where(allowed, 0.0, torch.finfo(dtype).min).to(dtype)


def planes(count):
    """Qwen2-VL's: time, height and width; an image of 2 × 2 after the first token of the first and third document."""
    text, rope = [], []
    for length in LENGTHS:
        steps = torch.arange(length)
        text.append(steps)
        if length < 5:
            rope.append(steps.expand(3, -1))
            continue
        time, height, width = torch.tensor([[0, 1, 1, 1, 1], [0, 1, 1, 2, 2], [0, 1, 2, 1, 2]])
        rest = torch.arange(3, 3 + length - 5).expand(3, -1)
        rope.append(torch.cat([torch.stack([time, height, width]), rest], 1))
    rope, text = torch.cat(rope, 1)[:, None], torch.cat(text)[None, None]
    return rope if count == 3 else torch.cat([text, rope])


CUMULATIVE = torch.tensor([0, 6, 9, 14], dtype=torch.int32)
MARKS = {
    "position_ids": {"position_ids": positions()},
    "position_ids [3, B, T]": {"position_ids": planes(3)},
    "position_ids [4, B, T]": {"position_ids": planes(4)},
    "cu_seq_lens": {"cu_seq_lens_q": CUMULATIVE, "cu_seq_lens_k": CUMULATIVE},
    "cu_seq_lens with padding": {"cu_seq_lens_q": torch.tensor([0, 6, 9, 14, 14])},
    "seq_idx": {"seq_idx": numbers().int() - 1},
    "a mask of numbers": {"attention_mask": numbers()},
    "a mask of numbers that fall": {"attention_mask": 4 - numbers()},
    "a mask of pairs": {"attention_mask": apart(torch.bool)},
    "a mask that is added": {"attention_mask": apart(torch.float32)},
    "one mask for each kind of layer": {"attention_mask": {"full_attention": apart(torch.bfloat16)}},
    "several": {"position_ids": torch.arange(T)[None], "seq_idx": numbers(), "attention_mask": torch.ones(1, T).long()},
}


@pytest.mark.parametrize("mark", MARKS)
def test_every_mark_says_where_documents_start(mark):
    assert document_starts(MARKS[mark], torch.Size([1, T]))[0].nonzero().flatten().tolist() == [0, 6, 9]


def test_a_plain_mask_marks_nothing():
    """Padding on either side, and a hole: one document. A prompt of one masked token is no document's lost start."""
    mask = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 0, 1, 1], [1, 1, 1, 0, 0]])
    assert not document_starts({"attention_mask": mask}, mask.shape).any()
    labels = torch.tensor([[-100, 5, 6, 7, 8]])
    batch = causal_batch(labels, input_ids=torch.tensor([[4, 5, 6, 7, 8]]), attention_mask=mask[2:])
    assert batch.context.tolist() == labels.tolist()
    assert document_starts({"attention_mask": mask.bool()}, mask.shape) is None
    split = torch.tensor([[1, 1, 0, 2, 2]])
    assert document_starts({"attention_mask": split}, split.shape).tolist() == [[True, False, False, True, False]]


def test_lengths_that_do_not_fit_are_refused():
    labels = torch.ones(1, 4, dtype=torch.long)
    for name, value in (
        ("position_ids", torch.arange(5)[None]),
        ("position_ids", torch.zeros(2, 1, 4, dtype=torch.long)),
        ("seq_idx", torch.zeros(1, 3)),
        ("attention_mask", torch.ones(1, 3, dtype=torch.long)),
    ):
        with pytest.raises(ValueError, match=f"{name} must "):
            causal_batch(labels, **{name: value})


# ---- through a model -------------------------------------------------------------------------------------------------


def by_hand(model, batch):
    """From the logits of the model as it is: the documents kept apart, the first token of each back in its place."""
    logits = model(**{key: value for key, value in batch.items() if key != "labels"}, use_cache=False).logits
    first = torch.tensor([0, 6, 9])
    context = batch["labels"].index_copy(1, first, batch["input_ids"][:, first])[:, :-1]
    segments = numbers()[:, :-1]
    return ScaleGradLoss(0.2)(logits[:, :-1], batch["labels"][:, 1:], context=context, segments=segments).item()


def flattened(**options):
    """A batch of transformers' own collator."""
    collate = transformers.DataCollatorWithFlattening(return_tensors="pt", **options)
    return dict(collate([{key: value.tolist() for key, value in row.items()} for row in rows()]))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"return_position_ids": False, "return_flash_attn_kwargs": True},
        {"return_position_ids": False, "return_seq_idx": True},
        {"return_flash_attn_kwargs": True, "return_seq_idx": True},
    ],
    ids=["position_ids", "cu_seq_lens", "seq_idx", "all"],
)
def test_transformers_own_collator(options):
    batch, model = flattened(**options), tiny.model("llama")
    expected = by_hand(model, batch)
    assert hf.attach(model, ScaleGradLoss(0.2))(**batch).loss.item() == pytest.approx(expected, abs=1e-12)


def test_packed_is_what_the_documents_are_on_their_own():
    model = attached("llama", ScaleGradLoss(0.2))
    expected = model(**tiny.padded(rows())).loss.item()
    assert model(**flattened()).loss.item() == pytest.approx(expected, abs=1e-12)
    by_mask = {**packed(rows()), "attention_mask": apart(torch.bool)}
    assert model(**by_mask).loss.item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("count", [3, 4])
def test_qwen2_vl_packed(count):
    """With images in two documents, whose positions stand still and jump."""
    model = architectures.build("Qwen2VLForConditionalGeneration")
    batch = {**packed(rows()), "position_ids": planes(count)}
    expected = by_hand(model, batch)
    assert hf.attach(model, ScaleGradLoss(0.2))(**batch).loss.item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("layer", ["numbers", "pairs"])
def test_a_mask_of_documents(layer):
    model = tiny.model("llama")
    mask = numbers() if layer == "numbers" else apart(torch.bool)
    batch = {**packed(rows()), "attention_mask": mask}
    del batch["position_ids"]
    expected = by_hand(model, batch)
    assert hf.attach(model, ScaleGradLoss(0.2))(**batch).loss.item() == pytest.approx(expected, abs=1e-12)


# ---- with few logits kept --------------------------------------------------------------------------------------------

KEEP = torch.tensor([2, 3, 4, 9, 10, 11])  # one stretch of the first document and one of the third


def shortened():
    """As trainers do that keep the logits before each target: the targets, after one that is none."""
    batch = packed(rows())
    targets = batch["labels"].roll(-1, 1)[:, KEEP]
    return {**batch, "labels": torch.nn.functional.pad(targets, (1, 0), value=-100)}


@pytest.mark.parametrize("form", ["positions", "mask", "rows"])
def test_shortened_labels_with_a_tensor(form):
    """Documents are known, and the history is that of the whole row."""
    model, last = tiny.model("llama"), torch.tensor([T - 1])
    batch, places = shortened(), torch.cat([KEEP, last])
    batch["logits_to_keep"] = {
        "positions": places,
        "mask": torch.zeros(T, dtype=torch.bool).index_fill(0, places, True),
        "rows": places[None],
    }[form]
    full = packed(rows())
    few = torch.full_like(full["labels"], -100)
    few[:, KEEP + 1] = full["labels"][:, KEEP + 1]
    logits = model(**{key: value for key, value in full.items() if key != "labels"}, use_cache=False).logits
    context = few.clone()
    context[:, 9] = full["input_ids"][:, 9]  # the third document has no masked prompt
    segments = numbers()[:, :-1]
    loss = ScaleGradLoss(0.2)(logits[:, :-1], few[:, 1:], context=context[:, :-1], segments=segments).item()
    assert hf.attach(model, ScaleGradLoss(0.2))(**batch).loss.item() == pytest.approx(loss, abs=1e-12)
    with torch.no_grad():
        assert model(**batch).logits.shape[1] == len(places)


@pytest.mark.parametrize("short", [False, True])
def test_the_last_logits(short):
    """A number: the labels of whole rows, or as many as there are logits. What came before them has been seen."""
    model, ids = tiny.model("llama"), rows()[0]["input_ids"][None]
    logits = model(input_ids=ids).logits
    labels = ids[:, -4:] if short else ids
    context = torch.cat([torch.full((1, 2), -100), ids[:, -4:]], 1) if short else ids
    targets = ids.clone()
    targets[:, :3] = -100
    expected = ScaleGradLoss(0.2)(logits[:, :-1], targets[:, 1:], context=context[:, :-1]).item()
    hf.attach(model, ScaleGradLoss(0.2))
    value = model(input_ids=ids, labels=labels, logits_to_keep=4).loss.item()
    assert value == pytest.approx(expected, abs=1e-12)


def test_shortened_labels_that_cannot_be_known_are_refused():
    model, batch = attached("llama", ScaleGradLoss(0.2)), packed(rows())
    holes = torch.tensor([1, 3, 4])
    gaps = {**batch, "labels": batch["labels"][:, holes], "logits_to_keep": holes}
    for prompt in (False, True):
        with pytest.raises(ValueError, match="labels that are as short as logits_to_keep"):
            hf.attach(model, ScaleGradLoss(0.2), prompt=prompt)(**gaps)
    with pytest.raises(ValueError, match="labels must have one entry for each of 14 inputs"):
        model(**{**batch, "labels": batch["labels"][:, :5], "logits_to_keep": KEEP})
    with pytest.raises(ValueError, match="logits_to_keep must be a number or a tensor of positions"):
        model(**{**gaps, "logits_to_keep": torch.ones(1, T, dtype=torch.bool)})
