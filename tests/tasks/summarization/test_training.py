"""Both stages end to end: stopped and resumed to the same weights, twenty pairs learned by heart, other models too."""

import json
import random
from dataclasses import replace

import pytest
import torch

from scalegrad import ScaleGradLoss
from scalegrad.data.pairs import Pair
from scalegrad.integrations import hf
from scalegrad.runs import Run
from scalegrad.tasks.summarization.bertsum import BertSum, load_bert, load_bert_tokenizer
from scalegrad.tasks.summarization.config import Evaluation, Task
from scalegrad.tasks.summarization.evaluation import evaluate_run
from scalegrad.tasks.summarization.formats import BertSumFormat, format_for
from scalegrad.tasks.summarization.models import load_summarizer
from scalegrad.tasks.summarization.noam import Noam
from scalegrad.tasks.summarization.recipes import RECIPES, Recipe, paper
from scalegrad.tasks.summarization.training import selector_examples, train
from scalegrad.tasks.summarization.writing import summarize
from scalegrad.training import Settings
from tests.tiny_bert import WORDS, save_tiny_bert, tiny_tokenizer

QUIET = {"tracker": (), "weight_decay": 0.0, "max_grad_norm": 0.0, "dtype": "float32"}
RECIPE = Recipe(
    selector=Settings(max_steps=4, batch=4, evaluate_every=2, **QUIET),
    writer=Settings(max_steps=6, accumulation=2, evaluate_every=2, **QUIET),
    selector_rate=Noam(0.01, 2),
    encoder=Noam(0.01, 2),
    decoder=Noam(0.05, 2),
    tokens=40,
    label_smoothing=0.1,
    decoder_shape={"decoder_layers": 1, "decoder_inner": 32},
    new_tokens=8,
)


def made_pairs(count, seed=0):
    """Articles of two sentences of known words, each with a summary that no rule could guess."""
    dice = random.Random(seed)
    words = [word for word in WORDS if word.isalpha()]

    def line(least, most):
        return " ".join(dice.choice(words) for _ in range(dice.randint(least, most)))

    return [Pair(str(i), (line(4, 8), line(4, 8)), (line(4, 7),)) for i in range(count)]


def save_pairs(folder, **splits):
    folder.mkdir(exist_ok=True)
    for split, pairs in splits.items():
        rows = [{"id": p.id, "source": list(p.source), "references": list(p.references)} for p in pairs]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(folder)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    return save_pairs(folder, train=made_pairs(12), validation=made_pairs(4, 1), test=made_pairs(4, 2))


def weights(run):
    return load_summarizer(str(run.path), "cpu")[0].state_dict()


class StopAt:
    """A Trainer callback that ends the process's work after a step, as a kill would."""

    def __new__(cls, step):
        from transformers import TrainerCallback

        class Stop(TrainerCallback):
            def on_step_end(self, args, state, control, **_):
                if state.global_step == step:
                    raise KeyboardInterrupt

        return Stop()


def test_stopped_in_either_stage_it_ends_with_the_same_weights(bert_folder, data, tmp_path):
    task = Task(str(bert_folder), data=data, recipe=RECIPE)
    (whole,) = train(task, ["sg=0.8"], tmp_path / "whole")
    stopped = tmp_path / "stopped"
    for stage, step in (("selector", 3), ("sg=0.8", 5)):
        stops = {stage: [StopAt(step)]}
        with pytest.raises(KeyboardInterrupt):
            train(task, ["sg=0.8"], stopped, callbacks=lambda name, stops=stops: stops.get(name, []))
    (resumed,) = train(task, ["sg=0.8"], stopped)
    assert (resumed.steps, resumed.selected_step) == (whole.steps, whole.selected_step) == (6, whole.selected_step)
    assert resumed.validation_nll == whole.validation_nll
    first, second = weights(whole.run), weights(resumed.run)
    assert all(torch.equal(first[name], second[name]) for name in first)
    kept = ("step", "nll", "validation_nll", "seen_mass")
    logs = [[{key: row.get(key) for key in kept} for row in one.run.metrics()] for one in (whole, resumed)]
    assert logs[0] == logs[1]
    # The same call again trains nothing; another objective takes stage 1 as it is.
    before = (stopped / "selector" / "done.json").stat().st_mtime_ns
    again, other = train(task, ["sg=0.8", "ul=0.5"], stopped)
    assert again.validation_nll == whole.validation_nll
    assert other.run.config["objective"] == "ul=0.5"
    assert (stopped / "selector" / "done.json").stat().st_mtime_ns == before


