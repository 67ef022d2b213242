"""Fine-tune a causal language model with ScaleGrad in Hugging Face's Trainer: one line more than without.

    pip install "scalegrad[hf]" datasets
    python examples/trainer.py --model gpt2 --text book.txt --out tuned

The model is then a plain one: `AutoModelForCausalLM.from_pretrained("tuned")`.
"""

import argparse
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments, default_data_collator

from scalegrad import ScaleGradLoss
from scalegrad.integrations import hf


def main(argv: list[str] | None = None) -> dict[str, float]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="hub name or folder")
    parser.add_argument("--text", type=Path, required=True, help="a file to learn from; its last tenth is held out")
    parser.add_argument("--out", required=True, help="folder for the tuned model")
    parser.add_argument("--gamma", type=float, default=0.2)
    parser.add_argument("--length", type=int, default=300, help="tokens in a sequence")
    parser.add_argument("--steps", type=int, default=500)
    args = parser.parse_args(argv)

    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = AutoModelForCausalLM.from_pretrained(args.model)
    ids = tokenizer(args.text.read_text(), return_attention_mask=False)["input_ids"]
    rows = [ids[i : i + args.length] for i in range(0, len(ids) - args.length + 1, args.length)]
    data = [{"input_ids": row, "labels": row} for row in rows]
    held_out = max(1, len(data) // 10)

    hf.attach(model, ScaleGradLoss(args.gamma))  # the one line

    pace = {"max_steps": args.steps, "per_device_train_batch_size": 4, "save_strategy": "no"}
    trainer = Trainer(
        model,
        TrainingArguments(args.out, use_cpu=not torch.cuda.is_available(), **pace),
        train_dataset=data[:-held_out],
        eval_dataset=data[-held_out:],
        data_collator=default_data_collator,
    )
    trainer.train()
    figures = trainer.evaluate()  # eval_loss is the plain −log p: its exp is the perplexity
    trainer.save_model(args.out)
    tokenizer.save_pretrained(args.out)
    return figures


if __name__ == "__main__":
    print(main())
