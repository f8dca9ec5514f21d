"""Exact leaf values: counterfactual values of public states, by linear programs or by best responses to a policy."""

import abc
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.evaluation.linear_program import solve_lp
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.policies.open_spiel import AnyPolicy
from spiel_cfr.search.cut_outs import Pair
from spiel_cfr.search.forest_tree import forest_of
from spiel_cfr.search.gadgets import GADGETS
from spiel_cfr.search.public_states import list_histories
from spiel_cfr.search.search_tree import PublicState, SearchTree


class ExactValues(abc.ABC):
  """Counterfactual values by best responses in the rest of the game, as a function of public states and ranges.

  `LeafValues` describes the function.

  Attributes:
    tree: `ForestTree`. All public states of the game. Public states of other trees are looked up here.
  """

  def __init__(self, game: AnyGame | SearchTree) -> None:
    """Takes the public states of a game, or lists its histories.

    Raises:
      UnsupportedGameError: see `public_states`.
      GameTooLargeError: see `public_states`.
      GameError: see `compile_game`.
    """
    self.tree = forest_of(game) if isinstance(game, SearchTree) else list_histories(game)
    self._numbers = weakref.WeakKeyDictionary[SearchTree, dict[int, int]]()

  def __getstate__(self) -> dict[str, Any]:
    # Copies look the indices up again.
    return {name: value for name, value in self.__dict__.items() if name != "_numbers"}

  def __setstate__(self, attributes: dict[str, Any]) -> None:
    self.__dict__.update(attributes)
    self._numbers = weakref.WeakKeyDictionary[SearchTree, dict[int, int]]()

  @abc.abstractmethod
  def _played(self, ranges: dict[int, Pair]) -> Float64s:
    """Returns the policy to which both players respond, shape (entries,).

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
    for places in _without_repetition(public_states):
      begins = {}
      for place in places:
        number = self._number(public_states[place])
        counts = self.tree.num_private_states(number)
        begins[number] = ranges[place, 0, : counts[0]], ranges[place, 1, : counts[1]]
      played = self._played(begins)
      for player in (0, 1):
        responds = self.tree.blueprint(played, 1 - player, begins)
        for place, number in zip(places, begins, strict=True):
          found = responds.values(number)
          result[place, player, : len(found)] = found
    return result

  def _number(self, state: PublicState) -> int:
    """Returns the index of a public state in the tree of the whole game."""
    if state.tree is self.tree:
      return state.number
    numbers = self._numbers.setdefault(state.tree, {})
    if state.number not in numbers:
      whole = self.tree.public_state_of(next(iter(state.states())))
      if any(whole.private_states(each) != state.private_states(each) for each in (0, 1)):
        raise errors.ArgumentError(f"{state!r} is no public state of {self.tree.game}.")
      numbers[state.number] = whole.number
    return numbers[state.number]


class SolvedValues(ExactValues):
  """Values of an equilibrium of the rest of the game, by a linear program: exact, and slower than a network."""

  def _played(self, ranges: dict[int, Pair]) -> Float64s:
    tree, unsafe, played = self.tree, GADGETS["unsafe"], self.tree.uniform()
    starts = [
      tree.start(number, own, 0, unsafe, np.zeros(len(own[1]))) for number, own in ranges.items()
    ]
    possible = [start for start in starts if start is not None]
    if possible:
      cut = tree.cut_out(possible, unsafe)
      solution = solve_lp(cut.game).sequence_form
      for player in (0, 1):
        cut.write(solution, played, player)
    return played


class ResponseValues(ExactValues):
  """Values of best responses to a policy: the largest that each player can get if the other plays the policy."""

  def __init__(self, game: AnyGame | SearchTree, policy: AnyPolicy) -> None:
    """Takes the public states of a game, or lists its histories, and a policy of both players.

    Raises:
      PolicyError: the policy does not know the game's infosets.
      GameError: see `ExactValues`.
    """
    super().__init__(game)
    self._entries = self.tree.entries(policy)

  def _played(self, ranges: dict[int, Pair]) -> Float64s:
    return self._entries


def _without_repetition(states: Sequence[PublicState]) -> Iterator[list[int]]:
  """Yields runs of positions; the public states at the positions of one run are all different."""
  seen, places = set[PublicState](), list[int]()
  for place, state in enumerate(states):
    if state in seen:
      yield places
      seen, places = set(), []
    seen.add(state)
    places.append(place)
  if places:
    yield places