def test_stage_two_starts_from_stage_ones_encoder(bert_folder, data, tmp_path):
    recipe = replace(RECIPE, writer=replace(RECIPE.writer, max_steps=1, evaluate_every=1), encoder=Noam(1e-12, 1))
    (fitted,) = train(Task(str(bert_folder), data=data, recipe=recipe), ["mle"], tmp_path)
    taught = load_bert(tmp_path / "selector" / "model").state_dict()
    given = load_bert(bert_folder).state_dict()
    ours = fitted.model.bert.state_dict()
    assert all(torch.allclose(ours[name], taught[name], atol=1e-6) for name in taught)
    assert not torch.allclose(
        taught["encoder.layer.0.output.dense.weight"], given["encoder.layer.0.output.dense.weight"]
    )


def test_another_run_in_the_folder_is_refused(bert_folder, data, tmp_path):
    train(Task(str(bert_folder), data=data, recipe=RECIPE), ["mle"], tmp_path)
    other = Task(str(bert_folder), data=data, recipe=replace(RECIPE, label_smoothing=0.0))
    with pytest.raises(ValueError, match=r"its recipe\.label_smoothing is 0\.1, not 0\.0"):
        train(other, ["mle"], tmp_path)
    with pytest.raises(ValueError, match="at least one objective"):
        train(other, [], tmp_path)


def test_twenty_pairs_are_learned_by_heart(tmp_path):
    """A tiny BertSum writes each of its twenty summaries exactly, greedily and with the paper's beam."""
    pairs = made_pairs(20, seed=5)
    bert = save_tiny_bert(tmp_path / "bert", width=64, dropout=0.0)
    recipe = Recipe(
        writer=Settings(max_steps=110, batch=20, evaluate_every=110, **QUIET),
        encoder=Noam(0.004, 20),
        decoder=Noam(0.02, 20),
        decoder_shape={"decoder_layers": 2, "decoder_inner": 128, "decoder_dropout": 0.0},
    )
    data = save_pairs(tmp_path / "data", train=pairs, validation=pairs)
    (fitted,) = train(Task(str(bert), data=data, recipe=recipe), ["sg=0.8"], tmp_path / "out")
    model, tokenizer = load_summarizer(str(fitted.run.path), "cpu")
    form = format_for(model, tokenizer)
    expected = [pair.references[0] for pair in pairs]
    assert summarize(model, form, pairs, "greedy", new_tokens=20) == expected
    assert summarize(model, form, pairs, "beam=5,gnmt=1.0", new_tokens=20, batch=7) == expected


def test_label_smoothing_under_scalegrad_through_the_model(bert_folder):
    """dL/d(bias of the output layer) is Σ over targets of p̃ − q, divided by their number; p̃ and q from the formula."""
    tokenizer = load_bert_tokenizer(bert_folder)
    torch.manual_seed(3)
    model = BertSum.from_bert(load_bert(bert_folder), tokenizer, decoder_layers=1, decoder_inner=16).double().eval()
    gamma, smoothing = 0.8, 0.1
    inputs = {"input_ids": torch.tensor([[2, 7, 8, 3], [2, 9, 3, 0]])}
    inputs["attention_mask"] = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]])
    labels = torch.tensor([[7, 8, 7, 3], [9, 9, 3, -100]])
    with torch.no_grad():
        logits = model(**inputs, labels=labels).logits
    vocabulary = logits.shape[-1]
    expected, count = torch.zeros(vocabulary, dtype=torch.double), 0
    for row, targets in enumerate(labels.tolist()):
        for step, target in enumerate(targets):
            if target < 0:
                continue
            seen = set(targets[:step])
            scaled = torch.softmax(logits[row, step], dim=-1)
            scaled = torch.stack([p if v in seen else gamma * p for v, p in enumerate(scaled)])
            wanted = torch.full((vocabulary,), smoothing / vocabulary, dtype=torch.double)
            wanted[target] += 1 - smoothing
            expected += scaled / scaled.sum() - wanted
            count += 1
    hf.attach(model, ScaleGradLoss(gamma, label_smoothing=smoothing))
    model.train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    model.decoder.dropout = 0.0
    for layer in model.decoder.layers:
        layer.dropout = layer.self_attn.dropout = layer.encoder_attn.dropout = 0.0
    for layer in model.bert.encoder.layer:
        layer.attention.self.dropout.p = 0.0
    model(**inputs, labels=labels).loss.backward()
    assert torch.allclose(model.lm_head.bias.grad, expected / count, atol=1e-6)


