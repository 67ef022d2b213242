"""Tiny random models of many architectures: a class, a configuration class, and what is special about it."""

import torch
import transformers

VOCAB = 53
BALANCE, Z = 2**-4, 2**-5  # what router losses are multiplied by: exact in float32, as these losses are
SMALL = {  # by every name that configurations have for it; each gets those that it knows
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "embed_dim", "dim", "embedding_size", "d_embed"), 16),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "num_layers", "n_layers", "num_decoder_layers"), 2),
    **dict.fromkeys(("encoder_layers", "decoder_layers", "num_encoder_layers"), 1),
    **dict.fromkeys(("num_attention_heads", "n_head", "num_heads", "n_heads"), 2),
    **dict.fromkeys((f"{side}_attention_heads" for side in ("encoder", "decoder")), 2),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "n_inner", "d_ff", "encoder_ffn_dim", "decoder_ffn_dim"), 24),
    **dict.fromkeys((f"{kind}_intermediate_size" for kind in ("moe", "shared_expert", "shared")), 24),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_target_positions", "max_source_positions"), 64),
    **dict.fromkeys(("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("num_key_value_heads", "n_group", "topk_group", "n_shared_experts"), 1),
    **dict.fromkeys(("head_dim", "d_kv", "v_head_dim", "q_lora_rank", "kv_lora_rank"), 8),
    **dict.fromkeys(("qk_rope_head_dim", "qk_nope_head_dim", "state_size"), 4),
    **dict.fromkeys(("router_aux_loss_coef", "aux_loss_coef"), BALANCE),
    "vocab_size": VOCAB,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
    "num_experts_per_tok": 2,
    "d_inner": 32,
    "router_z_loss_coef": Z,
    "output_router_logits": True,
    "is_decoder": True,
}
STARTS = {"decoder_start_token_id": 0}
SPARSE = {"encoder_sparse_step": 2, "decoder_sparse_step": 2, "num_sparse_encoder_layers": 1}
FALCON = {"num_kv_heads": 1, "head_dim": None}
DBRX = {
    "attn_config": {"rope_theta": 1e4, "kv_n_heads": 1, "clip_qkv": 8.0},
    "ffn_config": {"moe_num_experts": 4, "moe_top_k": 2, "ffn_hidden_size": 24, "moe_loss_weight": BALANCE},
}
LATENT = {"num_key_value_heads": 2}

# Name of the class: name of its configuration, and what is special.
CAUSAL = {
    "GPT2LMHeadModel": ("GPT2Config", {}),
    "GPTNeoXForCausalLM": ("GPTNeoXConfig", {}),
    "GPTJForCausalLM": ("GPTJConfig", {"rotary_dim": 4}),
    "OpenAIGPTLMHeadModel": ("OpenAIGPTConfig", {}),
    "CTRLLMHeadModel": ("CTRLConfig", {"dff": 24}),
    "LlamaForCausalLM": ("LlamaConfig", {}),
    "MistralForCausalLM": ("MistralConfig", {}),
    "MinistralForCausalLM": ("MinistralConfig", {}),
    "Qwen2ForCausalLM": ("Qwen2Config", {}),
    "Qwen3ForCausalLM": ("Qwen3Config", {}),
    "GemmaForCausalLM": ("GemmaConfig", {}),
    "Gemma2ForCausalLM": ("Gemma2Config", {"final_logit_softcapping": 0.1}),
    "Gemma3ForCausalLM": ("Gemma3TextConfig", {"final_logit_softcapping": 0.1}),
    "VaultGemmaForCausalLM": ("VaultGemmaConfig", {"final_logit_softcapping": 0.1}),
    "RecurrentGemmaForCausalLM": ("RecurrentGemmaConfig", {}),
    "PhiForCausalLM": ("PhiConfig", {}),
    "Phi3ForCausalLM": ("Phi3Config", {}),
    "PhimoeForCausalLM": ("PhimoeConfig", {}),
    "OPTForCausalLM": ("OPTConfig", {"word_embed_proj_dim": 8}),
    "FalconForCausalLM": ("FalconConfig", FALCON),
    "BloomForCausalLM": ("BloomConfig", {}),
    "MptForCausalLM": ("MptConfig", {}),
    "CohereForCausalLM": ("CohereConfig", {}),
    "Cohere2ForCausalLM": ("Cohere2Config", {}),
    "GraniteForCausalLM": ("GraniteConfig", {"logits_scaling": 8.0}),
    "GraniteMoeForCausalLM": ("GraniteMoeConfig", {"logits_scaling": 8.0}),
    "GraniteMoeSharedForCausalLM": ("GraniteMoeSharedConfig", {}),
    "MixtralForCausalLM": ("MixtralConfig", {}),
    "MiniMaxForCausalLM": ("MiniMaxConfig", {}),
    "Qwen2MoeForCausalLM": ("Qwen2MoeConfig", {}),
    "Qwen3MoeForCausalLM": ("Qwen3MoeConfig", {}),
    "OlmoForCausalLM": ("OlmoConfig", {}),
    "Olmo2ForCausalLM": ("Olmo2Config", {}),
    "Olmo3ForCausalLM": ("Olmo3Config", {}),
    "OlmoeForCausalLM": ("OlmoeConfig", {}),
    "FlexOlmoForCausalLM": ("FlexOlmoConfig", {}),
    "DbrxForCausalLM": ("DbrxConfig", DBRX),
    "JetMoeForCausalLM": ("JetMoeConfig", {"kv_channels": 8}),
    "GptOssForCausalLM": ("GptOssConfig", {}),
    "DeepseekV2ForCausalLM": ("DeepseekV2Config", LATENT),
    "DeepseekV3ForCausalLM": ("DeepseekV3Config", {**LATENT, "head_dim": 4}),
    "Dots1ForCausalLM": ("Dots1Config", {}),
    "Ernie4_5ForCausalLM": ("Ernie4_5Config", {}),
    "Ernie4_5_MoeForCausalLM": ("Ernie4_5_MoeConfig", {}),
    "Glm4MoeForCausalLM": ("Glm4MoeConfig", {}),
    "GlmForCausalLM": ("GlmConfig", {}),
    "Glm4ForCausalLM": ("Glm4Config", {}),
    "MambaForCausalLM": ("MambaConfig", {}),
    "FalconMambaForCausalLM": ("FalconMambaConfig", {}),
    "RwkvForCausalLM": ("RwkvConfig", {}),
    "Lfm2ForCausalLM": ("Lfm2Config", {}),
    "StableLmForCausalLM": ("StableLmConfig", {}),
    "Starcoder2ForCausalLM": ("Starcoder2Config", {}),
    "PersimmonForCausalLM": ("PersimmonConfig", {}),
    "NemotronForCausalLM": ("NemotronConfig", {}),
    "HeliumForCausalLM": ("HeliumConfig", {}),
    "SmolLM3ForCausalLM": ("SmolLM3Config", {}),
    "Exaone4ForCausalLM": ("Exaone4Config", {}),
    "ApertusForCausalLM": ("ApertusConfig", {}),
    "ArceeForCausalLM": ("ArceeConfig", {}),
    "MiniCPM3ForCausalLM": ("MiniCPM3Config", LATENT),
    "NanoChatForCausalLM": ("NanoChatConfig", {}),
    "SeedOssForCausalLM": ("SeedOssConfig", {}),
    "BioGptForCausalLM": ("BioGptConfig", {}),
    "ModernBertDecoderForCausalLM": ("ModernBertDecoderConfig", {}),
    "BertLMHeadModel": ("BertConfig", {}),
    "RobertaForCausalLM": ("RobertaConfig", {}),
}
ENCODER_DECODERS = {
    "T5ForConditionalGeneration": ("T5Config", STARTS),
    "MT5ForConditionalGeneration": ("MT5Config", STARTS),
    "UMT5ForConditionalGeneration": ("UMT5Config", STARTS),
    "LongT5ForConditionalGeneration": ("LongT5Config", STARTS),
    "SwitchTransformersForConditionalGeneration": ("SwitchTransformersConfig", {**STARTS, **SPARSE}),
    "NllbMoeForConditionalGeneration": ("NllbMoeConfig", {**SPARSE, "encoder_layers": 2, "decoder_layers": 2}),
    "BartForConditionalGeneration": ("BartConfig", {}),
    "MBartForConditionalGeneration": ("MBartConfig", {}),
    "PLBartForConditionalGeneration": ("PLBartConfig", {}),
    "PegasusForConditionalGeneration": ("PegasusConfig", {}),
    "PegasusXForConditionalGeneration": ("PegasusXConfig", {}),
    "MarianMTModel": ("MarianConfig", {}),
    "M2M100ForConditionalGeneration": ("M2M100Config", {}),
    "BlenderbotForConditionalGeneration": ("BlenderbotConfig", {}),
    "BlenderbotSmallForConditionalGeneration": ("BlenderbotSmallConfig", {}),
    "SeamlessM4TForTextToText": ("SeamlessM4TConfig", {}),
    "WhisperForConditionalGeneration": ("WhisperConfig", {"num_mel_bins": 4, "max_source_positions": 6}),
    "Speech2TextForConditionalGeneration": ("Speech2TextConfig", {"input_feat_per_channel": 4, "conv_channels": 8}),
    "Pix2StructForConditionalGeneration": ("Pix2StructConfig", {}),
    "EncoderDecoderModel": ("EncoderDecoderConfig", {}),
    "LlavaForConditionalGeneration": ("LlavaConfig", {}),
    "Qwen2VLForConditionalGeneration": ("Qwen2VLConfig", {}),
}
UNSHIFTED = {  # their own loss does not shift the labels
    "BertForMaskedLM": ("BertConfig", {"is_decoder": False}),
    "RobertaForMaskedLM": ("RobertaConfig", {"is_decoder": False}),
    "BartForCausalLM": ("BartConfig", {}),
    "PegasusForCausalLM": ("PegasusConfig", {}),
    "XLNetLMHeadModel": ("XLNetConfig", {"max_position_embeddings": None}),
}
MODELS = {**CAUSAL, **ENCODER_DECODERS, **UNSHIFTED}


def small(name, **changes):
    """A configuration of the class of that name."""
    kind = getattr(transformers, name)
    default = kind()
    settings = {**{key: value for key, value in SMALL.items() if hasattr(default, key)}, **changes}
    return kind(**{key: value for key, value in settings.items() if value is not None})


def _config(name, changes):
    if name == "Pix2StructConfig":
        text = {"hidden_size": 16, "d_kv": 8, "d_ff": 24, "num_layers": 1, "num_heads": 2, "vocab_size": VOCAB}
        vision = {"hidden_size": 16, "patch_embed_hidden_size": 12, "d_ff": 24, "d_kv": 8, "num_hidden_layers": 1}
        start = {"decoder_start_token_id": 0, "pad_token_id": 0}
        vision |= {"num_attention_heads": 2, "seq_len": 8}
        return transformers.Pix2StructConfig(text_config={**text, **start}, vision_config=vision, **start)
    if name == "EncoderDecoderConfig":
        decoder = small("BertConfig", add_cross_attention=True)
        both = transformers.EncoderDecoderConfig.from_encoder_decoder_configs(
            small("BertConfig", is_decoder=False), decoder
        )
        both.decoder_start_token_id, both.pad_token_id = 1, 0
        return both
    if name == "LlavaConfig":
        vision = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2}
        vision |= {"image_size": 4, "patch_size": 2, "projection_dim": 16}
        return transformers.LlavaConfig(
            vision_config=transformers.CLIPVisionConfig(**vision),
            text_config=small("LlamaConfig"),
            image_token_index=50,
            vision_feature_layer=-1,
        )
    if name == "Qwen2VLConfig":
        text = {key: SMALL[key] for key in ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers")}
        text |= {"num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64}
        text |= {"rope_parameters": {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 1e4}}
        text |= {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
        vision = {"depth": 1, "embed_dim": 16, "hidden_size": 16, "num_heads": 2, "patch_size": 2, "mlp_ratio": 1}
        ids = {"image_token_id": 50, "video_token_id": 51, "vision_start_token_id": 48, "vision_end_token_id": 49}
        return transformers.Qwen2VLConfig(text_config=text, vision_config=vision, **ids)
    return small(name, **changes)


def build(name, **changes):
    """The model in float64 with random weights, without dropout; buffers such as a bias on the logits random too."""
    config_name, special = MODELS[name]
    torch.manual_seed(0)
    config = _config(config_name, {**special, **changes})
    config._experts_implementation = "eager"  # the others have no float64
    model = getattr(transformers, name)(config).double().eval()
    if getattr(model, "final_logits_bias", None) is not None:
        model.final_logits_bias.normal_()
    return model


def inputs(name):
    """Two rows, the second padded; causal ones begin with a prompt that is no target."""
    source = torch.Generator().manual_seed(1)
    ids = torch.randint(3, 15, (2, 9), generator=source)
    labels = ids.clone()
    labels[0, :2] = -100
    mask = torch.ones_like(ids)
    if name not in ENCODER_DECODERS:
        ids[1, 7:], labels[1, 7:], mask[1, 7:] = 0, -100, 0
        return {"input_ids": ids, "attention_mask": mask, "labels": labels}
    labels = torch.randint(3, 15, (2, 6), generator=source)
    labels[1, 4:] = -100
    batch = {"labels": labels}
    if name.startswith("Whisper"):
        batch["input_features"] = torch.randn(2, 4, 12, generator=source, dtype=torch.float64)
    elif name.startswith("Speech2Text"):
        batch["input_features"] = torch.randn(2, 12, 4, generator=source, dtype=torch.float64)
    elif name.startswith("Pix2Struct"):
        places = torch.arange(1, 7).expand(2, 6)[..., None]
        patches = torch.randn(2, 6, 12, generator=source)
        batch["flattened_patches"] = torch.cat([places, places, patches], 2).double()
    elif name.startswith("Llava"):
        ids[:, 1:5] = 50
        pixels = torch.randn(2, 3, 4, 4, generator=source, dtype=torch.float64)
        batch = {"input_ids": ids, "pixel_values": pixels, "labels": torch.where(ids == 50, -100, ids)}
    elif name.startswith("Qwen2VL"):
        ids[:, 1], ids[:, 2], ids[:, 3] = 48, 50, 49
        grid = torch.tensor([[1, 2, 2]] * 2)
        pixels = torch.randn(8, 3 * 2 * 2 * 2, generator=source, dtype=torch.float64)
        batch = {"input_ids": ids, "pixel_values": pixels, "image_grid_thw": grid, "labels": ids.clone()}
        batch["mm_token_type_ids"] = (ids == 50).long()
        batch["labels"][:, :4] = -100
    else:
        batch["input_ids"] = ids
    if "router" in name.lower() or name.startswith(("Switch", "Nllb")):
        batch["output_router_logits"] = True
    return batch
