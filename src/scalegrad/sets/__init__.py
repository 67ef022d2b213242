"""Which tokens are discouraged: `Seen`, `Seen(window=l)`, `Ids`, `NgramRepeat(n)`, and `&`, `|`, `~` of them."""

from scalegrad.sets.history import History
from scalegrad.sets.ids import Ids
from scalegrad.sets.members import Members
from scalegrad.sets.ngram_repeat import NgramRepeat
from scalegrad.sets.seen import Seen
from scalegrad.sets.token_set import TokenSet

__all__ = ["History", "Ids", "Members", "NgramRepeat", "Seen", "TokenSet"]
