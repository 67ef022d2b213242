"""The options of training, in words: `scalegrad train` has all of them, `scalegrad sweep` some."""

from __future__ import annotations

from typing import Annotated

import typer

# The groups `scalegrad train --help` and `scalegrad sweep --help` show their options in.
DATA, OPTIMISER, SAVING, MACHINE = "Data", "Optimiser", "Validation and saving", "Machine"

MODEL_HELP = "A hub name, a folder, a .gguf file, or base: the small model that is shipped."
Model = Annotated[str | None, typer.Argument(metavar="MODEL", help=MODEL_HELP)]
Data = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="DATA",
        help="Files (.txt, .jsonl, .csv), folders, hub data sets (NAME:SPLIT), or wikitext-2, which is shipped.",
    ),
]
RecipeName = Annotated[
    str | None, typer.Option("--recipe", help="paper: the paper's settings; any other option overrides its own.")
]
ObjectiveName = Annotated[
    str | None, typer.Option("--objective", help="mle, ul or sg (default); with its strength: sg=0.2, ul=1.0.")
]
Gamma = Annotated[
    str | None,
    typer.Option(help="γ of sg, in (0, 1]; smaller pushes harder. Or a schedule: linear:START:STOP:STEPS, cosine:…."),
]
Alpha = Annotated[float | None, typer.Option(help="α of ul, 0 or more; larger pushes harder.")]
Out = Annotated[str | None, typer.Option(metavar="FOLDER", help="Folder of the run (default: a new one in runs/).")]
Init = Annotated[
    str | None,
    typer.Option(help="Start from new weights, of a config.json, or tiny, small or medium; MODEL gives the tokenizer."),
]
Validation = Annotated[
    str | None,
    typer.Option(
        metavar="DATA",
        help="What to validate on, or none (default: a twentieth of DATA, held out).",
        rich_help_panel=DATA,
    ),
]
ValidationSequences = Annotated[
    int | None,
    typer.Option(
        help="Validate on at most this many sequences (default: as many as take no longer than the training between).",
        rich_help_panel=DATA,
    ),
]
Field = Annotated[
    str | None,
    typer.Option(
        help="Field of the text in .jsonl, .csv and data sets (default: continuation, completion or text).",
        rich_help_panel=DATA,
    ),
]
PromptField = Annotated[str | None, typer.Option(help="Field of the prompt (default: prompt).", rich_help_panel=DATA)]
CompletionField = Annotated[
    str | None, typer.Option(help="Field of the completion (default: completion).", rich_help_panel=DATA)
]
Protocol = Annotated[
    str | None, typer.Option(help="paper: encode texts as the paper does WikiText-103.", rich_help_panel=DATA)
]
Length = Annotated[
    int | None, typer.Option(help="Tokens in a sequence (default: 300, the paper's).", rich_help_panel=DATA)
]
Prompt = Annotated[
    bool | None,
    typer.Option("--prompt/--no-prompt", help="Count the prompt's tokens as seen, too.", rich_help_panel=DATA),
]
Steps = Annotated[
    int | None,
    typer.Option(
        "--max-steps", help="Steps to train, in place of --epochs (default: one epoch).", rich_help_panel=OPTIMISER
    ),
]
Epochs = Annotated[float | None, typer.Option(help="Passes over the data.", rich_help_panel=OPTIMISER)]
BatchSize = Annotated[
    int | None,
    typer.Option(help="Sequences in a forward pass of each process (default: 8).", rich_help_panel=OPTIMISER),
]
Accumulation = Annotated[
    int | None, typer.Option(help="Forward passes in a step (default: 1).", rich_help_panel=OPTIMISER)
]
Rate = Annotated[
    float | None,
    typer.Option("--learning-rate", "--lr", help="AdamW's learning rate (default: 3e-5).", rich_help_panel=OPTIMISER),
]
ScheduleName = Annotated[
    str | None,
    typer.Option(
        "--schedule",
        help="The learning rate over time: linear (default), cosine, constant, ….",
        rich_help_panel=OPTIMISER,
    ),
]
Warmup = Annotated[
    float | None,
    typer.Option(
        "--warmup-steps",
        help="Warm-up in steps; below 1, as a share of the run (default: 0).",
        rich_help_panel=OPTIMISER,
    ),
]
Decay = Annotated[
    float | None,
    typer.Option("--weight-decay", help="AdamW's weight decay (default: 0.01).", rich_help_panel=OPTIMISER),
]
Clip = Annotated[
    float | None,
    typer.Option(
        "--max-grad-norm", help="Clip gradients to this norm; 0: never (default: 1).", rich_help_panel=OPTIMISER
    ),
]
LoraRank = Annotated[
    int | None,
    typer.Option(
        "--lora", metavar="RANK", help="Train only LoRA additions of this rank (needs peft).", rich_help_panel=OPTIMISER
    ),
]
LoraAlpha = Annotated[
    float | None, typer.Option(help="LoRA's α, their weight (default: twice the rank).", rich_help_panel=OPTIMISER)
]
LoraDropout = Annotated[float | None, typer.Option(help="LoRA's dropout (default: 0).", rich_help_panel=OPTIMISER)]
EvaluateEvery = Annotated[
    int | None, typer.Option(help="Steps between validations (default: a tenth of the run).", rich_help_panel=SAVING)
]
EvaluationBatch = Annotated[
    int | None,
    typer.Option(help="Sequences at a time in validation (default: --batch).", rich_help_panel=SAVING),
]
SaveEvery = Annotated[
    int | None, typer.Option(help="Steps between checkpoints (default: at validations).", rich_help_panel=SAVING)
]
LogEvery = Annotated[
    int | None, typer.Option(help="Steps between lines of metrics.jsonl (default: 10).", rich_help_panel=SAVING)
]
Patience = Annotated[
    int | None,
    typer.Option(
        help="Stop after this many validations without a better one (default: never).", rich_help_panel=SAVING
    ),
]
Tracker = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="tensorboard (default), wandb, mlflow, …, or none. May be repeated.",
        rich_help_panel=SAVING,
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of the order of the data, dropout and new weights.")]
Seeds = Annotated[
    int | None,
    typer.Option(help="Train this many times, with seeds from --seed on, in FOLDER/seed-N (default: once)."),
]
Precision = Annotated[
    str | None,
    typer.Option(help="auto (default: bf16 where the GPU has it), fp32, bf16 or fp16.", rich_help_panel=MACHINE),
]
Checkpointing = Annotated[
    bool | None,
    typer.Option("--gradient-checkpointing", help="Use less memory and more time.", rich_help_panel=MACHINE),
]
Compile = Annotated[
    bool | None, typer.Option("--compile", help="Compile the model with torch.compile.", rich_help_panel=MACHINE)
]
Workers = Annotated[int | None, typer.Option(help="Processes that load data (default: 0).", rich_help_panel=MACHINE)]
Fsdp = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="JSON configuration of FSDP, as Trainer takes it.", rich_help_panel=MACHINE),
]
Deepspeed = Annotated[
    str | None, typer.Option(metavar="FILE", help="JSON configuration of DeepSpeed.", rich_help_panel=MACHINE)
]
Trust = Annotated[
    bool,
    typer.Option("--trust-remote-code", help="Execute code that comes with the model.", rich_help_panel=MACHINE),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Start anew, whatever run the folder holds.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]
