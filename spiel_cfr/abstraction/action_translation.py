"""Action translation: a map from actions that an abstraction lacks to actions that it has.

If a game is solved with an action filter, players of the whole game can take actions that the filter removed. A
translation maps such an action to a distribution over kept actions. See Ganzfried and Sandholm, "Action Translation in
Extensive-Form Games with Large Action Spaces" (2013). Their pseudo-harmonic mapping translates a bet of x pots, between
kept sizes A < B, to A with probability

    (B - x) (1 + A) / ((B - A) (1 + x))

The player remembers the translations of all earlier actions. A history h of the whole game is thus translated to a
mixture of histories h' of the filtered game, with probabilities P(h'). Let x' be the player's strategy in the filtered
game in sequence form. Its strategy in the whole game is

    x(s) = sum over translations h' of h:  P(h') x'(s at h')

This is an ordinary strategy, so it can be evaluated exactly.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.infosets import entry_slices
from spiel_cfr.policies import CompiledTabularPolicy, forms, open_spiel

# The translations of a history of the whole game, for one player. A translation is a state of the filtered game, its
# probability, and the player's reach probability there. The state is None if the filtered game has no such state.
_Mixture: TypeAlias = list[tuple[Any, float, float]]
# Function from a state of the filtered game and a missing action to a dictionary: kept action -> probability.
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
  """Returns the translation of bets to the next smaller and the next larger kept bet, by `pseudo_harmonic`.

  Args:
    filtered: a game compiled with an action filter.
    size: a function from a state and an action to the size of the action, as a multiple of the pot: 0 for a check or
      call, None for actions without a size, such as a fold. It must not use hidden information.
  """

  def translate(state: Any, action: int) -> dict[int, float]:
    bet = size(state, action)
    kept = filtered.view.legal_actions(state)
    sizes = {move: size_of_move for move in kept if (size_of_move := size(state, move)) is not None}
    if bet is None or not sizes:
      raise errors.AbstractionError(
        f"After [{state.history_str()}] action {action} is of size {bet}, and the kept actions are of sizes {sizes}: "
        "there is none to translate it to."
      )
    below = max((move for move in sizes if sizes[move] <= bet), key=sizes.__getitem__, default=None)
    above = min((move for move in sizes if sizes[move] > bet), key=sizes.__getitem__, default=None)
    if below is None or above is None:
      return {move: 1.0 for move in (below, above) if move is not None}
    probability = pseudo_harmonic(bet, sizes[below], sizes[above])
    return {below: probability, above: 1 - probability}

  return translate


@typed
def translated_policy(
  game: CompiledGame, filtered: CompiledGame, policy: open_spiel.AnyPolicy, translate: Translation
) -> CompiledTabularPolicy:
  """Returns the policy of a filtered game as a policy of the whole game.

      small = compile_game(game.game, action_filter=few_bets)
      policy = translated_policy(game, small, solver, nearest_sizes(small, size))
      exploitability(game, policy)

  The policy is uniform at infosets that its player never reaches. It is also uniform at states whose translation is a
  state of another player. For example, a bet translated to all-in ends the betting only in the filtered game.

  Args:
    game: the whole game.
    filtered: the same game, compiled with an action filter.
    policy: a policy of the filtered game.
    translate: a function from a state of the filtered game, and an action of another player that is missing there, to a
      dictionary: kept action -> probability. The state is OpenSpiel's, and lists all legal actions. The function must
      not use information that is hidden from other players.

  Raises:
    AbstractionError: the games differ by more than a filter. Or `translate` does not return probabilities of kept
      actions, or returns different ones at histories of the same infoset.
    PolicyError: the policy is not a policy of the filtered game.
  """
  if game.game_string != filtered.game_string:
    raise errors.AbstractionError(f"{filtered} is not {game} with an action filter.")
  probabilities = open_spiel.from_policy(filtered, policy)
  sequence_form = forms.sequence_form(filtered, probabilities)
  walk = _TranslatedWalk(game, filtered, filtered.to_actions(sequence_form), translate)
  walk.run()
  sums = game.from_actions(np.maximum(walk.entries, 0.0))
  return CompiledTabularPolicy(game, forms.behavioral_form(game, sums))


class _TranslatedWalk:
  """Walk over the histories of the whole game and their translations.

  Attributes:
    entries: float64 (actions,). The translated strategy in sequence form, at each action of the whole game; -1 before
      it is computed.
  """

  def __init__(
    self,
    game: CompiledGame,
    filtered: CompiledGame,
    sequence_form: Float64s,
    translate: Translation,
  ) -> None:
    """Prepares the walk.

    Args:
      game: the whole game.
      filtered: the filtered game.
      sequence_form: shape (actions of the filtered game,). The strategies in sequence form, in order of discovery.
      translate: the translation.
    """
    self._game, self._filtered, self._translate = game, filtered, translate
    self._sequence_form, self._actions = sequence_form, np.concatenate(filtered.actions)
    self._slices, self._filtered_slices = (entry_slices(each.infosets) for each in (game, filtered))
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
          children = [_after_chance(mixture, action) for mixture in mixtures]
          stack.append((state.child(action), children))
        continue
      mover, legal = state.current_player(), game.view.legal_actions(state)
      strategies = self._strategies(mixtures[mover], mover, legal)
      self._write(state, legal, strategies)
      for action in legal:
        mixture_of_mover: _Mixture = [
          (
            None if translation is None else translation.child(action),
            probability,
            reach_of[action],
          )
          for translation, probability, reach_of in strategies
          if action in reach_of
        ]
        children = [
          mixture_of_mover if player == mover else self._after_move(mixture, mover, action)
          for player, mixture in enumerate(mixtures)
        ]
        stack.append((state.child(action), children))

  def _strategies(
    self, mixture: _Mixture, mover: int, legal: list[int]
  ) -> list[tuple[Any, float, dict[int, float]]]:
    """Returns, for each translation in the mover's mixture, a dictionary: action -> the mover's reach after it."""
    result: list[tuple[Any, float, dict[int, float]]] = []
    for translation, probability, reach in mixture:
      if translation is None or translation.current_player() != mover:
        result.append((None, probability, dict.fromkeys(legal, reach / len(legal))))
      else:
        here = self._filtered_slices[mover][self._filtered.view.infostate(translation)]
        reach_of = zip(
          self._actions[here].tolist(), self._sequence_form[here].tolist(), strict=True
        )
        result.append((translation, probability, dict(reach_of)))
    return result

  def _write(
    self, state: Any, legal: list[int], strategies: list[tuple[Any, float, dict[int, float]]]
  ) -> None:
    """Writes the mean of the strategies of all translations of a state to `entries`.

    Raises:
      AbstractionError: the mean differs from that at an earlier state of the same infoset.
    """
    here = self._slices[state.current_player()][self._game.view.infostate(state)]
    mean = np.array(
      [
        sum(probability * reach_of.get(action, 0.0) for _, probability, reach_of in strategies)
        for action in legal
      ]
    )
    earlier = self.entries[here]
    if earlier[0] >= 0 and np.abs(earlier - mean).max() > _TOLERANCE:
      raise errors.AbstractionError(
        f"After the history [{state.history_str()}] the translation answers otherwise than at another history of the "
        "same infoset: it must see what the player sees, and nothing else."
      )
    self.entries[here] = mean

  def _after_move(self, mixture: _Mixture, mover: int, action: int) -> _Mixture:
    """Returns a player's mixture after an action of another player.

    Raises:
      AbstractionError: `translate` does not return probabilities of kept actions.
    """
    result: _Mixture = []
    for translation, probability, reach in mixture:
      if translation is None or translation.current_player() != mover:
        result.append((None, probability, reach))
        continue
      kept = self._filtered.view.legal_actions(translation)
      is_kept = action in kept
      distribution = {action: 1.0} if is_kept else dict(self._translate(translation, action))
      shares = np.array(list(distribution.values()), np.float64)
      if not set(distribution) <= set(kept) or not (
        (shares >= 0).all() and abs(shares.sum() - 1) < _TOLERANCE
      ):
        raise errors.AbstractionError(
          f"The translation takes action {action} after [{translation.history_str()}] for {distribution}; it must "
          f"return probabilities of the kept actions {kept}."
        )
      result += [
        (translation.child(move), probability * share, reach)
        for move, share in distribution.items()
      ]
    return result


def _after_chance(mixture: _Mixture, outcome: int) -> _Mixture:
  """Returns a mixture after a move of chance."""
  return [
    (
      translation.child(outcome)
      if translation is not None and translation.is_chance_node()
      else None,
      probability,
      reach,
    )
    for translation, probability, reach in mixture
  ]
