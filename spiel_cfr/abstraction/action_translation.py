"""Action translation: how the policy of a game with fewer actions answers actions that this game leaves out.

A game is solved with an action filter, but in the whole game other players take actions that the filter leaves out. A
translation maps such an action to kept actions, with probabilities. See Ganzfried and Sandholm, "Action Translation in
Extensive-Form Games with Large Action Spaces" (2013). Their pseudo-harmonic mapping takes a bet of x pots, between the
sizes A < B, for A with probability

    (B - x) (1 + A) / ((B - A) (1 + x))

The player remembers the translations of all earlier actions. A history h of the whole game thus corresponds to a
mixture of histories h' of the filtered game. With x' the player's sequence form there, its sequence form in the whole
game is

    x(s) = sum over histories h' of h:  P(h') x'(s at h')

This is an ordinary strategy, which is evaluated exactly.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr._util.doors import typed
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.policies import CompiledTabularPolicy, forms, open_spiel

# The mixture that stands for a history of the whole game: states of the filtered game (None if the player to move there
# is another), their probabilities, and the player's own reach probability at each.
_Mixture: TypeAlias = list[tuple[Any, float, float]]
# (state of the filtered game, an action that it leaves out) -> dict from kept actions to probabilities.
Translation: TypeAlias = Callable[[Any, int], Mapping[int, float]]
_TOLERANCE = 1e-9


@typed
def pseudo_harmonic(bet: float, below: float, above: float) -> float:
  """Returns the probability that a bet is translated to the smaller of two sizes.

      >>> pseudo_harmonic(1.0, 0.5, 2.0)
      0.5

  Args:
    bet: the bet, as a multiple of the pot.
    below: the smaller size, as a multiple of the pot; 0 is a check.
    above: the larger size, as a multiple of the pot.

  Raises:
    ArgumentError: the sizes are not numbers with 0 <= below <= bet <= above, below < above.
  """
  below = arguments.real_number(below, "below", 0.0)
  above = arguments.positive_number(above, "above")
  if not below < above:
    raise errors.ArgumentError(f"below must be smaller than above, not {below} and {above}.")
  bet = arguments.real_number(bet, "bet", below, above)
  return (above - bet) * (1 + below) / ((above - below) * (1 + bet))


@typed
def nearest_sizes(filtered: CompiledGame, size: Callable[[Any, int], float | None]) -> Translation:
  """Returns the translation of a bet to the next smaller or larger kept bet, by `pseudo_harmonic`.

  Args:
    filtered: a game compiled with an action filter.
    size: takes a state and an action; returns its size as a multiple of the pot: 0 for a check or call, None for
      actions without a size, such as a fold. It must not look at hidden information.
  """

  def translate(state: Any, action: int) -> dict[int, float]:
    bet = size(state, action)
    kept = filtered.view.legal_actions(state)
    sizes = {move: found for move in kept if (found := size(state, move)) is not None}
    if bet is None or not sizes:
      raise errors.AbstractionError(
        f"After [{state.history_str()}] action {action} is of size {bet}, and the kept actions are of sizes {sizes}: "
        "there is none to translate it to."
      )
    below = max((move for move in sizes if sizes[move] <= bet), key=sizes.__getitem__, default=None)
    above = min((move for move in sizes if sizes[move] > bet), key=sizes.__getitem__, default=None)
    if below is None or above is None:
      return {move: 1.0 for move in (below, above) if move is not None}
    smaller = pseudo_harmonic(bet, sizes[below], sizes[above])
    return {below: smaller, above: 1 - smaller}

  return translate


@typed
def translated_policy(
  game: CompiledGame, filtered: CompiledGame, policy: open_spiel.AnyPolicy, translate: Translation
) -> CompiledTabularPolicy:
  """Returns the policy of a filtered game as a policy of the whole game.

      small = compile_game(game.game, action_filter=few_bets)
      policy = translated_policy(game, small, solver, nearest_sizes(small, size))
      exploitability(game, policy)

  The policy is uniform at infosets that its owner never reaches. It is also uniform where another player moves in the
  filtered game: a bet translated to all-in ends the betting there, but not in the whole game.

  Args:
    game: the whole game.
    filtered: the same game, compiled with an action filter.
    policy: a policy of the filtered game.
    translate: called with a state of the filtered game, and an action of another player that the filter leaves out
      there; returns probabilities of kept actions. The state is OpenSpiel's and lists all legal actions. The function
      must not look at information that is hidden from the others.

  Raises:
    AbstractionError: the games differ by more than a filter; or a translation does not return probabilities of kept
      actions, or returns different ones at histories of the same infoset.
    PolicyError: the policy is not one of the filtered game.
  """
  for given in (game, filtered):
    if not isinstance(given, CompiledGame):
      raise errors.ArgumentError(
        f"game and filtered must be results of compile_game, not {given!r}."
      )
  if game.game_string != filtered.game_string:
    raise errors.AbstractionError(f"{filtered} is not {game} with an action filter.")
  probabilities = open_spiel.from_policy(filtered, policy)
  sequence_form = forms.sequence_form(filtered, probabilities)
  walk = _TranslatedWalk(game, filtered, filtered.to_actions(sequence_form), translate)
  walk.run()
  sums = game.from_actions(np.maximum(walk.entries, 0.0))
  return CompiledTabularPolicy(game, forms.behavioral_form(game, sums))


class _TranslatedWalk:
  """A walk of the whole game, with the mixture of histories of the filtered game that stands for each history.

  Attributes:
    entries: float64 (actions,). The translated sequence form at each action of the whole game; -1 before it is found.
  """

  def __init__(
    self,
    game: CompiledGame,
    filtered: CompiledGame,
    sequence_form: Float64s,
    translate: Translation,
  ) -> None:
    """Takes the sequence form of the filtered game's actions."""
    self._game, self._filtered, self._translate = game, filtered, translate
    self._sequence_form, self._actions = sequence_form, np.concatenate(filtered.actions)
    self._places, self._filtered_places = _action_slices(game), _action_slices(filtered)
    self.entries = np.full(len(game.all_action_sequences), -1.0)

  def run(self) -> None:
    """Walks all histories."""
    game = self._game
    root = self._filtered.view.new_initial_state()
    mixtures: list[_Mixture] = [[(root, 1.0, 1.0)] for _ in range(game.num_players)]
    stack = [(game.view.new_initial_state(), mixtures)]
    while stack:
      state, mixtures = stack.pop()
      if state.is_terminal():
        continue
      if state.is_chance_node():
        for action, _ in game.view.chance_outcomes(state):
          stack.append((state.child(action), [_dealt(mixture, action) for mixture in mixtures]))
        continue
      mover, legal = state.current_player(), game.view.legal_actions(state)
      played = self._strategies(mixtures[mover], mover, legal)
      self._write(state, legal, played)
      for action in legal:
        moved: _Mixture = [
          (None if taken is None else taken.child(action), chance, strategy[action])
          for taken, chance, strategy in played
          if action in strategy
        ]
        after = [
          moved if player == mover else self._answered(mixture, mover, action)
          for player, mixture in enumerate(mixtures)
        ]
        stack.append((state.child(action), after))

  def _strategies(
    self, mixture: _Mixture, mover: int, legal: list[int]
  ) -> list[tuple[Any, float, dict[int, float]]]:
    """Returns the player's sequence form at each action, for each part of its mixture."""
    result: list[tuple[Any, float, dict[int, float]]] = []
    for taken, chance, reach in mixture:
      if taken is None or taken.current_player() != mover:
        result.append((None, chance, dict.fromkeys(legal, reach / len(legal))))
      else:
        here = self._filtered_places[mover][self._filtered.view.infostate(taken)]
        played = zip(self._actions[here].tolist(), self._sequence_form[here].tolist(), strict=True)
        result.append((taken, chance, dict(played)))
    return result

  def _write(
    self, state: Any, legal: list[int], played: list[tuple[Any, float, dict[int, float]]]
  ) -> None:
    """Writes the mixture of strategies at a state; it must be the same at all states of the infoset."""
    here = self._places[state.current_player()][self._game.view.infostate(state)]
    mixed = np.array(
      [
        sum(chance * strategy.get(action, 0.0) for _, chance, strategy in played)
        for action in legal
      ]
    )
    before = self.entries[here]
    if before[0] >= 0 and np.abs(before - mixed).max() > _TOLERANCE:
      raise errors.AbstractionError(
        f"After the history [{state.history_str()}] the translation answers otherwise than at another history of the "
        "same infoset: it must see what the player sees, and nothing else."
      )
    self.entries[here] = mixed

  def _answered(self, mixture: _Mixture, mover: int, action: int) -> _Mixture:
    """Returns a player's mixture after another player's action."""
    result: _Mixture = []
    for taken, chance, reach in mixture:
      if taken is None or taken.current_player() != mover:
        result.append((None, chance, reach))
        continue
      kept = self._filtered.view.legal_actions(taken)
      found = {action: 1.0} if action in kept else dict(self._translate(taken, action))
      chances = np.array(list(found.values()), np.float64)
      if not set(found) <= set(kept) or not (
        (chances >= 0).all() and abs(chances.sum() - 1) < _TOLERANCE
      ):
        raise errors.AbstractionError(
          f"The translation takes action {action} after [{taken.history_str()}] for {found}; it must return "
          f"probabilities of the kept actions {kept}."
        )
      result += [(taken.child(move), chance * part, reach) for move, part in found.items()]
    return result


def _dealt(mixture: _Mixture, action: int) -> _Mixture:
  """Returns a mixture after a move of chance."""
  return [
    (taken.child(action) if taken is not None and taken.is_chance_node() else None, chance, reach)
    for taken, chance, reach in mixture
  ]


def _action_slices(game: CompiledGame) -> list[dict[str, slice]]:
  """Returns, for each player, a dict from infostates to the slices of their actions among those of all players."""
  result, begin = [], 0
  for own in game.infosets:
    starts = begin + np.cumsum(own.num_actions) - own.num_actions
    ends = starts + own.num_actions
    places = map(slice, starts.tolist(), ends.tolist())
    result.append(dict(zip(own.infostates, places, strict=True)))
    begin += len(own.actions)
  return result
