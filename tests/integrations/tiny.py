"""Tiny random models of every shape, and batches for them."""

import torch
import transformers as hf
from tokenizers import Tokenizer, models, pre_tokenizers

VOCAB = 53
WIDTH = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
COMMON = {"vocab_size": VOCAB, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
LLAMA = {**COMMON, **WIDTH, "intermediate_size": 24, "max_position_embeddings": 64}
BERT = {**WIDTH, "vocab_size": VOCAB, "intermediate_size": 24, "max_position_embeddings": 64, "num_hidden_layers": 1}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def gpt2(**changes):
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64}
    still = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    return hf.GPT2LMHeadModel(hf.GPT2Config(**{**COMMON, **sizes, **still, **changes}))


def llama(**changes):
    return hf.LlamaForCausalLM(hf.LlamaConfig(**{**LLAMA, "num_key_value_heads": 1, **changes}))


def opt():
    sizes = {"ffn_dim": 24, "max_position_embeddings": 64, "word_embed_proj_dim": 8, "dropout": 0.0}
    return hf.OPTForCausalLM(hf.OPTConfig(**{**COMMON, **WIDTH, **sizes}))


def bart():
    """With a bias on the logits, which real checkpoints may have."""
    layers = {f"{side}_layers": 1 for side in ("encoder", "decoder")}
    heads = {f"{side}_attention_heads": 2 for side in ("encoder", "decoder")}
    wide = {f"{side}_ffn_dim": 24 for side in ("encoder", "decoder")}
    still = {"dropout": 0.0, "decoder_start_token_id": 2, "forced_eos_token_id": 2, "max_position_embeddings": 64}
    model = hf.BartForConditionalGeneration(
        hf.BartConfig(**{**COMMON, **layers, **heads, **wide, **still, "d_model": 16})
    )
    model.final_logits_bias.normal_()
    return model


def t5(**changes):
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 1, "num_heads": 2, "dropout_rate": 0.0}
    config = hf.T5Config(**{**COMMON, **sizes, "decoder_start_token_id": 0, **changes})
    return hf.T5ForConditionalGeneration(config)


def bert2bert():
    """The decoder's output layer has a bias of its own."""
    encoder = hf.BertConfig(**BERT, **NO_DROPOUT)
    decoder = hf.BertConfig(**BERT, **NO_DROPOUT, is_decoder=True, add_cross_attention=True)
    config = hf.EncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    model = hf.EncoderDecoderModel(config)
    model.config.decoder_start_token_id, model.config.pad_token_id = 1, 0
    torch.nn.init.normal_(model.decoder.cls.predictions.bias)
    return model


def gemma2():
    config = hf.Gemma2Config(**{**LLAMA, "num_key_value_heads": 1, "head_dim": 8, "final_logit_softcapping": 0.1})
    return hf.Gemma2ForCausalLM(config)


def cohere():
    return hf.CohereForCausalLM(hf.CohereConfig(**{**LLAMA, "logit_scale": 0.0625}))


def granite():
    return hf.GraniteForCausalLM(hf.GraniteConfig(**{**LLAMA, "logits_scaling": 8.0}))


def mixtral():
    sizes = {"num_key_value_heads": 1, "num_local_experts": 4, "output_router_logits": True}
    return hf.MixtralForCausalLM(hf.MixtralConfig(**{**LLAMA, **sizes}))


MODELS = {f.__name__: f for f in (gpt2, llama, opt, bart, t5, bert2bert, gemma2, cohere, granite, mixtral)}
FOUR = ("gpt2", "llama", "bart", "t5")
CAUSAL = ("gpt2", "llama")


def model(name, seed=0, dtype=torch.float64, **changes):
    """One of MODELS with random weights, training; float64, so that equal means equal."""
    torch.manual_seed(seed)
    return MODELS[name](**changes).to(dtype).train()


def examples(name, count=8, seed=1):
    """A data set of different lengths with repeated tokens; causal ones begin with a prompt that is no target."""
    made = []
    source = torch.Generator().manual_seed(seed)
    for i in range(count):
        ids = torch.randint(3, 15, (6 + i % 5,), generator=source)
        if name in ("gpt2", "llama", "opt", "gemma2", "cohere", "granite", "mixtral"):
            labels = ids.clone()
            labels[: i % 3] = -100
            made.append({"input_ids": ids, "labels": labels})
        else:
            labels = torch.randint(3, 15, (4 + i % 4,), generator=source)
            made.append({"input_ids": ids, "labels": labels})
    return made


def padded(rows):
    """A batch: ids padded with 0, labels with −100."""

    def pad(key, value):
        return torch.nn.utils.rnn.pad_sequence([row[key] for row in rows], batch_first=True, padding_value=value)

    mask = [torch.ones_like(row["input_ids"]) for row in rows]
    attention = torch.nn.utils.rnn.pad_sequence(mask, batch_first=True)
    return {"input_ids": pad("input_ids", 0), "attention_mask": attention, "labels": pad("labels", -100)}


def gradients(model):
    """{name: gradient}, and none left behind."""
    found = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad(set_to_none=True)
    return found


def same(left, right, tolerance=1e-12):
    """Two dictionaries of tensors: the same names, and values that differ by no more."""
    assert left.keys() == right.keys()
    worst = max(float((left[name].double() - right[name].double()).abs().max()) for name in left)
    assert worst <= tolerance, worst


WORDS = [f"w{i}" for i in range(VOCAB - 3)]


def tokenizer():
    """A word a token, for every model here: word i has the id i + 3."""
    vocabulary = {word: i for i, word in enumerate(["<pad>", "<s>", "</s>", *WORDS])}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="<pad>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return hf.PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="</s>")
