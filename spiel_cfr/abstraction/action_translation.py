"""Actions that an abstraction does not know: how its policies answer them, and what that is worth in the whole game.

A game is solved with an action filter; in the whole game others play what the filter has left out. A translation says
which kept actions such an action is taken for, with which probabilities. Ganzfried and Sandholm, "Action Translation in
Extensive-Form Games with Large Action Spaces" (2013), whose pseudo-harmonic mapping takes a bet of x pots between the
sizes A < B for A with probability

    (B - x) (1 + A) / ((B - A) (1 + x))

The player remembers what others' actions were taken for. So at each history of the whole game there is a mixture of
histories of the filtered one, and with x' the player's sequence form there, that in the whole game is

    x(s) = sum over histories h' that h may have been taken for:  P(h') x'(s at h')

which is a strategy like any other: it is evaluated exactly.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from spiel_cfr import errors
from spiel_cfr._util import arguments
from spiel_cfr._util.doors import typed
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.policies import CompiledTabularPolicy, forms, open_spiel

# What a history of the whole game may have been taken for: a state of the filtered game, None where that has gone
# another way; the probability of it; and how often the player itself plays to it.
_Taken: TypeAlias = list[tuple[Any, float, float]]
# (state of the filtered game, action that it does not have) -> kept action -> probability.
Translation: TypeAlias = Callable[[Any, int], Mapping[int, float]]
_TOLERANCE = 1e-9


@typed
def pseudo_harmonic(bet: float, below: float, above: float) -> float:
  """Returns the probability that a bet is taken for the smaller of two sizes.

      >>> pseudo_harmonic(1.0, 0.5, 2.0)
      0.5

  Args:
    bet: the bet, as a multiple of the pot.
    below: the smaller size, as a multiple of the pot; 0 is to check.
    above: the larger size.

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
  """Returns the translation that takes a bet for the next smaller or larger kept one, by `pseudo_harmonic`.

  Args:
    filtered: a game compiled with an action filter.
    size: takes a state and an action; returns its size as a multiple of the pot, 0 if it is to check or to call, and
      None if it has none, such as to fold. It must not look at what is hidden.
  """

  def translate(state: Any, action: int) -> dict[int, float]:
    bet = size(state, action)
    kept = filtered.view.legal_actions(state)
    sizes = {each: found for each in kept if (found := size(state, each)) is not None}
    if bet is None or not sizes:
      raise errors.AbstractionError(
        f"After [{state.history_str()}] action {action} is of size {bet}, and the kept actions are of sizes {sizes}: "
        "there is none to take it for."
      )
    below = max((each for each in sizes if sizes[each] <= bet), key=sizes.__getitem__, default=None)
    above = min((each for each in sizes if sizes[each] > bet), key=sizes.__getitem__, default=None)
    if below is None or above is None:
      return {each: 1.0 for each in (below, above) if each is not None}
    smaller = pseudo_harmonic(bet, sizes[below], sizes[above])
    return {below: smaller, above: 1 - smaller}

  return translate


