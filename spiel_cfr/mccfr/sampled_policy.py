"""Policies for the infosets that samples have met, in a game that may be too large to list."""

import copy
from typing import Any, Literal

import numpy as np
from open_spiel.python import policy as open_spiel_policy

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.mccfr.engines.engine import Engine
from spiel_cfr.policies import open_spiel


def normalized(sums: Float64s) -> Float64s:
  """Returns what is in proportion to sums that are not negative; uniform where they are all zero."""
  total = sums.sum()
  return sums / total if total > 0 else np.full(len(sums), 1.0 / len(sums))


class SampledPolicy(open_spiel_policy.Policy):  # type: ignore[misc]
  """A policy for the infosets that a solver has met, uniform elsewhere; it moves with the solver."""

  def __init__(
    self, view: GameView, engine: Engine, which: Literal["cumulative", "strategy"]
  ) -> None:
    """Keeps its arguments.

    Args:
      view: the game.
      engine: what runs the solver's iterations.
      which: the entries of its table that are in proportion to the probabilities.
    """
    super().__init__(view.open_spiel_game(), list(range(view.num_players)))
    self._view = view
    self._engine = engine
    self._which = which

  def __copy__(self) -> "SampledPolicy":
    """Returns a copy that stays as it is."""
    return copy.deepcopy(self)

  def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
    """Returns action -> probability.

    Raises:
      PolicyError: no player is to move, or another one is.
    """
    player = open_spiel.player_to_move(state, player_id)
    infostate, actions = self._view.look_up(state, player)
    infoset = self._engine.infostates[player].get(infostate)
    sums = np.zeros(len(actions))
    if infoset is not None:
      entries = self._engine.table.entries
      first = entries.first.item(infoset)
      sums = getattr(entries, self._which)[first : first + len(actions)]
    return dict(zip(actions, normalized(sums).tolist(), strict=True))
