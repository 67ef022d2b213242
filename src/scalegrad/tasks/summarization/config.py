"""What can be chosen of summarisation; reading it loads nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from scalegrad.decoding.strategies import Beam, check_new_tokens, parse
from scalegrad.models.pretrained import DTYPES
from scalegrad.options import Batch, option
from scalegrad.tasks.summarization.recipes import Recipe, finetune

if TYPE_CHECKING:
    from scalegrad.data import Pair, Problems
    from scalegrad.runs.progress import Progress

BEAM = Beam(5, gnmt=1.0, block_words=3)  # the paper's search; its β is chosen on the validation set
BETAS = (0.0, 0.5, 1.0, 1.5, 2.0)
# The paper's stochastic comparison: the MLE model decoded by these, beside the beam.
STOCHASTIC = ("top_p=0.3", "top_p=0.9", "top_k=40", "top_k=100")

_NOT_TYPED = option(parse=False)


@dataclass(frozen=True)
class Task:
    """What is trained, on what, and how: the same for every objective."""

    model: str = "minilm"
    """A BERT (minilm, a name or folder) for a BertSum; or an encoder-decoder or causal LM by name, folder or run."""
    _: KW_ONLY
    data: str = "scitldr"
    """scitldr (embedded), a folder with train/validation/test files, a file, cnn_dailymail, …"""
    limit: int | None = None
    """Use only the first N training pairs, and a quarter as many to validate."""
    template: str | None = None
    """A causal LM's prompt, with {article} where the article goes."""
    source_seen: bool = False
    """Count the article's tokens as seen, too."""
    recipe: Annotated[Recipe, _NOT_TYPED] = finetune()  # noqa: RUF009 (frozen)

    def pairs(self, split: str, problems: Problems | None = None, progress: Progress | None = None) -> list[Pair]:
        """The pairs of `split` that this task uses."""
        from scalegrad.tasks.summarization.corpora import load_split

        quarter = None if self.limit is None else max(self.limit // 4, 1)
        most = self.limit if split == "train" else quarter
        return load_split(self.data, split, most, problems=problems, progress=progress)


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """How to evaluate: which strategies beside the beam, which β, and how to score."""

    betas: Annotated[tuple[float, ...], option(name="--beta")] = BETAS
    """A length normalisation β to choose from. May be repeated; one alone is taken as it is."""
    strategies: Annotated[tuple[str, ...], option(name="--strategy", alias="-s")] = ()
    """A further way to decode. May be repeated."""
    beams: Annotated[int, _NOT_TYPED] = BEAM.size
    min_new_tokens: Annotated[int, _NOT_TYPED] = 0
    new_tokens: Annotated[int, _NOT_TYPED] = 140
    mover: Annotated[bool, option(negative="--no-mover")] = True
    """Compute MoverScore, which takes longest."""
    seed: int = 0
    """Seed of sampled summaries."""
    batch: Batch = None
    """Articles at a time, or auto: what fits into memory."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1, mps, …"""
    dtype: str = "auto"
    """auto, float32, bfloat16 or float16."""

    def __post_init__(self) -> None:
        for text in self.strategies:
            parse(text)
        check_new_tokens(self.min_new_tokens, self.new_tokens)
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, not {self.dtype!r}")

    @property
    def beam(self) -> Beam:
        """The search whose β is chosen. Its rows leave β out, so that seeds with different β are one system."""
        return replace(BEAM, size=self.beams, gnmt=0.0)

    @staticmethod
    def of(recipe: Mapping[str, Any], **others: Any) -> Evaluation:
        """With the lengths of a run's recipe."""
        return Evaluation(**{**others, **{name: recipe[name] for name in ("min_new_tokens", "new_tokens")}})
