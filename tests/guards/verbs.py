"""The --json output of every verb, on small inputs that are made here, in a temporary folder."""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.tiny_bert import save_tiny_bert

WORDS = (
    "the a cat dog sat ran on mat rug slept barked and it was red blue big small we show that model is fast slow new"
)
# What depends on the machine, the moment or chance, by the name of its field.
LEFT_OUT = re.compile(
    r"(?x) .*seconds? | .*memory.* | started | command | hardware | system | versions? | git | commit | date | links"
    r" | answered_at | created | closes"
)
MOMENT = "2030-01-01T00:00:00.000000+00:00"


def environment(checkout: Path) -> dict[str, str]:
    """Variables under which Python imports this checkout, on one thread and without a network."""
    quiet = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "COLUMNS": "120"}
    return {**os.environ, **quiet, "PYTHONPATH": os.pathsep.join([str(checkout / "src"), str(checkout)])}


class Recorder:
    """Runs commands in one folder and keeps what they print."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        self.checkout, self.folder, self.records = checkout, folder, {}

    def command(self, words: str) -> list[str]:
        """`python -m …` as it is, anything else as a verb of scalegrad; TMP is the folder, ~ a space."""
        parts = [part.replace("TMP", str(self.folder)).replace("~", " ") for part in words.split()]
        return [sys.executable, *(parts[1:] if parts[0] == "python" else ["-m", "scalegrad.cli", *parts])]

    def run(self, name: str, *alternatives: str, lines: bool = False) -> Any:
        """The JSON that the first of `alternatives` prints that this checkout knows."""
        began = sum(os.times()[2:4])
        for words in alternatives:
            done = subprocess.run(
                self.command(words), cwd=self.folder, env=environment(self.checkout), capture_output=True, text=True
            )
            unknown = "Unknown command" in done.stderr or re.search(
                r"No module named '?(paper|benchmarks)", done.stderr
            )
            if not unknown and "invalid choice" not in done.stderr:
                break
        record: dict[str, Any] = {"exit": done.returncode}
        if done.returncode or lines:
            record["last words"] = self.normal((done.stderr.strip().splitlines() or [""])[-1])
        try:
            printed = [json.loads(line) for line in done.stdout.splitlines()] if lines else json.loads(done.stdout)
        except json.JSONDecodeError:
            printed = done.stdout
        record["printed"] = self.normal(printed)
        self.records[name] = record
        spent = sum(os.times()[2:4]) - began  # of a processor, by the command
        print(f"{spent:6.1f} s  {name}  {record.get('last words', '')}", file=sys.stderr, flush=True)
        return printed

    def normal(self, value: Any) -> Any:
        """Without what depends on the machine or the moment; numbers with twelve digits."""
        if isinstance(value, dict):
            return {self.normal(key): self.normal(one) for key, one in value.items() if not LEFT_OUT.fullmatch(key)}
        if isinstance(value, list):
            return [self.normal(one) for one in value]
        if isinstance(value, float):
            return float(f"{value:.12g}") if math.isfinite(value) else str(value)  # NaN is not equal to itself
        if isinstance(value, str):
            if re.fullmatch("[0-9a-f]{8}", value):  # a study's name, drawn by chance
                return "(chance)"
            return value.replace(str(self.folder), "TMP").replace(str(self.checkout), "CHECKOUT")
        return value

    def keep_lines(self, name: str, file: str) -> None:
        """What a command wrote to a .jsonl file."""
        texts = (self.folder / file).read_text().splitlines() if (self.folder / file).exists() else None
        self.records[name] = self.normal([json.loads(line) for line in texts] if texts else texts)


def prose(seed: int, sentences: int) -> str:
    chance = random.Random(seed)
    made = (" ".join(chance.choices(WORDS.split(), k=chance.randint(4, 14))) for _ in range(sentences))
    return " ".join(f"{sentence} ." for sentence in made)


def make_inputs(folder: Path) -> None:
    """Models with random weights, texts, pictures and features."""
    import numpy as np
    import tokenizers as tk
    import torch
    import transformers as hf
    from PIL import Image

    torch.set_num_threads(1)
    torch.manual_seed(0)
    alphabet = sorted(tk.pre_tokenizers.ByteLevel.alphabet())
    letters = tk.Tokenizer(tk.models.BPE({"<e>": 0, **{letter: i for i, letter in enumerate(alphabet, 1)}}, []))
    letters.pre_tokenizer = tk.pre_tokenizers.ByteLevel(add_prefix_space=False)
    letters.decoder = tk.decoders.ByteLevel()
    hf.PreTrainedTokenizerFast(tokenizer_object=letters, eos_token="<e>", pad_token="<e>").save_pretrained(
        folder / "gpt"
    )
    ids = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0, "initializer_range": 0.2}
    sizes = {"vocab_size": 257, "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 160}
    hf.GPT2LMHeadModel(hf.GPT2Config(**sizes, **ids)).save_pretrained(folder / "gpt")

    save_tiny_bert(folder / "bert", positions=192)
    config = hf.ResNetConfig(embedding_size=8, hidden_sizes=[8, 12], depths=[1, 1], layer_type="basic")
    hf.ResNetModel(config).save_pretrained(folder / "resnet")
    settings = {"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 32}, "crop_pct": 1.0}
    (folder / "resnet" / "preprocessor_config.json").write_text(json.dumps(settings))

    (folder / "text.txt").write_text(prose(0, 400))
    (folder / "test.txt").write_text(prose(1, 150))
    (folder / "prefixes.txt").write_text("the cat sat on\na big dog\nwe show that the model\n")
    for name, stuck in (("mle", 8), ("sg", 2)):
        texts = [prose(10 * stuck + i, 3) + " and so on" * (12 if i < stuck else 0) for i in range(12)]
        rows = [{"id": i, "prefix": prose(100 + i, 4), "continuation": text} for i, text in enumerate(texts)]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    articles = [{"id": "a", "article": prose(7, 6)}, {"article": ""}, {"text": prose(8, 60)}]
    (folder / "articles.jsonl").write_text("".join(json.dumps(row) + "\n" for row in articles) + "broken\n")

    (folder / "images").mkdir()
    numbers, features = np.random.default_rng(0), {}
    for number in range(20):
        pixels = numbers.integers(0, 255, (32, 32, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "images" / f"{number}.png")
        features[str(number)] = numbers.normal(size=(3, 5)).astype(np.float32)
    np.savez(folder / "regions.npz", **features)
    for name, part in (("train", range(14)), ("valid", range(14, 17)), ("test", range(17, 20))):
        coco = {"images": [{"id": i, "file_name": f"{i}.png"} for i in part]}
        coco["annotations"] = [{"image_id": i, "caption": prose(50 + i % 4, 2)} for i in part]
        (folder / f"coco-{name}.json").write_text(json.dumps(coco))


def vote(folder: Path) -> None:
    """Both raters answer everything, straight into the study's database."""
    study = json.loads((folder / "study.json").read_text())
    with contextlib.closing(sqlite3.connect(folder / "answers.sqlite")) as database:
        (name,) = database.execute("select study from studies").fetchone()
        for rater, items in study["sheets"].items():
            database.execute("update raters set english = 'native', started_at = ? where rater = ?", (MOMENT, rater))
            for number in range(1, len(items) + 1):
                choice = "first" if (number + len(rater)) % 3 else "second"
                row = {"study": name, "rater": rater, "number": number, "choice": choice, "comment": "", "attempt": 0}
                row["answered_at"] = MOMENT
                places = ", ".join(f":{column}" for column in row)
                database.execute(f"insert into answers ({', '.join(row)}) values ({places})", row)
        database.commit()


