"""Supervised fine-tuning with TRL and ScaleGrad: packed, on completions only.

    pip install "scalegrad[trl]"
    python examples/sft.py --model gpt2 --data pairs.jsonl --out tuned

Each line of the data is a JSON object with "prompt" and "completion".
"""

import argparse

import torch
from datasets import load_dataset
from trl import SFTConfig

from scalegrad import ScaleGradLoss, sets
from scalegrad.integrations.trl import ScaleGradSFTTrainer


def main(argv: list[str] | None = None) -> dict[str, float]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="hub name or folder")
    parser.add_argument("--data", required=True, help="JSONL with prompt and completion")
    parser.add_argument("--out", required=True, help="folder for the tuned model")
    parser.add_argument("--gamma", type=float, default=0.5)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--length", type=int, default=1024, help="tokens in a packed row")
    parser.add_argument("--exempt", type=int, nargs="*", default=[], help="ids never discouraged, such as chat tags")
    args = parser.parse_args(argv)

    data = load_dataset("json", data_files=args.data, split="train").train_test_split(0.1, seed=0)
    pace = {"max_steps": args.steps, "packing": True, "max_length": args.length, "save_strategy": "no"}
    trainer = ScaleGradSFTTrainer(
        args.model,
        SFTConfig(args.out, use_cpu=not torch.cuda.is_available(), **pace),
        loss=ScaleGradLoss(args.gamma, discourage=sets.Seen(exempt=args.exempt)),
        prompt=True,  # what the prompt says counts as said
        train_dataset=data["train"],
        eval_dataset=data["test"],
    )
    trainer.train()
    trainer.save_model(args.out)
    return trainer.evaluate()


if __name__ == "__main__":
    print(main())
