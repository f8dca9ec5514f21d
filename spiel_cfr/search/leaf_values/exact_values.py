"""Exact leaf values: counterfactual values of public states by linear programs, or by best responses to a policy."""

import abc
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.policies.open_spiel import AnyPolicy
from spiel_cfr.search.subgames.subgame_solver import SubgameSolver, solve_unsafe
from spiel_cfr.search.trees.forest_tree import forest_of
from spiel_cfr.search.trees.public_state_trees import list_histories
from spiel_cfr.search.trees.search_tree import PublicState, RangesByState, SearchTree


class ExactValues(abc.ABC):
  """Counterfactual values by best responses in the rest of the game, as a function of public states and ranges.

  `LeafValues` describes the function.

  Attributes:
    tree: `ForestTree`. All public states of the game. A public state of another tree is looked up by its histories.
  """

  def __init__(self, game: AnyGame | SearchTree) -> None:
    """Takes the public states of a game, or lists its histories.

    Raises:
      UnsupportedGameError: see `public_states`.
      GameTooLargeError: see `public_states`.
      GameError: see `compile_game`.
    """
    self.tree = forest_of(game) if isinstance(game, SearchTree) else list_histories(game)
    # By another tree and the index of a public state in it: the index in `tree`.
    self._indices = weakref.WeakKeyDictionary[SearchTree, dict[int, int]]()

  def __getstate__(self) -> dict[str, Any]:
    # Copies look the indices up again.
    return {name: value for name, value in self.__dict__.items() if name != "_indices"}

  def __setstate__(self, attributes: dict[str, Any]) -> None:
    self.__dict__.update(attributes)
    self._indices = weakref.WeakKeyDictionary[SearchTree, dict[int, int]]()

  @abc.abstractmethod
  def _faced_policy(self, ranges: RangesByState) -> Float64s:
    """Returns the policy to which both players respond, shape (slots,).

    Args:
      ranges: by the index of a public state, both players' ranges.
    """

  def __call__(self, public_states: Sequence[PublicState], ranges: Float64s) -> Float64s:
    """Returns counterfactual values of private states, including those to which their player never plays.

    Args:
      public_states: public states, none below another. A public state may occur several times.
      ranges: float64 (public states, 2, private states). Both players' ranges.

    Returns:
      An array of the shape of `ranges`.

    Raises:
      ArgumentError: a public state does not belong to this game.
      NoSolutionError: a linear program could not be solved.
    """
    result = np.zeros_like(ranges)
    for positions in _without_repetition(public_states):
      given_ranges = {}
      for position in positions:
        index = self._index(public_states[position])
        counts = self.tree.num_private_states(index)
        given_ranges[index] = ranges[position, 0, : counts[0]], ranges[position, 1, : counts[1]]
      policy = self._faced_policy(given_ranges)
      for player in (0, 1):
        evaluated = self.tree.evaluated(policy, 1 - player, given_ranges)
        for position, index in zip(positions, given_ranges, strict=True):
          values = evaluated.opponent_values(index)
          result[position, player, : len(values)] = values
    return result

  def _index(self, state: PublicState) -> int:
    """Returns the index of a public state in the tree of the whole game."""
    if state.tree is self.tree:
      return state.index
    indices = self._indices.setdefault(state.tree, {})
    if state.index not in indices:
      whole = self.tree.public_state_of(next(iter(state.states())))
      if any(whole.private_states(player) != state.private_states(player) for player in (0, 1)):
        raise errors.ArgumentError(f"{state!r} is not a public state of {self.tree.game}.")
      indices[state.index] = whole.index
    return indices[state.index]


class SolvedValues(ExactValues):
  """Values of an equilibrium of the rest of the game, by a linear program: exact, and slower than a network."""

  def _faced_policy(self, ranges: RangesByState) -> Float64s:
    policy = self.tree.uniform()
    solve_unsafe(self.tree, ranges, SubgameSolver("lp"), policy)
    return policy


class ResponseValues(ExactValues):
  """Values of each player's best response to a policy of the other: an upper bound on the values of both."""

  def __init__(self, game: AnyGame | SearchTree, policy: AnyPolicy) -> None:
    """Takes the public states of a game, or lists its histories, and a policy of both players.

    Raises:
      PolicyError: the policy does not know the game's infosets.
      GameError: see `ExactValues`.
    """
    super().__init__(game)
    self._policy = self.tree.policy_array(policy)

  def _faced_policy(self, ranges: RangesByState) -> Float64s:
    return self._policy


def _without_repetition(states: Sequence[PublicState]) -> Iterator[list[int]]:
  """Yields runs of positions; the public states at the positions of one run are all different."""
  seen, positions = set[PublicState](), list[int]()
  for position, state in enumerate(states):
    if state in seen:
      yield positions
      seen, positions = set(), []
    seen.add(state)
    positions.append(position)
  if positions:
    yield positions
