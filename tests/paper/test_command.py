"""`python -m paper` as a user types it: every experiment at scale smoke, in one command, in seconds."""

import json
import re
import time

import pytest

from paper.__main__ import main
from paper.catalogue import EXPERIMENTS, SMOKE
from scalegrad.data import wikitext103
from tests.conftest import typed

NAMES = [experiment.name for experiment in EXPERIMENTS]
SECONDS = 240  # of two cores' time for all of them together


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """Stand-ins for the texts that cannot be shipped: --ptb and --imdb."""
    folder = tmp_path_factory.mktemp("corpora")
    lines = [line.lower() for line in wikitext103("valid").splitlines() if len(line) > 200][:40]
    sold = (
        " last resort who were criticized after the n crash had to sell \n heavy selling went on for a few more days "
    )
    (folder / "ptb.test.txt").write_text("\n".join([*lines, sold, *lines[:3]]) + "\n")
    reviews = [{"text": f"Film {i} is about a harbour and {i % 7} boats, well told and too long."} for i in range(500)]
    (folder / "imdb.jsonl").write_text("".join(json.dumps(review) + "\n" for review in reviews))
    return [f"--ptb={folder}", f"--imdb={folder / 'imdb.jsonl'}"]


@pytest.fixture(scope="module")
def smoke(corpora, tmp_path_factory):
    """(folder, what was printed as JSON, seconds of the processor) of `python -m paper all`."""
    import contextlib
    import io

    out = tmp_path_factory.mktemp("reproduction") / "smoke"
    printed, began = io.StringIO(), time.process_time()
    with contextlib.redirect_stdout(printed), pytest.raises(SystemExit) as end:
        main(["all", f"--out={out}", "--json", *corpora])
    assert end.value.code == 0
    return out, {part["name"]: part for part in json.loads(printed.getvalue())}, time.process_time() - began


def tables(smoke, name):
    """[{label: figures}] of an experiment."""
    return [table["systems"] for table in smoke[1][name]["tables"]]


def test_all_of_them_in_one_command(smoke):
    out, parts, seconds = smoke
    assert seconds < SECONDS
    assert list(parts) == NAMES
    for name, part in parts.items():
        assert json.loads((out / name / "environment.json").read_text())["experiments"] == [name]
        assert (SMOKE in part["notes"]) == (name not in ("human-rows", "gradients", "novel-set"))
        for plot in part["plots"]:
            assert (out / name / "plots" / f"{plot['name']}.png").read_bytes().startswith(b"\x89PNG")
    page = (out / "report.html").read_text()
    assert re.findall(r'<section class="part" id="([^"]+)">', page) == NAMES
    assert "Nobody has rated yet" in page
    assert not [path for path in out.rglob(".*") if path.name != ".lock"]  # nothing half-written


def test_open_ended_figures_are_those_of_a_model_hardly_moved(smoke):
    main_table, _, grid, own, _ = tables(smoke, "wikitext")
    ppl = {label: row["ppl"] for label, row in main_table.items() if "ppl" in row}
    assert list(ppl) == ["MLE", "UL α=1.0", "SG γ=0.2"]
    assert 30 < ppl["MLE"] < 50  # the shipped model on one chunk of the test text
    assert max(ppl.values()) < 1.05 * min(ppl.values())  # two steps
    assert main_table["MLE"]["calibrated_ppl"] == pytest.approx(ppl["MLE"])
    assert (
        main_table["SG γ=0.2"]["rep_window_128"]
        < main_table["MLE"]["rep_window_128"]
        > main_table["Human"]["rep_window_128"]
    )
    assert list(grid)[:7] == ["MLE", "UL α=0.5", "UL α=1.0", "UL α=1.5", "SG γ=0.8", "SG γ=0.5", "SG γ=0.2"]
    strengths = [own[f"MLE, decoded with γ={gamma}"] for gamma in ("0.8", "0.5", "0.2")]
    assert [row["ppl"] for row in strengths] == sorted(row["ppl"] for row in strengths)  # a penalty costs perplexity
    assert [row["rep_window_128"] for row in strengths] == sorted(
        (row["rep_window_128"] for row in strengths), reverse=True
    )
    (swept,) = tables(smoke, "sensitivity")
    assert swept["SG γ=0.2"]["rep_window_128"] < swept["SG γ=0.8"]["rep_window_128"] < swept["MLE"]["rep_window_128"]
    assert {label: row["ppl"] for label, row in swept.items() if label in grid and "ppl" in row} == pytest.approx(
        {label: row["ppl"] for label, row in grid.items() if label in swept and "ppl" in row}
    )  # the same runs on the same text
    (lengths,) = tables(smoke, "lengths")
    mle = [lengths["MLE"][f"rep_1_at_{length}"] for length in (50, 100, 150, 200, 250, 300)]
    assert mle == sorted(mle)  # longer texts repeat more
    (decoded,) = tables(smoke, "decoding")
    assert decoded["SG γ=0.2"]["rep_1"] == main_table["SG γ=0.2"]["rep_1"]
    assert decoded["MLE, top_p=0.9"]["rep_1"] < decoded["MLE"]["rep_1"] < decoded["MLE, beam=3"]["rep_1"]
    (ptb,), (imdb,) = tables(smoke, "ptb"), tables(smoke, "imdb")
    assert 40 < ptb["MLE"]["ppl"] < imdb["MLE"]["ppl"]  # the reviews are like nothing it was trained on
    assert ptb["Human"]["rep_1"] < 0.3


