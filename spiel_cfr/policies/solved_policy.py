"""Base classes of results that contain a strategy for each player, available as policies and dictionaries."""

import functools

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.policies import forms, open_spiel
from spiel_cfr.policies.tabular_policy import CompiledTabularPolicy


class PolicyResult:
  """Base class of results that contain a strategy for each player.

  Attributes:
    compiled_game: `CompiledGame`. The game.
    probabilities: float64 (sequences,). The policy in behavioral form.
  """

  compiled_game: CompiledGame
  probabilities: Float64s

  @functools.cached_property
  def policy(self) -> CompiledTabularPolicy:
    """The policy, as OpenSpiel's Python class."""
    return CompiledTabularPolicy(self.compiled_game, self.probabilities)

  def probabilities_in(self, game: CompiledGame) -> Float64s | None:
    """Returns the policy in behavioral form if it is of this game, see `open_spiel.HasArray`."""
    return self.probabilities if open_spiel.is_same_game(game, self.compiled_game) else None

  def policy_dict(self) -> open_spiel.PolicyDict:
    """Returns the policy as infostate -> action -> probability."""
    return open_spiel.to_dict(self.compiled_game, self.probabilities)


class SolvedPolicy(PolicyResult):
  """Base class of results such as `Solution`, whose strategies are in sequence form.

  Attributes:
    compiled_game: `CompiledGame`. The game.
    sequence_form: float64 (sequences,). The strategies of all players.
  """

  compiled_game: CompiledGame
  sequence_form: Float64s

  @functools.cached_property
  def probabilities(self) -> Float64s:  # type: ignore[override]
    """The policy in behavioral form, shape (sequences,).

    It is uniform at infosets that the player's strategy never reaches.
    """
    return forms.behavioral_form(self.compiled_game, self.sequence_form)