def test_selector_labels_are_the_oracles(bert_folder):
    form = BertSumFormat(load_bert_tokenizer(bert_folder), source_tokens=13)
    pair = Pair("1", ("the cat sat .", "a dog ran .", "it was red ."), ("a dog ran\nit was red",))
    (example,) = selector_examples([pair], form)
    assert example["labels"] == [0, 1]  # the third sentence, which the oracle takes too, is out of reach
    assert example["sentence_positions"] == [0, 6]


def save_bart(folder):
    from transformers import BartConfig, BartForConditionalGeneration

    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"eos_token": "[SEP]", "bos_token": "[CLS]"})
    shape = {"encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "d_model": 16}
    shape |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "max_position_embeddings": 64}
    end = tokenizer.eos_token_id
    special = {"pad_token_id": 0, "eos_token_id": end, "decoder_start_token_id": end, "forced_eos_token_id": None}
    model = BartForConditionalGeneration(BartConfig(vocab_size=len(tokenizer), bos_token_id=2, **shape, **special))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def save_gpt2(folder, end=3, **shape):
    from transformers import GPT2Config, GPT2LMHeadModel

    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"eos_token": "[SEP]"})
    shape = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 64, **shape}
    config = GPT2Config(vocab_size=len(tokenizer), eos_token_id=end, bos_token_id=None, **shape)
    GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


@pytest.mark.parametrize(("save", "prompt"), [(save_bart, None), (save_gpt2, "{article} show :")])
def test_any_encoder_decoder_and_any_causal_model(save, prompt, data, tmp_path):
    """Two steps, an evaluation with β chosen and a stochastic decoding; the source counts as seen only where asked."""
    torch.manual_seed(0)
    save(tmp_path / "model")
    recipe = Recipe(writer=Settings(max_steps=2, batch=4, evaluate_every=1, **QUIET), target_tokens=12)
    task = Task(str(tmp_path / "model"), data=data, recipe=recipe, template=prompt)
    (fitted,) = train(task, ["sg=0.5"], tmp_path / "out")
    how = Evaluation(betas=(0.0, 1.0), strategies=("top_k=40",), new_tokens=6, mover=False)
    found = evaluate_run(
        Run.open(tmp_path / "out" / "sg=0.5"), "made", task.pairs("validation"), task.pairs("test"), how
    )
    assert set(found["length_normalisation"]["validation_scores"]) == {"0.0", "1.0"}
    assert list(found["completion"]) == ["beam", "top_k=40"]
    assert found["completion"]["beam"]["n_texts"] == 4
    texts = fitted.run.load("samples/made.beam.jsonl")
    assert [text["id"] for text in texts] == ["0", "1", "2", "3"]
    (asked,) = train(replace(task, source_seen=True), ["sg=0.5"], tmp_path / "asked")
    plain, seen = (one.run.metrics()[0]["seen_mass"] for one in (fitted, asked))
    assert seen > plain + 0.05


def test_a_causal_model_stops_where_its_summaries_end(tmp_path):
    """Its checkpoint names another end symbol than its tokenizer, which the summaries are taught with."""
    torch.manual_seed(0)
    still = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    save_gpt2(tmp_path / "model", end=2, n_embd=64, n_layer=2, **still)
    pairs = made_pairs(8, seed=5)
    data = save_pairs(tmp_path / "data", train=pairs, validation=pairs)
    settings = Settings(max_steps=80, batch=8, evaluate_every=80, learning_rate=5e-3, **QUIET)
    recipe = Recipe(writer=settings, target_tokens=12)
    task = Task(str(tmp_path / "model"), data=data, recipe=recipe, template="{article} show :")
    (fitted,) = train(task, ["mle"], tmp_path / "out")
    model, tokenizer = load_summarizer(str(fitted.run.path), "cpu")
    assert model.generation_config.eos_token_id == [2, tokenizer.eos_token_id]
    form = format_for(model, tokenizer, target_tokens=12, template="{article} show :")
    written = summarize(model, form, pairs, "greedy", new_tokens=20)
    assert written == [pair.references[0] for pair in pairs]


def test_limits_of_a_task(data):
    task = Task("minilm", data=data, recipe=RECIPE, limit=8)
    assert [len(task.pairs(split)) for split in ("train", "validation", "test")] == [8, 2, 2]


def test_the_papers_recipe():
    recipe = paper()
    assert (recipe.encoder, recipe.decoder) == (Noam(0.002, 20_000), Noam(0.2, 10_000))
    assert (recipe.tokens, recipe.writer.accumulation, recipe.label_smoothing) == (140, 5, 0.1)
    assert (recipe.target_tokens, recipe.decoder_shape) == (140, {})
    assert all(make(3).writer.seed == 3 for make in RECIPES.values())
