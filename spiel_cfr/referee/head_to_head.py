"""Head-to-head evaluation: the exact expected payoffs of policies against each other, as a table."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled import counterfactual_values
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.policies import forms
from spiel_cfr.referee.policy_conversion import PolicyLike, to_behavioral_form


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class HeadToHead:
  """Expected payoffs of policies against each other, in the game's units per play; `print` shows a table of `scores`.

  Attributes:
    names: tuple of str. The names of the policies.
    values: float64 (2, policies, policies). The expected payoffs of players 0 and 1 if the policy of the row is player
      0 and the policy of the column is player 1.
  """

  names: tuple[str, ...]
  values: Float64s

  @property
  def scores(self) -> Float64s:
    """Payoff of the row's policy against the column's, averaged over both seats, float64 (policies, policies)."""
    scores: Float64s = (self.values[0] + self.values[1].T) / 2
    return scores

  def __repr__(self) -> str:
    return f"<HeadToHead of {', '.join(self.names)}>"

  def __str__(self) -> str:
    width = max(12, *(len(name) + 2 for name in self.names))
    lines = ["".join(name.rjust(width) for name in ("", *self.names))]
    for name, row in zip(self.names, self.scores.tolist(), strict=True):
      lines.append(name.rjust(width) + "".join(f"{score:z{width}.6f}" for score in row))
    return "\n".join(lines)


def head_to_head(game: AnyGame, policies: Mapping[str, PolicyLike], **options: Any) -> HeadToHead:
  """Returns the exact expected payoffs of policies against each other, in both seats.

      >>> uniform = lambda tensors, legal_actions: legal_actions / legal_actions.sum(axis=1, keepdims=True)
      >>> print(head_to_head("kuhn_poker", {"uniform": uniform, "also": uniform}))
                       uniform        also
           uniform    0.000000    0.000000
              also    0.000000    0.000000

  Args:
    game: a two-player game: compiled, or an argument of `compile_game`. For more players, use `expected_values`.
    policies: name -> policy, as `judge` takes it. For agents and bots it is a list with one for each seat.
    options: the arguments `observes`, `answers` and `batch_size` of `judge`.

  Raises:
    UnsupportedGameError: the game does not have two players.
    ArgumentError: `policies` is not a mapping, or empty.
    PolicyError: see `judge`.
    GameError: see `compile_game`.
  """
  compiled = compile_game(game).original
  if compiled.num_players != 2:
    raise errors.UnsupportedGameError(
      f"head_to_head needs two players, and {compiled.name} has {compiled.num_players}. Give `expected_values` a list "
      "with a policy for each player."
    )
  if not isinstance(policies, Mapping) or not policies:
    raise errors.ArgumentError(
      f"policies must be policies by name, in a mapping, not {arguments.shortened(policies)}."
    )
  sequence_forms = np.array(
    [
      forms.sequence_form(compiled, to_behavioral_form(compiled, policy, **options))
      for policy in policies.values()
    ]
  )
  gradients = np.array(
    [counterfactual_values.gradients(compiled, sequence_form) for sequence_form in sequence_forms]
  )
  first, second = (slice(tree.root, tree.end) for tree in compiled.treeplexes)
  values = [
    sequence_forms[:, first] @ gradients[:, first].T,
    gradients[:, second] @ sequence_forms[:, second].T,
  ]
  return HeadToHead(tuple(map(str, policies)), np.array(values))
