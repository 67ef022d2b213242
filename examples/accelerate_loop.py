"""A training loop of one's own with Accelerate and ScaleGrad; `accelerate launch` runs it on any number of GPUs.

pip install "scalegrad[hf]"
accelerate launch examples/accelerate_loop.py --model gpt2 --text book.txt --out tuned
"""

import argparse
from pathlib import Path

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer

from scalegrad import ScaleGradLoss
from scalegrad.gamma import Linear
from scalegrad.integrations import hf


def main(argv: list[str] | None = None) -> list[float]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="hub name or folder")
    parser.add_argument("--text", type=Path, required=True, help="a file to learn from")
    parser.add_argument("--out", type=Path, required=True, help="folder for the tuned model")
    parser.add_argument("--length", type=int, default=300, help="tokens in a sequence")
    parser.add_argument("--accumulate", type=int, default=4, help="batches for one step")
    args = parser.parse_args(argv)

    tokenizer = AutoTokenizer.from_pretrained(args.model)
    ids = torch.tensor(tokenizer(args.text.read_text())["input_ids"])
    rows = ids[: len(ids) // args.length * args.length].view(-1, args.length)
    loss = ScaleGradLoss(Linear(1.0, 0.2, steps=100))  # from MLE to γ = 0.2
    model = hf.attach(AutoModelForCausalLM.from_pretrained(args.model).train(), loss)

    accelerator = Accelerator(gradient_accumulation_steps=args.accumulate)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
    model, optimizer, batches = accelerator.prepare(model, optimizer, DataLoader(rows, batch_size=2, shuffle=True))
    nll, step = [], 0
    for batch in batches:
        with accelerator.accumulate(model):
            loss.step = step  # optimiser steps so far
            # Rows are of one length, so a mean of means is exact; else give the model num_items_in_batch.
            accelerator.backward(model(input_ids=batch, labels=batch).loss)
            optimizer.step()
            optimizer.zero_grad()
        step += accelerator.sync_gradients
        nll.append(float(hf.last_parts(model).nll))  # the loss shifts with γ; this is what to watch
    model = accelerator.unwrap_model(model)
    if accelerator.is_main_process:
        model.save_pretrained(args.out)
        tokenizer.save_pretrained(args.out)
    return nll


if __name__ == "__main__":
    print(main()[-1])