def test_directed_figures_stand_beside_the_papers(smoke):
    (summaries,), (sampled,) = tables(smoke, "summarization"), tables(smoke, "summarization-decoding")
    assert summaries["MLE, in the paper"]["rouge_1"] == 41.87
    assert summaries["SG γ=0.8, in the paper (NYT50)"]["rouge_1"] == 49.29
    assert 0 <= summaries["MLE"]["rouge_2"] <= summaries["MLE"]["rouge_1"] < 60
    assert sampled["MLE"]["rouge_1"] == summaries["MLE"]["rouge_1"]
    assert sampled["MLE, top_k=40, in the paper"] == {"rouge_1": 41.23, "moverscore_1": 20.70}
    (cider,), (repeated,) = tables(smoke, "captioning"), tables(smoke, "captioning-degeneration")
    assert cider["SG γ=0.5, soft_block=3, in the paper"]["cider"] == 24.62
    assert repeated["MLE, soft_block=3"]["rep_3"] < repeated["MLE"]["rep_3"]  # what blocking is for
    assert 0.3 < repeated["Human"]["rep_1"] < 0.6
    (drawn,) = tables(smoke, "captioning-decoding")
    assert drawn["MLE, soft_block=3"]["cider"] == cider["MLE, soft_block=3"]["cider"]
    page = (smoke[0] / "captioning" / "part.html").read_text()
    assert page.count('<img src="data:image/png') == 3


def test_texts_and_figures_that_need_no_training(smoke):
    (gradients,), (novel, _) = tables(smoke, "gradients"), tables(smoke, "novel-set")
    assert gradients["SG T-N: target, novel"]["p = 0.5"] == pytest.approx(5 / 6)
    assert novel["6. ␣text"] == {"n_seen": 5, "n_novel": 50252}
    (judged,) = tables(smoke, "human-study")
    assert judged == {
        "SG vs MLE, in the paper": {"win_rate": 0.84, "agreement": 0.84, "ac1": 0.78},
        "SG vs UL, in the paper": {"win_rate": 0.705, "agreement": 0.79, "ac1": 0.64},
    }
    assert (smoke[0] / "human-study" / "study" / "links.csv").is_file()
    (rows,) = tables(smoke, "examples")
    assert rows["MLE, in the paper"]["rep_1"] > rows["SG γ=0.2, in the paper"]["rep_1"]
    texts = [json.loads(line) for line in (smoke[0] / "examples" / "texts.jsonl").read_text().splitlines()]
    assert len(texts) == 3 * 11  # WikiText's two and the Penn Treebank's
    assert smoke[1]["examples"]["notes"][-1].endswith(
        "does not hold its beginning, “One of the other reviewers has mentioned …”."
    )


def test_a_second_call_takes_what_is_there(smoke, capsys):
    out = smoke[0]
    weights = out / "runs" / "base" / "mle-seed-0" / "model" / "model.safetensors"
    before, written = tables(smoke, "wikitext"), weights.stat().st_mtime_ns
    with pytest.raises(SystemExit) as end:
        main(["wikitext", "human-study", f"--out={out}", "--json"])
    assert end.value.code == 0
    wikitext, study = json.loads(capsys.readouterr().out)
    assert [wikitext["name"], study["name"]] == ["wikitext", "human-study"]
    assert [table["systems"] for table in wikitext["tables"]] == before
    assert weights.stat().st_mtime_ns == written
    assert "is drawn in" not in " ".join(study["notes"])  # the study that is there stays


