"""A study's folder: the design to publish, the secrets to keep, the links to hand out.

study.json     the design: texts, systems, who sees what; holds no secret
secrets.json   the signing key and hashes of the links' tokens; only the server reads it
links.csv      the personal links; the only place where they stand in clear
answers.sqlite what raters said, unless another database is named
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import tempfile
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from scalegrad.study.access import Secrets, new_token, token_hash
from scalegrad.study.design import Item, Shown, Study

FORMAT = 1


@dataclass(frozen=True)
class Links:
    """Where each rater and the organiser enter: whoever has the link is that person."""

    raters: dict[str, str]
    organiser: str


def write_study(study: Study, folder: str | Path, base_url: str = "http://127.0.0.1:8000") -> Links:
    """Write a new study folder, whole or not at all, and give the links that were made for it."""
    folder = Path(folder)
    if folder.exists():
        raise ValueError(f"{folder} exists already; a study starts in a folder of its own")
    base_url = base_url.rstrip("/")
    if not re.fullmatch(r"https?://[^/?#\s]+", base_url):
        raise ValueError(f"the address of the study must be http(s)://HOST or http(s)://HOST:PORT, not {base_url!r}")
    tokens = {rater: new_token() for rater in study.sheets}
    organiser = new_token()
    links = Links({rater: f"{base_url}/r/{token}" for rater, token in tokens.items()}, f"{base_url}/o/{organiser}")
    secrets = Secrets(new_token(), {rater: token_hash(token) for rater, token in tokens.items()}, token_hash(organiser))
    folder.parent.mkdir(parents=True, exist_ok=True)
    # mkdtemp makes a folder that only its owner may enter, and that is how it stays.
    made = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        _write(made / "study.json", json.dumps(_as_dict(study), ensure_ascii=False, indent=1))
        _write(made / "secrets.json", json.dumps(asdict(secrets), indent=1))
        _write(made / "links.csv", _links_csv(links))
        made.rename(folder)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return links


def load_study(folder: str | Path) -> Study:
    """Read the design of a study folder."""
    file = Path(folder) / "study.json"
    try:
        return _from_dict(json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise ValueError(
            f"{folder} is not a study folder: it has no study.json (scalegrad study new makes one)"
        ) from None
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file} is not a study this version reads: {error}") from None


def load_secrets(folder: str | Path) -> Secrets:
    """Read the secrets of a study folder."""
    file = Path(folder) / "secrets.json"
    try:
        return Secrets(**json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise ValueError(f"{folder} has no secrets.json: a study can be served only where it was made") from None
    except (TypeError, ValueError):
        raise ValueError(f"{file} is damaged: it must be as scalegrad study new wrote it") from None


def default_database(folder: str | Path) -> str:
    """The SQLAlchemy URL of the folder's own SQLite file."""
    return f"sqlite:///{(Path(folder) / 'answers.sqlite').resolve()}"


def _write(file: Path, text: str) -> None:
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8", newline="") as out:
        out.write(text)


def _links_csv(links: Links) -> str:
    out = io.StringIO()
    rows = csv.writer(out)
    rows.writerow(["who", "link"])
    rows.writerows(links.raters.items())
    rows.writerow(["(organiser)", links.organiser])
    return out.getvalue()


def _as_dict(study: Study) -> dict[str, Any]:
    made = asdict(study) | {"closes": study.closes.isoformat() if study.closes else None}
    # [item, swapped, repeat] keeps a sheet of 200 items on few lines.
    made["sheets"] = {
        rater: [[shown.item, int(shown.swapped), int(shown.repeat)] for shown in sheet]
        for rater, sheet in study.sheets.items()
    }
    return {"format": FORMAT} | made


def _from_dict(made: dict[str, Any]) -> Study:
    if made.get("format") != FORMAT:
        raise ValueError(f"its format is {made.get('format')!r}, not {FORMAT}")
    items = tuple(
        Item(item["kind"], item["prefix_id"], item["prefix"], _two(item["systems"]), _two(item["texts"]))
        for item in made["items"]
    )
    sheets = {
        rater: tuple(Shown(int(item), bool(swapped), bool(repeat)) for item, swapped, repeat in sheet)
        for rater, sheet in made["sheets"].items()
    }
    if any(not 0 <= shown.item < len(items) for sheet in sheets.values() for shown in sheet):
        raise ValueError("a sheet names an item that is not there")
    return Study(
        id=made["id"],
        title=made["title"],
        question=made["question"],
        seed=made["seed"],
        ties=made["ties"],
        closes=datetime.fromisoformat(made["closes"]) if made["closes"] else None,
        pairs=tuple(_two(pair) for pair in made["pairs"]),
        items=items,
        sheets=sheets,
    )


def _two(pair: list[str]) -> tuple[str, str]:
    one, other = pair
    return one, other
