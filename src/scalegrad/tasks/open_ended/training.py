"""Train a causal language model on text: from names and numbers (`TrainConfig`) to a finished run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from scalegrad.counts import counted
from scalegrad.data import Problems, gpt2_tokenizer
from scalegrad.data.readers import Latest, file_identity
from scalegrad.decoding import load, load_tokenizer
from scalegrad.extras import need
from scalegrad.models import base
from scalegrad.models.pretrained import check_vocabulary, load_config, start_text, weights_checksum
from scalegrad.runs import Places, Run, check_writable_folder, flat_config, same_setting
from scalegrad.runs.atomic import plain
from scalegrad.runs.progress import Progress
from scalegrad.tasks.open_ended.config import TrainConfig
from scalegrad.tasks.open_ended.data import EMBEDDED, check_sources, read_examples
from scalegrad.tasks.open_ended.examples import Examples, hold_out
from scalegrad.training import Fitted, Settings, fit

GPT2_BPE = "gpt2-bpe"  # the embedded tokenizer, for a model from scratch
# Layers, width and heads of GPT-2-shaped models: tiny has 0.8 million parameters beside its embeddings, small is
# GPT-2 itself, medium the one of the paper.
PRESETS = {"tiny": (4, 128, 4), "small": (12, 768, 12), "medium": (24, 1024, 16)}
# Where a run's config.json may name a file or folder, and the names that mean none.
PLACES: Places = {
    "model": (base.NAME, GPT2_BPE),
    "init": tuple(PRESETS),
    "data": EMBEDDED,
    "validation": (*EMBEDDED, "none"),
}

_TOKENIZERS: Latest[Any] = Latest(2)  # of the runs of a sweep in one process


def train(
    config: TrainConfig,
    out: str | Path,
    *,
    overwrite: bool = False,
    callbacks: Iterable[Any] = (),
    problems: Problems | None = None,
    progress: Progress | None = None,
    log: Callable[[str], None] | None = None,
) -> Fitted:
    """Train as `config` says into the run's folder `out`; the same call again goes on, or loads what is finished.

    `problems` says what of records that cannot be read (`read_examples`). `progress` is told what is read and prepared
    before the first step, `callbacks` (`training.Reporter`) of steps and validations. `log` gets a line each
    on the data, what was left out of it, the start symbol and the validation.
    """
    log = log or (lambda _: None)
    prepared = progress or (lambda *_: None)
    check_writable_folder(out, "out", make=False)
    check_sources(config.data)
    torch.manual_seed(config.settings.seed)  # of new weights; `fit` seeds what comes after
    prepared("preparing · reading the text", 0, 2)
    tokenizer, shape = _tokenizer_and_shape(config)
    training, validation = _data(config, tokenizer, problems, progress, log)
    if problems is not None and problems.count:
        log(f"data: {problems}")
    prepared("preparing · loading the model", 1, 2)
    model = _model(config, shape)
    prepared("preparing", 2, 2)
    record = _record(config, model, training, validation)
    run = Run.create(out, record, overwrite=overwrite, places=PLACES)
    if config.lora is not None:
        torch.manual_seed(config.settings.seed)
        model = _with_lora(model, config)
    return fit(
        model,
        config.objective,
        training,
        validation,
        run,
        config.settings,
        tokenizer=tokenizer,
        prompt=config.prompt_seen,
        callbacks=callbacks,
    )


def _tokenizer_and_shape(config: TrainConfig) -> tuple[Any, Any]:
    """The tokenizer, and the configuration of the model: what does not fit is refused before text and weights."""
    if config.init is None:
        if config.model == GPT2_BPE:
            raise ValueError(f"model: {GPT2_BPE} is a tokenizer only; with init it serves a model from scratch")
        shape = load_config(config.model, config.trust_remote_code)
        if shape.is_encoder_decoder:
            raise ValueError(f"model: {config.model} is an encoder-decoder; expected a causal language model")
        tokenizer = _tokenizer(config, shape)
    else:
        tokenizer = _tokenizer(config, None)
        shape = _new_config(config.init, tokenizer, config.trust_remote_code)
    limit = getattr(shape, "max_position_embeddings", None)
    if limit is not None and config.length > limit:
        raise ValueError(f"length is {config.length}, more than the model's {counted(limit, 'position')}")
    return tokenizer, shape


def _tokenizer(config: TrainConfig, shape: Any) -> Any:
    """The tokenizer of a model, loaded once for the runs of a sweep; nobody may change it."""
    if config.model == GPT2_BPE:
        return _TOKENIZERS.get(GPT2_BPE, _gpt2_tokenizer)
    path = Path(config.model).expanduser()
    files = tuple(map(file_identity, sorted(path.iterdir()) if path.is_dir() else [path]))
    key = (config.model, files, config.trust_remote_code, shape is None)
    return _TOKENIZERS.get(key, lambda: load_tokenizer(config.model, config.trust_remote_code, shape))


def _gpt2_tokenizer() -> Any:
    hf = need("transformers", extra="train")
    end = "<|endoftext|>"
    return hf.PreTrainedTokenizerFast(tokenizer_object=gpt2_tokenizer(), bos_token=end, eos_token=end, unk_token=end)


def _data(
    config: TrainConfig,
    tokenizer: Any,
    problems: Problems | None,
    progress: Progress | None,
    log: Callable[[str], None],
) -> tuple[Examples, Examples | None]:
    def read(sources: tuple[str, ...]) -> Examples:
        how = {"length": config.length, "fields": config.fields, "protocol": config.protocol}
        return read_examples(sources, tokenizer, **how, problems=problems, progress=progress)  # type: ignore[arg-type]

    examples = read(config.data)
    log(f"data: {examples.sentence()}")
    symbol = start_text(tokenizer, examples.start)
    log(f"start symbol: {f'{symbol} before every sequence, no target' if symbol else 'none'} (as the tokenizer does)")
    if config.validation == "none":
        return examples, None
    if config.validation is None:
        training, held = hold_out(examples)
    else:
        training, held = examples, read((config.validation,))
        log(f"validation data: {held.sentence()}")
    if config.validation_sequences is not None:
        return training, held.spread(config.validation_sequences)
    most, steps = most_validated(config.settings, len(training), training.mean_length, held.mean_length)
    if most < len(held):
        log(
            f"validation: {most:,} of {counted(len(held), 'sequence')}, evenly spread, which take no longer than the "
            f"{counted(steps, 'step')} of training before them (--validation-sequences N takes another number)"
        )
    return training, held.spread(most)


def most_validated(settings: Settings, sequences: int, length: float, validation_length: float) -> tuple[int, int]:
    """(validation sequences that take no longer than the training between two validations, its steps).

    A training pass takes at least twice as long as the forward pass it begins with, three times where all weights are
    trained. Lengths are means, in tokens. By counting, not by the clock: a resumed run must validate on the same.

    >>> most_validated(Settings(max_steps=60, batch=8), 1_000, 300, 300)
    (96, 6)
    """
    processes = _processes()
    batches = -(-sequences // settings.batch)
    steps = settings.steps_to_evaluate(settings.steps(batches, processes))
    trained = steps * settings.batch * settings.accumulation * processes * length
    return max(int(2 * trained / validation_length), 1), steps


def _processes() -> int:
    return int(os.environ.get("WORLD_SIZE", "1"))


def _model(config: TrainConfig, shape: Any) -> Any:
    """In float32 on the CPU: the trainer puts it where it belongs, and mixes precision by itself."""
    if config.init is None:
        return load(config.model, "cpu", "float32", config.trust_remote_code)[0]
    hf = need("transformers", extra="train")
    return hf.AutoModelForCausalLM.from_config(shape, trust_remote_code=config.trust_remote_code)


def _with_lora(model: Any, config: TrainConfig) -> Any:
    """The PEFT model around `model`: low-rank additions to all linear layers are trained in place of the weights."""
    peft = need("peft", extra="train")
    conv1d = any(type(module).__name__ == "Conv1D" for module in model.modules())  # GPT-2's layers, transposed
    lora = peft.LoraConfig(
        r=config.lora,
        lora_alpha=2.0 * (config.lora or 0) if config.lora_alpha is None else config.lora_alpha,
        lora_dropout=config.lora_dropout,
        target_modules="all-linear",
        fan_in_fan_out=conv1d,
        task_type="CAUSAL_LM",
    )
    return peft.get_peft_model(model, lora)


def _new_config(init: str, tokenizer: Any, trust_remote_code: bool) -> Any:
    hf = need("transformers", extra="train")
    if init in PRESETS:
        layers, width, heads = PRESETS[init]
        ids = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
        return hf.GPT2Config(vocab_size=len(tokenizer), n_layer=layers, n_embd=width, n_head=heads, **ids)
    if not Path(init).exists():
        raise FileNotFoundError(
            f"init: there is no {init}; it may be a config.json, its folder, or {', '.join(PRESETS)}"
        )
    try:
        shape = hf.AutoConfig.from_pretrained(init, trust_remote_code=trust_remote_code)
    except (OSError, ValueError) as error:
        raise ValueError(f"init: {init} is no model's configuration ({str(error).splitlines()[0]})") from None
    check_vocabulary(tokenizer, shape, f"init: {init}")
    return shape


def find_finished(config: TrainConfig, out: str | Path, *, elsewhere: bool = False) -> Run | None:
    """The finished run of `config` in `out`, found without loading its model or its data; else None.

    Where the model's folder is gone, as on another machine, or may be another's (`elsewhere`), its name has to do. A
    relative path was meant in a working folder that is not known any more, and is compared as text: `train`, which
    looks at weights and data too, takes another spelling.
    """
    if not all((Path(out) / name).is_file() for name in ("config.json", "done.json")):
        return None
    run = Run.open(out)
    told, asked = flat_config(run.config), flat_config(plain(_asked(config)))
    model = Path(str(told.get("model")))
    moved = (elsewhere or not model.exists()) and model.name == Path(asked["model"]).name
    places = {key: names for key, names in PLACES.items() if _absolute(told.get(key))}
    same = all(
        key in told and same_setting(key, told[key], value, places)
        for key, value in asked.items()
        if not (key == "model" and moved)
    )
    return run if same else None


def check_folder(config: TrainConfig, out: str | Path) -> None:
    """Refuse a folder that holds a run of another config; what only model and data tell, `train` compares."""
    if (Path(out) / "config.json").is_file():
        asked = _asked(config)
        Run.open(out).check_same(asked, PLACES, keys=[key for key in flat_config(asked) if key != "model"])


def _absolute(paths: Any) -> bool:
    return all(Path(str(path)).is_absolute() for path in (paths if isinstance(paths, list) else [paths]))


def _asked(config: TrainConfig) -> dict[str, Any]:
    """What of the run's config.json is known without looking at model and data: the fields of its `TrainConfig`."""
    options = {"objective": str(config.objective), "settings": config.settings.record(), "processes": _processes()}
    asked = {"task": "open_ended", **asdict(config), **options}
    del asked["trust_remote_code"]
    return asked


def _record(config: TrainConfig, model: Any, training: Examples, validation: Examples | None) -> dict[str, Any]:
    """What goes into the run's config.json."""
    sequences = {"train": training.about(), "validation": validation.about() if validation else None}
    weights = None if config.init else weights_checksum(model)
    return {**_asked(config), "weights": weights, "sequences": sequences}
