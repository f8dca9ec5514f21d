"""Node locking: infosets at which a full-width solver keeps a given strategy."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.cfr.loops.state import FullWidthState
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.policies import open_spiel
from spiel_cfr.policies.locked import Mask, locked_part, locked_sequences


def part_to_lock(
  solver: str,
  game: CompiledGame,
  policy: open_spiel.AnyPolicy,
  infostates: Iterable[Any] | None,
  against_best_responses: bool,
) -> tuple[Mask, Float64s]:
  """Checks a request to lock a policy, and returns the infosets and probabilities to lock.

  Args:
    solver: the name of the solver in messages.
    game: the game.
    policy: the policy to lock, see `policies.locked.locked_part`.
    infostates: the infosets to lock, see `locked_part`.
    against_best_responses: whether the solver's opponents are best responses.

  Returns:
    A mask of shape (infosets,), and probabilities of shape (sequences,).

  Raises:
    LockError: infosets of the game are shared, or opponents are best responses.
    PolicyError: an infostate is unknown, or has no distribution.
  """
  if game.shared_infosets is not None:
    raise errors.LockError(
      f"In {game} infosets are shared (imperfect recall), and one can't be locked without the others. Use buckets "
      "that remember the player's own actions, or the full game."
    )
  if against_best_responses:
    raise errors.LockError(
      f"{solver} can't lock a policy, since its best responses would ignore the lock. Use CFRPlusSolver."
    )
  return locked_part(game, policy, infostates)


def with_locked(game: CompiledGame, state: FullWidthState, probabilities: Float64s) -> Float64s:
  """Returns a copy of a behavioral form in which the locked infosets of a state have their locked strategies."""
  result = np.array(probabilities)
  locked = locked_sequences(game, state.locked)
  result[locked] = state.strategy[locked]
  return result
