"""Which tokens are discouraged: `Seen`, `Seen(window=l)`, `Ids`, `NgramRepeat(n)`, and `&`, `|`, `~` of them."""

from scalegrad.sets.history import History
from scalegrad.sets.members import Members
from scalegrad.sets.token_sets import Ids, NgramRepeat, Seen, TokenSet

__all__ = ["History", "Ids", "Members", "NgramRepeat", "Seen", "TokenSet"]
