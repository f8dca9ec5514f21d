"""Check of a user's form of payoffs: its gradient is compared with its list of leaves."""

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import aligned
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.policies import forms

_SEED, _TOLERANCE = 0, {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-4}


@typed
def check_payoff(game: CompiledGame) -> None:
  """Checks `Payoff.gradient_step` and `Payoff.leaves` of a game against each other, at a random policy.

  Solvers read only the gradient; linear programs and pruning read only the leaves.

  Args:
    game: a compiled game, such as one with a form of payoffs of your own.

  Raises:
    ArgumentError: a leaf is at no sequence of the player, or the gradient differs from the one computed from leaves.
  """
  weights = np.random.default_rng(_SEED).random(game.end)
  point = forms.sequence_form(game, forms.behavioral_form(game, weights)).astype(game.dtype)
  tolerance, played = _TOLERANCE[game.dtype], np.zeros(game.end, np.bool_)
  played[game.all_action_sequences] = True
  for tree in game.treeplexes:
    played[tree.root] = True
  for player, tree in enumerate(game.treeplexes):
    leaves, is_own = game.payoff.leaves(player), np.zeros(game.end, np.bool_)
    is_own[tree.root : tree.end] = played[tree.root : tree.end]
    wrong = [own for own in leaves.own.tolist() if not (own < game.end and is_own[own])]
    if wrong:
      raise errors.ArgumentError(
        f"leaves({player}).own has the number {wrong[0]}, which is no sequence of player {player}. Use the numbers of "
        "`Infosets.sequences`: an infoset's actions are not neighbors."
      )
    utility, expected = aligned(np.full(game.end, np.nan, game.dtype)), np.zeros(game.end)
    game.payoff.gradient_into(player, aligned(point), utility)
    np.add.at(expected, leaves.own, leaves.values * point[leaves.others].prod(axis=0))
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    differs = is_own & ~(np.abs(utility - expected) <= tolerance * scale)
    if differs.any():
      at = int(differs.argmax())
      raise errors.ArgumentError(
        f"gradient_step and leaves of {type(game.payoff).__name__} differ: at sequence {at} of player {player}, the "
        f"gradient is {utility[at]:zg}, and the sum over the leaves is {expected[at]:zg}."
      )
