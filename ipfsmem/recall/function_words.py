"""Weighs the words of a prompt: function words (articles, pronouns, prepositions, forms of "be" and "have") have no weight,
identifiers have more.

Ranking needs no such list because it gives common words little weight, but a hook counts the words of a prompt that occur in a
text. Some function words of other languages are nouns in English ("door", "hat", "man"), so the list is used only for a prompt that
has more of them than of English stop words. Words have no accents and no case, as returned by `terms.split`.
"""

from __future__ import annotations

from collections.abc import Callable

from ipfsmem.recall.terms import STOP_WORDS, fold, split, terms_of

_GERMAN = (
    "aber als am an auch auf aus bei bin bis bist da dann das dass dein deine dem den der des die dies diese dieser dieses doch du "
    "durch ein eine einem einen einer eines er es euch fur hab habe haben hast hat hatte ich ihm ihn ihr ihre im in ins ist ja kann "
    "kein keine man mein meine mich mir mit nach nicht noch nun nur ob oder schon sehr sein seine sich sie sind so uber um und uns "
    "unser unter vom von vor war waren warum was wegen weil welche wenn wer werde werden wie wieder will wir wird wo zu zum zur"
)
_FRENCH = (
    "a au aux avec c ca ce ces cette comme d dans de des du elle elles en est et etait ete etre eu il ils j je l la le les leur lui m "
    "ma mais me meme mes moi mon n ne nos notre nous on ont ou par pas pour plus qu que quel quelle qui quoi s sa sans se ses "
    "si son sont sur t ta te tes toi ton tu un une vos votre vous y"
)
_SPANISH = (
    "a al algo como con cual cuando de del desde donde e el ella ellas ellos en era es esa ese eso esta este esto fue ha han hay he la "
    "las le les lo los mas me mi mis muy no nos o para pero por porque que quien se ser si sin sobre son su sus te tiene tu tus un una "
    "uno unos y ya yo"
)
_ITALIAN = (
    "a al alla anche che chi ci come con cosa da dal dalla dei del della delle di dove e ed era gli ha hanno ho i il in io la le lei li "
    "lo lui ma mi mia mio ne nel nella non o per perche piu quale quando questa questo se si sono su sua suo ti tra tu un una uno voi"
)
_PORTUGUESE = (
    "ao aos as com como da das de do dos e ela ele em era essa esse esta este eu foi ha isso ja la mais mas me meu minha muito na nao "
    "nas no nos o os ou para pela pelo por porque qual quando que quem se sem ser seu sua sao tem um uma voce"
)
_DUTCH = (
    "aan als bij dan dat de den der deze die dit door een en er het hij hoe ik in is je kan maar me met mijn naar niet nog of om ook op "
    "over te tot uit van voor waar was wat we wel wie wij zal ze zich zij zijn zo"
)
#: Function words of other languages that are not English stop words.
FUNCTION_WORDS = (
    frozenset(" ".join((_GERMAN, _FRENCH, _SPANISH, _ITALIAN, _PORTUGUESE, _DUTCH)).split()) - STOP_WORDS
)
#: Minimum digits of an identifier (an error code, a ticket, a part of a hash) with letters, and of a number alone. A year has four.
_LEAST_DIGITS, _NUMBER = 3, 5


def word_weights(prompt: str) -> Callable[[str], int]:
    """Return a function that weighs a word of a prompt: 0 for a function word, 2 for an identifier, else 1."""
    words = split(prompt)
    is_foreign = sum(word in FUNCTION_WORDS for word in words) > sum(word in STOP_WORDS for word in words)

    def weight(word: str) -> int:
        folded = fold(word)
        return 0 if is_foreign and folded in FUNCTION_WORDS else 1 + _is_identifier(folded)

    return weight


def prompt_weight(prompt: str) -> int:
    """Return the sum of the weights of the distinct terms of a prompt."""
    weight = word_weights(prompt)
    return sum({term: weight(word) for word in split(prompt) for term in terms_of(word)}.values())


def _is_identifier(word: str) -> bool:
    """Return whether a word is an identifier: letters with at least three digits, or a number of at least five digits."""
    digits = sum(map(str.isdecimal, word))
    return digits >= (_NUMBER if digits == len(word) else _LEAST_DIGITS)