def record(checkout: Path, only: list[str] | None = None) -> dict[str, Any]:
    """{name: exit code and output} of every verb, or of the groups in `only`."""
    with tempfile.TemporaryDirectory(prefix="guards-") as temporary:
        recorder = Recorder(checkout, Path(temporary).resolve())
        make_inputs(recorder.folder)
        groups = (open_ended, texts, summarize, caption, study, paper, others)
        for group in groups:
            if only and group.__name__ not in only:
                continue
            try:
                group(recorder)
            except Exception as error:  # the other groups are worth recording all the same
                recorder.records[group.__name__] = {"stopped": recorder.normal(repr(error))}
                print(f"{group.__name__} stopped: {error!r}", file=sys.stderr)
        return recorder.records


def open_ended(recorder: Recorder) -> None:
    run = recorder.run
    small = "--length 32 --batch 2 --lr 0.01 --max-steps 6 --evaluate-every 3 --log-every 2 --json --tracker none"
    for objective in ("mle", "sg=0.4", "ul=0.5"):
        run(
            f"train {objective}",
            f"train TMP/gpt TMP/text.txt --objective {objective} --out TMP/runs/{objective} {small}",
        )
        recorder.keep_lines(f"train {objective}, log", f"runs/{objective}/metrics.jsonl")
    size = "--corpus TMP/test.txt --chunks 2 --prefixes 3 --new-tokens 50"
    for objective in ("mle", "sg=0.4"):
        how = "-s greedy -s greedy,gamma=0.4 -s top_k=5 -s beam=2"
        run(f"evaluate {objective}", f"evaluate TMP/runs/{objective} {size} {how} --json")
    run("report", "report TMP/runs --json")
    training = "--max-steps 2 --batch 2 --length 40 --validation none"
    run(
        "sweep",
        f"sweep TMP/gpt TMP/text.txt --gamma 0.5 --alpha 1.0 --seeds 1 {size} --out TMP/sweep {training} --json",
    )
    run("demo", "demo --out TMP/demo --max-steps 2 --batch 1 --prefixes 2 --chunks 1 --json")


