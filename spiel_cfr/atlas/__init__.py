"""Atlas of solved games: sizes, values and NashConv with certificates, as a reference for other solvers.

>>> from spiel_cfr import atlas
>>> atlas.find("kuhn_poker").value.low <= -1 / 18
True
"""

from spiel_cfr.atlas.game_names import load
from spiel_cfr.atlas.solved_games import SolvedGame, find, games

__all__ = ["SolvedGame", "find", "games", "load"]
