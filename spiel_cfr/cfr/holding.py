"""Holding a part of a policy fixed, which solvers that go through all infosets can do (node locking)."""

import abc
from collections.abc import Iterable

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import AnyFloats, Float64s
from spiel_cfr.cfr.warm_start import WarmStarting
from spiel_cfr.policies import open_spiel
from spiel_cfr.policies.locked import Mask, held_part, held_sequences


class Holding(WarmStarting):
  """A solver that can keep a part of its policy fixed, whatever its minimizer chooses there."""

  # 1 at infosets that are held, shape (infosets,).
  _held: Mask

  @property
  @abc.abstractmethod
  def _strategy(self) -> AnyFloats:
    """What is played, shape (sequences,)."""

  def hold(self, policy: open_spiel.AnyPolicy, infostates: Iterable[str] | None = None) -> None:
    """Keeps a part of the policy fixed: regret is minimized around it (node locking).

    The average tends to an equilibrium of the game in which these infosets have no choice. NashConv still counts what
    their owner would gain by playing otherwise. Minimizers that predict take held infosets for free ones when they do,
    which leaves their guarantees as they are: those hold for any prediction.

    Args:
      policy: what is to be played there: anything that `policy.from_policy` reads, or a mapping from these infostates.
      infostates: where; by default everywhere in a mapping.

    Raises:
      LockError: iterations have been done, infosets of the game are shared, or the solver is of a kind that can't.
      PolicyError: there is no such infostate, or no distribution there.
    """
    if self.iteration:
      raise errors.LockError(f"{self!r} has run. Hold a policy before the first iteration.")
    if self.compiled_game.shared_infosets is not None:
      raise errors.LockError(
        f"In {self.compiled_game} infosets are shared (imperfect recall), and one can't be held without the others. "
        "Take buckets that remember the player's own actions, or the full game."
      )
    held, probabilities = held_part(self.compiled_game, policy, infostates)
    self._held |= held
    sequences = held_sequences(self.compiled_game, held)
    self._strategy[sequences] = probabilities[sequences]
    self._loaded()

  def _with_held(self, probabilities: Float64s) -> Float64s:
    held = held_sequences(self.compiled_game, self._held)
    result = np.array(probabilities)
    result[held] = self._strategy[held]
    return result
