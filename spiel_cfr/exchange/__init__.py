"""Files for other programs: games in Gambit's extensive form, and policies as JSON."""

from spiel_cfr.exchange.efg import save_efg
from spiel_cfr.exchange.policy_tables import load_policy, save_policy

__all__ = [
  "load_policy",
  "save_efg",
  "save_policy",
]
