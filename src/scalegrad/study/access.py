"""Links, cookies and form tokens: how the server knows who is asking."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Any

from scalegrad.extras import need

# A cookie outlives a long study; after that the personal link gives a new one.
COOKIE_SECONDS = 90 * 24 * 3600
ORGANISER = "(organiser)"  # no rater may be called so: names hold no parentheses


@dataclass(frozen=True)
class Secrets:
    """What the server must know and nobody else may: its signing key; of the links' tokens it keeps hashes alone."""

    key: str
    raters: dict[str, str]
    organiser: str

    def who(self, token: str) -> str | None:
        """The rater (or `ORGANISER`) whose personal link carries `token`; None for a token that is nobody's.

        Only hashes are looked up, so that the time it takes tells nothing about how close a guess is.
        """
        names = {known: name for name, known in self.raters.items()} | {self.organiser: ORGANISER}
        return names.get(token_hash(token))

    def cookie(self, who: str) -> str:
        """A signed cookie that says who is asking and when it was given."""
        return str(self._signer().dumps(who))

    def asking(self, cookie: str | None) -> str | None:
        """Who a cookie was given to; None if it is forged, expired, of another study, or there is none."""
        if not cookie:
            return None
        try:
            who = self._signer().loads(cookie, max_age=COOKIE_SECONDS)
        except need("itsdangerous", extra="study").BadData:
            return None
        return who if who in self.raters or who == ORGANISER else None

    def form_token(self, who: str) -> str:
        """What a form must carry to be taken as sent by `who`: another site cannot know it.

        It stays the same while a study runs, so that a tab opened before a new cookie was given still works.
        """
        return hmac.new(self.key.encode(), f"form {who}".encode(), hashlib.sha256).hexdigest()

    def form_is_of(self, who: str, token: str) -> bool:
        """Whether a form was made for `who`, compared in constant time."""
        return hmac.compare_digest(self.form_token(who).encode(), token.encode("utf-8", "replace"))

    def _signer(self) -> Any:
        return need("itsdangerous", extra="study").URLSafeTimedSerializer(
            self.key,
            salt="scalegrad-study-cookie",
            signer_kwargs={"key_derivation": "hmac", "digest_method": hashlib.sha256},
        )


def new_token() -> str:
    """256 random bits, safe in a URL."""
    return secrets.token_urlsafe(32)


def token_hash(token: str) -> str:
    """What is kept of a token: one look at the file must not open the study.

    A random token of 256 bits needs no slow hash.
    """
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
