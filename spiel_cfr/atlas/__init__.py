"""Atlas of solved games: sizes, values and NashConv with certificates, as a reference for other solvers.

>>> from spiel_cfr import atlas
>>> atlas.find("kuhn_poker").value.low <= -1 / 18
True
"""

from spiel_cfr.atlas.entries import Entry, entries, find
from spiel_cfr.atlas.page import page
from spiel_cfr.atlas.recompute import changes, recompute
from spiel_cfr.atlas.sources import load

__all__ = ["Entry", "changes", "entries", "find", "load", "page", "recompute"]
