"""Games as iterations take them that leave no infoset out."""

from spiel_cfr.compiled.enumerated import EnumeratedGame


def visiting_all(game: EnumeratedGame) -> EnumeratedGame:
  """Returns the game, whose iterations visit infosets with one action too, as those do with numbers of infosets."""
  result = game.with_payoff(game.payoff)
  result.__dict__["decisions"] = game.every_infoset
  return result
