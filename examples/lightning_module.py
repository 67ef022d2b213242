"""ScaleGrad in a Lightning module: training the objective, validating the plain −log p.

pip install "scalegrad[hf]" lightning
python examples/lightning_module.py --model gpt2 --text book.txt --out tuned
"""

import argparse
from pathlib import Path

import lightning
import torch
from torch import Tensor
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer

from scalegrad import ScaleGradLoss
from scalegrad.integrations import hf


class LanguageModel(lightning.LightningModule):
    def __init__(self, name: str, gamma: float) -> None:
        super().__init__()
        self.model = hf.attach(AutoModelForCausalLM.from_pretrained(name), ScaleGradLoss(gamma))

    def training_step(self, batch: Tensor, index: int) -> Tensor:
        loss = self.model(input_ids=batch, labels=batch).loss  # gradients are on: the objective
        self.log("nll", hf.last_parts(self.model).nll)
        return loss

    def validation_step(self, batch: Tensor, index: int) -> None:
        self.log("val_nll", self.model(input_ids=batch, labels=batch).loss)  # gradients are off: −log p

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=2e-5)


def main(argv: list[str] | None = None) -> dict[str, float]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="hub name or folder")
    parser.add_argument("--text", type=Path, required=True, help="a file to learn from; its last tenth is held out")
    parser.add_argument("--out", type=Path, required=True, help="folder for the tuned model")
    parser.add_argument("--gamma", type=float, default=0.2)
    parser.add_argument("--length", type=int, default=300, help="tokens in a sequence")
    parser.add_argument("--steps", type=int, default=500)
    args = parser.parse_args(argv)

    tokenizer = AutoTokenizer.from_pretrained(args.model)
    ids = torch.tensor(tokenizer(args.text.read_text())["input_ids"])
    rows = ids[: len(ids) // args.length * args.length].view(-1, args.length)
    held_out = max(1, len(rows) // 10)
    module = LanguageModel(args.model, args.gamma)
    trainer = lightning.Trainer(max_steps=args.steps, logger=False, enable_checkpointing=False)
    trainer.fit(module, DataLoader(rows[:-held_out], batch_size=4))
    module.model.save_pretrained(args.out)
    tokenizer.save_pretrained(args.out)
    return dict(trainer.validate(module, DataLoader(rows[-held_out:], batch_size=4))[0])


if __name__ == "__main__":
    print(main())
