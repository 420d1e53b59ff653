"""What a search has to know of our vocabularies."""

from regard.models.search import Marks
from regard.tasks.data.vocabulary import BEGIN, END, PADDING, UNKNOWN

MARKS = Marks(begin=BEGIN, end=END, never=(PADDING, UNKNOWN, BEGIN))
