"""The continuations that the paper prints, short quotations to be read beside a machine's own.

Quoted from Lin, Han and Joty, "Straight to the Gradient: Learning to Use Novel Tokens for Neural Text Generation" (ICML
2021), tables 6, 19, 20, 27 and 28: what its models wrote. The beginnings are not quoted: each is found in its corpus by
its first and last words. WikiText-103, which is CC BY-SA, is embedded; the other two are the user's to bring.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from scalegrad.objectives import Objective


@dataclass(frozen=True)
class Printed:
    """A beginning the paper prints, by its corpus, first and last words, and how the paper's models went on."""

    tables: tuple[int, ...]
    corpus: str  # wikitext-103, ptb or imdb
    first: str
    last: str
    texts: Mapping[Objective, str]  # objective → continuation

    def prefix_in(self, text: str) -> tuple[str, str] | None:
        """The beginning as it stands in `text`, and what follows it there; None where it is not in it.

        >>> Printed((0,), "ptb", "last resort", "selling", {}).prefix_in("the Last resort was selling off")
        ('Last resort was selling', ' off')
        """
        words = f"{re.escape(self.first)}.*?{re.escape(self.last)}"
        found = re.search(words, text, re.IGNORECASE | re.DOTALL)  # the common Penn Treebank is lower-cased
        return None if found is None else (found.group(), text[found.end() :])


MLE, UL, SG = Objective("mle"), Objective("ul", 1.0), Objective("sg", 0.2)

PRINTED = (
    Printed(
        (19,),
        "wikitext-103",
        "Robert Boulter is an English film",
        "This was followed by a starring",
        {
            MLE: "role in the film The Last of the Mohicans in 2002. He has appeared in the television series The X "
            "Factor, The X Factor Australia, The X Factor New Zealand, The X Factor South Africa, The X Factor New "
            "Zealand, The X Factor South Africa, The X Factor New Zealand, The X Factor New Zealand, The X Factor New "
            "Zealand, The X Factor New Zealand, The X Factor New Zealand, The X Factor New Zealand, The X Factor New "
            "Zealand, The X Factor New Zealand",
            UL: "role in the film The Last of the Mohicans, which was released in 2002. He also appeared in the "
            "television series The X Factor, where he played the role of a DJ. In 2005, he starred in the film The "
            "Last of the Mohicans, which was released in 2006. He also appeared in the television series The X Factor, "
            "where he played the role of a DJ. In 2008, he starred in the television series The X Factor, where he "
            "played the role",
            SG: "role in the BBC's comedy series The Office in 2002. In 2003, he appeared in the BBC's crime drama "
            "series The Yard, playing a police officer who is caught up in a murder investigation. He also appeared in "
            "the BBC's crime drama series The X Factor, playing a man who is accused of murdering his wife. In 2004, "
            "he starred in the BBC's comedy series The Office, playing a fictional version of himself. He has appeared "
            "in several",
        },
    ),
    Printed(
        (6, 20),
        "wikitext-103",
        "You 's patriotism",
        'a vehicle for serious poetic utterance "',
        {
            MLE: "is a major contribution to the genre. The first of the three major works of the genre, was written "
            "in the early 1920s, and was the first of the three to be published in English. It was published in the "
            "United States in the United States, and was translated into French in the 1930s. The work was the first "
            "of the three",
            UL: "is a major influence on the modern Chinese novel. The modern Chinese novel is often characterized as "
            'being "literary in nature", but it is not limited to literary genres. The modern Chinese novel has been '
            'described as "a literary genre that has been influenced by the Western literary tradition". The modern '
            'Chinese novel has been described as "a literary genre that has been influenced by the Western literary '
            'tradition"',
            SG: "is a powerful example of how the Chinese literary tradition can be used to explore themes of "
            "nationalism and self determination. In addition to his own poetry, Du Fu wrote several works of prose. "
            'The first was a collection of short stories called "The Story of the Three Sisters", which was published '
            "in 1885. It was followed by a series of novels, including the first two volumes of the Song dynasty epic "
            'poem "The Three Sisters"',
        },
    ),
    Printed(
        (27,),
        "ptb",
        "last resort who were criticized after the",
        "heavy selling",
        {
            MLE: "pressure was also felt by the Wall Street banks. The Wall Street banks were forced to sell more "
            "stock to hedge funds and other investors, and to buy more stock to hedge against losses. The Wall Street "
            "banks were forced to sell more stock to hedge funds and other investors, and to buy more stock to hedge "
            "against losses. The Wall Street banks were forced to sell more stock to hedge funds and other investors, "
            "and to buy more stock to hedge against losses.",
            UL: "pressure was also felt by the banks themselves. In 1987, the New York Federal Reserve Bank, which had "
            "been the largest bank in the United States since the 1930s, was forced to sell $1.5 billion worth of "
            "stock. The bank's stock price fell to $0.001, and it was forced to close its New York branch. The bank's "
            "stock price fell to $0.001, and it was forced to close its New",
            SG: "by the big banks led to a sharp drop in prices, and the market collapsed. In 1992, the Federal "
            "Reserve Bank of New York issued a report on the financial crisis, which concluded that the Fed's actions "
            "had not been sufficient to prevent the collapse of the housing market. The report recommended that the "
            "Fed increase its balance sheet by $1.5 trillion (equivalent to about $2.5 trillion today), but this was "
            "not implemented.",
        },
    ),
    Printed(
        (28,),
        "imdb",
        "One of the other reviewers has mentioned",
        "scenes of violence",
        {
            MLE: "I was not expecting anything like that in a show about a family. I was expecting a show about a "
            "family, but I was expecting something more. I was expecting a show about a family, but I was expecting "
            "something more. I was expecting a show about a family, but I was expecting something more. I was "
            "expecting a show about a family, but I was expecting something more. I was expecting a show about a "
            "family, but I was expecting something more. I was expecting a show",
            UL: "I was immediately hooked. The violence was so graphic that I was completely taken aback by how it was "
            "handled. I was also struck by the fact that the show was so well-written that it was almost impossible "
            "to not be entertained. The second thing that struck me about Oz was its ability to make me laugh. I was "
            "so taken aback by the violence that I couldn't help but laugh. The violence was so graphic that I was "
            "completely taken aback by how it",
            SG: "It was also very funny, but not funny enough to make me laugh out loud. The second thing that struck "
            "me was the fact that the show's characters were so well developed that they were able to carry their own "
            'weight without being annoying or annoying. In its original broadcast, "Oz" was watched by 9.5 million '
            "viewers, according to Nielsen ratings. It was the highest rated",
        },
    ),
)
