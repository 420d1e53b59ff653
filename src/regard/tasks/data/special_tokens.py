"""What a search has to know of our vocabularies."""

from regard.models.search import SpecialTokens
from regard.tasks.data.vocabulary import BEGIN, END, PADDING, UNKNOWN

SPECIAL_TOKENS = SpecialTokens(begin=BEGIN, end=END, never=(PADDING, UNKNOWN, BEGIN))