def texts(recorder: Recorder) -> None:
    for strategy in ("greedy", "top_p=0.9", "beam=3", "greedy,gamma=0.5"):
        how = f"--prompts TMP/prefixes.txt --strategy {strategy} --new-tokens 24 --out TMP/{strategy}.jsonl --json"
        recorder.run(f"complete {strategy}", f"complete TMP/gpt {how}")
        recorder.keep_lines(f"complete {strategy}, texts", f"{strategy}.jsonl")
    recorder.run("measure", "measure TMP/mle.jsonl TMP/sg.jsonl --field continuation --json")
    recorder.run("measure words", "measure TMP/mle.jsonl TMP/sg.jsonl --words 12 --human TMP/text.txt --json")
    recorder.run("measure corpus", "measure --corpus wikitext-103 --json")


def summarize(recorder: Recorder) -> None:
    run = recorder.run
    run(
        "summarize train",
        "summarize train TMP/bert --out TMP/tldr --recipe small --limit 8 --max-steps 2 -o mle -o sg=0.8 --json",
    )
    run("summarize evaluate", "summarize evaluate TMP/tldr --limit 2 --beta 0 --beta 1 --strategy top_k=40 --json")
    how = "TMP/tldr/mle-seed-0 TMP/articles.jsonl --new-tokens 8 --skip-bad"
    run("summarize summarize", f"summarize write {how}", lines=True)


def caption(recorder: Recorder) -> None:
    run, files = recorder.run, "--train TMP/coco-train.json --valid TMP/coco-valid.json --test TMP/coco-test.json"
    seen = "--images TMP/images --extractor TMP/resnet"
    run("caption train", f"caption train --out TMP/captioner {files} {seen} -o sg=0.5 --epochs 1 --json")
    scored = (
        "--paragraphs TMP/coco-test.json --images TMP/images --strategy greedy --strategy greedy,soft_block=3 --json"
    )
    run("caption evaluate", f"caption evaluate TMP/captioner/sg-0.5-seed-0 {scored}")
    run("caption evaluate, human", "caption evaluate --paragraphs TMP/coco-test.json --json")
    images = "TMP/images/17.png TMP/images/18.png --json"
    run("caption describe", f"caption describe TMP/captioner/sg-0.5-seed-0 {images}")
    features = "--features TMP/regions.npz -o ul=0.5 --epochs 1 --json"
    run("caption train, features", f"caption train --out TMP/featured {files} {features}")


def study(recorder: Recorder) -> None:
    systems = "--system mle=TMP/mle.jsonl --system sg=TMP/sg.jsonl --pair sg:mle --prefixes 6 --repeats 1 --checks 1"
    who = "--raters anna,ben --seed 3 --json"
    recorder.run("study new", f"study new TMP/study {systems} {who}")
    (recorder.folder / "study" / "answers.sqlite").touch()
    recorder.run("study analyse, no answers", "study analyse TMP/study --json")
    vote(recorder.folder / "study")
    recorder.run("study analyse", "study analyse TMP/study --json")


def paper(recorder: Recorder) -> None:
    run, options = recorder.run, "--gamma 0.3 --alpha 2 --json"
    run("show gradients", f"show gradients {options}", f"python -m paper gradients {options}")
    options = "to~be,~or~not~to~be --window 2 --json"
    run("show novel-set", f"show novel-set {options}", f"python -m paper novel-set {options}")
    run("reproduce --list", "reproduce --list --json", "python -m paper --list --json")
    for name in ("gradients", "novel-set", "human-study"):
        options = f"{name} --scale smoke --out TMP/paper --json"
        run(f"reproduce {name}", f"reproduce {options}", f"python -m paper {options}")


def others(recorder: Recorder) -> None:
    rows = recorder.run("doctor", "doctor --json")
    recorder.records["doctor"]["printed"] = [[row["part"], row["name"], sorted(row)] for row in rows]
    options = "metrics --scale 0.01 --rounds 1 --json"
    printed = recorder.run("bench metrics", f"bench {options}", f"python -m benchmarks {options}")
    recorder.records["bench metrics"]["printed"] = _shape(printed)


def _shape(value: Any) -> Any:
    """The keys alone: timings have no other constant."""
    if isinstance(value, dict):
        return {key: _shape(one) for key, one in value.items()}
    return [_shape(value[0])] if isinstance(value, list) and value else type(value).__name__