@pytest.fixture
def paper(capsys):
    return typed(main, capsys)


def test_the_list_names_what_each_shows_and_takes(paper):
    code, out, _ = paper("--list", "--json")
    told = json.loads(out)
    assert code == 0
    assert [one["name"] for one in told["experiments"]] == NAMES
    assert told["experiments"][0]["shows"] == ["table 1", "table 10", "table 11", "table 13"]
    assert all(set(one["takes"]) == {"smoke", "gpu", "paper"} for one in told["experiments"])
    code, out, _ = paper("--list")
    assert code == 0
    assert all(name in out for name in NAMES)
    assert "ptb: the Penn Treebank's test text" in " ".join(out.split())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "name an experiment (python -m paper --list shows them), or all"),
        (["wikitex"], "there is no experiment 'wikitex'; there are wikitext, ptb"),
        (["gradients", "--scale", "large"], "scale must be one of smoke, gpu, paper, not 'large'"),
        (["gradients", "--seeds", "0"], "seeds must be at least 1, not 0"),
        (["gradients", "--data", "ptb"], "--data must be NAME=PATH, each name once, one of ptb, imdb"),
        (["gradients", "--data", "penn=a"], "one of ptb, imdb, wikitext-103"),
        (["gradients", "--ptb", "a", "--data", "ptb=b"], "each name once"),
        (["gradients", "--gamma", "1.5"], "gamma must be a number in (0, 1], not 1.5"),
        (["gradients", "--alpha", "-1"], "alpha must be a finite number from 0, not -1.0"),
        (["ptb"], "The Penn Treebank is the LDC's and cannot be shipped"),
    ],
)
def test_mistakes_end_with_code_2_and_one_sentence(paper, tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    code, out, err = paper(*arguments)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.startswith("paper: ")
    assert len(err.splitlines()) == 1
    assert not list(tmp_path.rglob("*.json"))


def test_of_several_what_fails_is_told_and_the_others_are_done(paper, tmp_path):
    code, out, err = paper("ptb", "novel-set", f"--out={tmp_path}")
    assert code == 2
    assert "50,252" in out
    first, *_, last = err.splitlines()
    assert first.startswith("paper: ptb is left out: The Penn Treebank")  # at once
    assert last.startswith("left out: ptb: The Penn Treebank")  # and at the end
    assert (tmp_path / "novel-set" / "environment.json").is_file()
    assert not (tmp_path / "ptb").exists()


def test_with_all_what_was_not_given_is_left_out(paper, tmp_path, monkeypatch):
    from paper import catalogue

    kept = [experiment for experiment in EXPERIMENTS if experiment.name in ("ptb", "imdb", "gradients")]
    monkeypatch.setattr(catalogue, "EXPERIMENTS", tuple(kept))
    code, out, err = paper("all", f"--out={tmp_path}")
    assert code == 0
    assert "0.83" in out
    assert [line.split(":")[:2] for line in err.splitlines()[-2:]] == [["left out", " ptb"], ["left out", " imdb"]]


def test_gradients_for_strengths_of_your_own(paper, tmp_path):
    code, out, _ = paper("gradients", "--gamma", "0.5", "--alpha", "3", f"--out={tmp_path}", "--json")
    (part,) = json.loads(out)
    rows = part["tables"][0]["systems"]
    assert code == 0
    assert rows["SG T-N: target, novel"]["p = 0.5"] == pytest.approx(1 - 0.25 / 0.75)
    assert "turns negative at p_neg = 0.25 (1/(α + 1) = 0.25)" in " ".join(part["notes"])
    assert (tmp_path / "gradients" / "plots" / "gradients.png").read_bytes().startswith(b"\x89PNG")


def test_the_novel_set_of_a_sentence_of_your_own(paper, tmp_path):
    code, out, _ = paper("novel-set", "--sentence", "to be or not to be", f"--out={tmp_path}", "--json")
    (part,) = json.loads(out)
    rows = list(part["tables"][0]["systems"].values())
    assert code == 0
    assert [row["n_seen"] for row in rows] == [0, 1, 2, 3, 4, 5]  # " to" is another token than "to"
    assert rows[0]["n_novel"] == 50_257


def test_help_has_an_example(paper):
    code, out, _ = paper("--help")
    assert code == 0
    assert "Example: python -m paper" in out