@typed
def translated_policy(
  game: CompiledGame, filtered: CompiledGame, policy: open_spiel.AnyPolicy, translate: Translation
) -> CompiledTabularPolicy:
  """Returns the policy of a filtered game as one of the whole game.

      small = compile_game(game.game, action_filter=few_bets)
      policy = translated_policy(game, small, solver, nearest_sizes(small, size))
      exploitability(game, policy)

  Where its owner would never play to, it is uniform; also where the filtered game has gone another way, as when a bet
  is taken for all the chips there are, and whoever has called it may act again.

  Args:
    game: the whole game.
    filtered: the same game, compiled with an action filter.
    policy: of the filtered game.
    translate: called with a state of the filtered game, which as one of OpenSpiel's lists all legal actions, and an
      action of another player that the filter leaves out there; returns what the action is taken for, and with which
      probabilities. It must not look at what is hidden from the others.

  Raises:
    AbstractionError: the games have nothing to do with each other, or a translation returns no probabilities of kept
      actions, or other ones at histories of the same infoset.
    PolicyError: the policy is not one of the filtered game.
  """
  for given in (game, filtered):
    if not isinstance(given, CompiledGame):
      raise errors.ArgumentError(f"Give what compile_game returns, not {given!r}.")
  if game.game_string != filtered.game_string:
    raise errors.AbstractionError(f"{filtered} is not {game} with an action filter.")
  probabilities = open_spiel.from_policy(filtered, policy)
  sequence_form = forms.sequence_form(filtered, probabilities)
  known = _first_actions(filtered)
  firsts = _first_actions(game)
  own_form, entries = (
    filtered.to_actions(sequence_form),
    np.full(len(game.all_action_sequences), -1.0),
  )
  filtered_actions = np.concatenate(filtered.actions)

  root = filtered.view.new_initial_state()
  everywhere: list[_Taken] = [[(root, 1.0, 1.0)] for _ in range(game.num_players)]
  stack = [(game.view.new_initial_state(), everywhere)]
  while stack:
    state, taken = stack.pop()
    if state.is_terminal():
      continue
    if state.is_chance_node():
      for action, _ in game.view.chance_outcomes(state):
        stack.append((state.child(action), [_dealt(each, action) for each in taken]))
      continue
    mover = state.current_player()
    legal = game.view.legal_actions(state)
    own: list[tuple[Any, float, dict[int, float]]] = []
    for each, chance, reach in taken[mover]:
      if each is None or each.current_player() != mover:
        own.append((None, chance, dict.fromkeys(legal, reach / len(legal))))
      else:
        first, count = known[mover][filtered.view.infostate(each)]
        here = slice(first, first + count)
        played = zip(filtered_actions[here].tolist(), own_form[here].tolist(), strict=True)
        own.append((each, chance, dict(played)))
    first, count = firsts[mover][game.view.infostate(state)]
    mixed = np.array(
      [sum(chance * played.get(action, 0.0) for _, chance, played in own) for action in legal]
    )
    if entries[first] >= 0 and np.abs(entries[first : first + count] - mixed).max() > _TOLERANCE:
      raise errors.AbstractionError(
        f"After the history [{state.history_str()}] the translation answers otherwise than at another history of the "
        "same infoset: it must see what the player sees, and nothing else."
      )
    entries[first : first + count] = mixed
    for action in legal:
      moved: _Taken = [
        (None if each is None else each.child(action), chance, played[action])
        for each, chance, played in own
        if action in played
      ]
      after = [
        moved if player == mover else _answered(filtered, each, mover, action, translate)
        for player, each in enumerate(taken)
      ]
      stack.append((state.child(action), after))
  sums = game.from_actions(np.maximum(entries, 0.0))
  return CompiledTabularPolicy(game, forms.behavioral_form(game, sums))


def _dealt(taken: _Taken, action: int) -> _Taken:
  """Returns what a history may have been taken for after a move of chance."""
  return [
    (each.child(action) if each is not None and each.is_chance_node() else None, chance, reach)
    for each, chance, reach in taken
  ]


def _answered(
  filtered: CompiledGame, taken: _Taken, mover: int, action: int, translate: Translation
) -> _Taken:
  """Returns what a history may have been taken for after another player's action."""
  result: _Taken = []
  for each, chance, reach in taken:
    if each is None or each.current_player() != mover:
      result.append((None, chance, reach))
      continue
    kept = filtered.view.legal_actions(each)
    found = {action: 1.0} if action in kept else dict(translate(each, action))
    chances = np.array(list(found.values()), np.float64)
    if not set(found) <= set(kept) or not (
      (chances >= 0).all() and abs(chances.sum() - 1) < _TOLERANCE
    ):
      raise errors.AbstractionError(
        f"The translation takes action {action} after [{each.history_str()}] for {found}; it must return "
        f"probabilities of the kept actions {kept}."
      )
    result += [(each.child(taken_for), chance * part, reach) for taken_for, part in found.items()]
  return result


def _first_actions(game: CompiledGame) -> list[dict[str, tuple[int, int]]]:
  """For each infostate, where its actions begin in those of all players, and how many they are."""
  result, begin = [], 0
  for own in game.infosets:
    starts = begin + np.cumsum(own.num_actions) - own.num_actions
    places = zip(starts.tolist(), own.num_actions.tolist(), strict=True)
    result.append(dict(zip(own.infostates, places, strict=True)))
    begin += len(own.actions)
  return result
