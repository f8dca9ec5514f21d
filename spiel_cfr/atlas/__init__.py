"""Atlas of solved games: sizes, values and NashConv with certificates, as a reference for other solvers.

>>> from spiel_cfr import atlas
>>> atlas.find("kuhn_poker").value.low <= -1 / 18
True
"""

from spiel_cfr.atlas.entries import Entry, entries, find
from spiel_cfr.atlas.sources import load

__all__ = ["Entry", "entries", "find", "load"]
