"""Checks of returns and infostates against the game's declared type, and errors that quote the history.

`checked_calls` checks single calls. The checks here compare states with one another and with what the game declares.
"""

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyspiel

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.games.openspiel.game_view import GameView

# Tolerances of the check that returns have the declared sum: a share of the largest of these returns, plus a share of
# the largest return that the game declares. The first is 1e-6, since files and float32 have six or seven digits.
SUM_TOLERANCE, _DECLARED_SUM_TOLERANCE = 1e-6, 1e-14
# A history has at most `_SPARE_MOVES` + `_MOVES_PER_DECLARED` * `max_game_length` moves. Games declare
# `max_game_length` without chance's moves, and some declare too little.
_SPARE_MOVES, _MOVES_PER_DECLARED = 1000, 10


class ReturnsCheck:
  """Checks that the results of `GameView.returns` at terminal states are finite and have the declared sum."""

  def __init__(self, view: GameView) -> None:
    """Takes the game."""
    # A constant of unknown size is NaN until the first returns are checked.
    self._view, self._sum = view, view.declared_sum
    bounds = abs(view.game.min_utility()), abs(view.game.max_utility())
    # If returns cancel out, a sum of 1e-17 is a rounding error.
    self._rounding = _DECLARED_SUM_TOLERANCE * max(bounds) if math.isfinite(sum(bounds)) else 0.0

  def __call__(self, state: Any, returns: Sequence[float]) -> None:
    """Checks the returns of one terminal state.

    Raises:
      InvalidPayoffError: the returns are wrong.
    """
    problem = ""
    if not all(map(math.isfinite, returns)):
      problem = "which must be finite numbers"
    elif self._sum is not None:
      total = sum(returns)
      if math.isnan(self._sum):
        self._sum = total
      if abs(total - self._sum) > SUM_TOLERANCE * max(map(abs, returns)) + self._rounding:
        problem = (
          f"which sum to {total:z.10g}, but by its type the game is zero-sum or constant-sum, with a sum of "
          f"{self._sum:z.10g}. Correct the returns, or declare the game's utility as GENERAL_SUM"
        )
    if problem:
      raise errors.InvalidPayoffError(
        f"After the history [{state.history_str()}] the returns are {list(returns)}, {problem}."
      )

  def table(self, returns: Float64s) -> None:
    """Checks the returns of many terminal states, shape (states, players).

    If returns are wrong, walks the game to quote the history of a wrong state.

    Raises:
      InvalidPayoffError: some returns are wrong.
    """
    is_right = np.isfinite(returns)
    if self._sum is not None and is_right.all():
      # Summing columns takes a tenth of the time of summing rows.
      totals: Any = sum(returns.T)
      if math.isnan(self._sum):
        self._sum = float(totals[0])
      differences = np.abs(totals - self._sum)
      if differences.max() <= self._rounding:
        return
      allowed = SUM_TOLERANCE * np.abs(returns).max(axis=1) + self._rounding
      is_right &= (differences <= allowed)[:, None]
    if is_right.all():
      return
    for state, _ in self._view.states():
      if state.is_terminal():
        self(state, self._view.returns(state))
    wrong = returns[~is_right.all(axis=1)][0].tolist()
    raise errors.InvalidPayoffError(
      f"A terminal state returned {wrong} in one walk, but not in the next. Returns must depend on the history alone."
    )


def imperfect_recall(view: GameView, state: Any) -> errors.ImperfectRecallError:
  """Returns the error for a state whose infoset the player to move reaches by several of its own sequences."""
  player = state.current_player()
  return errors.ImperfectRecallError(
    f"Player {player}'s infostate {view.infostate(state)!r} can be reached by "
    f"different sequences of that player's own actions (one history: [{state.history_str()}]). The "
    "player forgets what it did, and solvers in sequence form need perfect recall. Call compile_game "
    'with infostate="history", which gives perfect recall; or sample the game as it is with a Monte Carlo '
    'solver, engine="states".'
  )


def inconsistent_actions(
  view: GameView, state: Any, known: list[int]
) -> errors.InconsistentInfosetError:
  """Returns the error for a state whose legal actions differ from `known`, the actions of its infoset so far."""
  return errors.InconsistentInfosetError(
    f"States of player {state.current_player()}'s infostate {view.infostate(state)!r} "
    f"have different legal actions: {known}, and {view.legal_actions(state)} after the history "
    f"[{state.history_str()}]. Infostates must tell such states apart, and an action filter must "
    "keep the same actions at all of them."
  )


def longest_history(view: GameView) -> int:
  """Returns the limit on the moves of a history, chance's included. A longer history counts as endless."""
  return _SPARE_MOVES + _MOVES_PER_DECLARED * int(view.game.max_game_length())


def has_no_end(view: GameView, state: Any) -> errors.GameError:
  """Returns the error for a game in which a history has more than `longest_history` moves."""
  return errors.GameError(
    f"The game has not ended after {longest_history(view):,} moves, chance's included; its max_game_length is "
    f"{view.game.max_game_length():,}. Games must end. Raise max_game_length, or make a state terminal. The last moves "
    f"are {state.history()[-5:]}."
  )


def warn_of_doubts(
  game: pyspiel.Game, infostates: Sequence[Sequence[str]], payoff_range: tuple[float, float]
) -> None:
  """Warns of empty infostates and of returns outside the declared range, by `DoubtfulGameWarning`.

  A player's first infostate may be empty if the player moves at the root, since it knows nothing there.

  Args:
    game: the game that was walked.
    infostates: for each player, its infostates, in the order in which the walk found them.
    payoff_range: the smallest and the largest return of any player.
  """
  doubts = [
    f"player {player} has an infoset whose information state string is empty: all its states are one infoset"
    for player, names in enumerate(infostates)
    if "" in names and not (names[0] == "" and game.new_initial_state().current_player() == player)
  ]
  least, most = payoff_range
  low, high = game.min_utility(), game.max_utility()
  rounding = 1e-9 * max(-least, most)
  if least < low - rounding or most > high + rounding:
    doubts.append(
      f"returns are from {least:zg} to {most:zg}, but min_utility and max_utility promise {low:zg} to {high:zg}"
    )
  for doubt in doubts:
    warnings.warn(
      f"{game.get_type().short_name}: {doubt}.", errors.DoubtfulGameWarning, stacklevel=5
    )
