"""Matches of two contestants in games of any size, with duplicate deals and a baseline that removes luck.

Let the baseline b be a function of states that equals the returns at terminal states. The estimate

    returns + sum over h of (E b(ha) - b(ha))

of a play has the same mean as its returns. The sum is over the play's states h at which chance moves, or a bot with a
known policy. E is the mean over the distribution of actions at h, and a the action drawn. The closer b is to the
contestants' expected payoffs, the smaller is the variance. Source: Burch et al., "AIVAT: A New Variance Reduction
Technique for Agent Evaluation in Imperfect Information Games" (2018).

Every deal is played twice with exchanged seats, as in duplicate bridge.
"""

import collections
import dataclasses
import math
import statistics
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyspiel

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.bots import PolicyBot
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.openspiel.checked_calls import CHANCE, TERMINAL
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.loading import load_game
from spiel_cfr.policies import open_spiel
from spiel_cfr.policies.bot_calls import call_bot
from spiel_cfr.referee.policy_conversion import PolicyLike, to_behavioral_form
from spiel_cfr.referee.seats import play_game

# Function from a state to the approximate expected payoff of each player, or to None if that is unknown.
Baseline: TypeAlias = Callable[[Any], Sequence[float] | Float64s | None]
# A bot for each seat, or an argument of `PolicyBot`.
Contestant: TypeAlias = Any


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Match:
  """Result of a match.

  Attributes:
    scores: float64 (deals, 2). The contestant's payoff as player 0 and as player 1, in the game's units, without the
      luck that the baseline removes.
    returns: float64 (deals, 2). The contestant's payoff as player 0 and as player 1, with all luck.
  """

  scores: Float64s
  returns: Float64s

  @property
  def mean(self) -> float:
    """Mean score of the contestant per play, in the game's units."""
    return float(self.scores.mean())

  @property
  def standard_error(self) -> float:
    """Standard error of `mean`; infinite for a single deal."""
    count = len(self.scores)
    # The two plays of a deal are correlated.
    deals = self.scores.mean(axis=1)
    return float(deals.std(ddof=1)) / math.sqrt(count) if count > 1 else math.inf

  def interval(self, confidence: float = 0.95) -> tuple[float, float]:
    """Returns a confidence interval of the mean by the normal approximation, which is valid for many deals.

    Raises:
      ArgumentError: `confidence` is not between 0 and 1.
    """
    confidence = arguments.real_number(confidence, "confidence", 0.0, math.nextafter(1.0, 0.0))
    radius = statistics.NormalDist().inv_cdf((1 + confidence) / 2) * self.standard_error
    return self.mean - radius, self.mean + radius

  def __repr__(self) -> str:
    low, high = self.interval()
    after, before = self.scores.mean(axis=1).var(), self.returns.mean(axis=1).var()
    # Without a baseline, scores and returns are equal.
    has_baseline = before > 0 and not np.array_equal(self.scores, self.returns)
    remainder = (
      f"; the baseline leaves {after / before:z.1%} of the variance" if has_baseline else ""
    )
    return (
      f"<Match of {len(self.scores):,} deals, each in both seats: the contestant gets {self.mean:z.6g} a game, with "
      f"95% confidence {low:z.6g} to {high:z.6g}{remainder}>"
    )


@typed
def play_match(
  game: str | pyspiel.Game,
  contestant: Contestant,
  opponent: Contestant,
  *,
  deals: int,
  baseline: Baseline | None = None,
  seed: int = 0,
) -> Match:
  """Plays a two-player game many times; returns the contestant's results.

  Args:
    game: a game of any size. Bots see the turn-based form of simultaneous moves.
    contestant: a policy, see `PolicyBot` and `FunctionPolicy`; or two bots, one for each seat. A bot that provides a
      policy must play by it.
    opponent: a policy or two bots.
    deals: the number of deals. Every deal is played twice, with exchanged seats.
    baseline: the approximate expected payoffs of the players at a state, for example from `value_baseline`. The mean is
      unbiased with any baseline.
    seed: the seed of chance, and of bots that are made for policies.

  Raises:
    UnsupportedGameError: the game does not have two players.
    ArgumentError: an argument is invalid.
    PolicyError: a bot chooses an illegal action, or provides no distribution.
  """
  view = GameView(load_game(game))
  if view.num_players != 2:
    raise errors.UnsupportedGameError(
      f"A match needs a two-player game, and {view.game} has {view.num_players} players."
    )
  deals = arguments.positive_integer(deals, "deals")
  seed = arguments.integer(seed, "seed", 0)
  bots_of_contestant, bots_of_opponent = (
    _bots(view.game, player, np.random.default_rng([seed, number]))
    for number, player in enumerate((contestant, opponent))
  )
  results = np.zeros((deals, 2, 2))
  for deal in range(deals):
    for seat in (0, 1):
      bots = list(bots_of_opponent)
      bots[seat] = bots_of_contestant[seat]
      # Both plays of a deal use the same random numbers.
      rng = np.random.default_rng([seed, 2, deal])
      scores, returns = _play(view, bots, rng, baseline)
      results[deal, seat] = scores[seat], returns[seat]
  return Match(results[..., 0], results[..., 1])


def _bots(
  game: pyspiel.Game, contestant: Contestant, rng: np.random.Generator
) -> list[pyspiel.Bot]:
  """Returns a contestant's bots, one for each seat."""
  if not isinstance(contestant, list | tuple):
    open_spiel.check_game(game, contestant)
    return [PolicyBot(contestant, player, seed=rng) for player in (0, 1)]
  if len(contestant) != 2 or not all(isinstance(bot, pyspiel.Bot) for bot in contestant):
    raise errors.ArgumentError(
      f"A contestant is a policy or two bots, one for each seat, not {arguments.shortened(contestant)}."
    )
  return list(contestant)


def _play(
  view: GameView, bots: Sequence[pyspiel.Bot], rng: np.random.Generator, baseline: Baseline | None
) -> tuple[Float64s, Float64s]:
  """Plays a game once; returns the payoff of each player without luck, and with luck, both of shape (2,)."""
  luck = np.zeros(2)

  def choose(state: Any, mover: int) -> int:
    # Pairs of an action and its probability; empty if the bot does not provide its policy.
    distribution: list[tuple[int, float]] = []
    if mover == CHANCE:
      distribution = view.chance_outcomes(state)
      sums = np.cumsum([probability for _, probability in distribution])
      action = distribution[int(np.searchsorted(sums[:-1], rng.random() * sums[-1], "right"))][0]
    elif bots[mover].provides_policy():
      distribution, action = call_bot(bots[mover].step_with_policy, state)
    else:
      action = call_bot(bots[mover].step, state)
    _check_move(view, state, mover, distribution, action)
    if baseline is not None and distribution:
      luck[:] += _luck(view, baseline, state, distribution, action)
    return action

  returns = np.array(view.returns(play_game(view, choose, bots)), np.float64)
  return returns - luck, returns


def _check_move(
  view: GameView, state: Any, mover: int, distribution: list[tuple[int, float]], action: int
) -> None:
  """Raises PolicyError if a bot's action is illegal, or contradicts its distribution."""
  probabilities = dict(distribution)
  legal = view.legal_actions(state) if mover >= 0 else list(probabilities)
  is_possible = not probabilities or (
    abs(sum(probabilities.values()) - 1) <= 1e-6 and probabilities.get(action)
  )
  if action not in legal or not is_possible:
    raise errors.PolicyError(
      f"After the history [{state.history_str()}] player {mover} plays {action} with probabilities {probabilities}; "
      f"the legal actions are {legal}."
    )


def _luck(
  view: GameView,
  baseline: Baseline,
  state: Any,
  distribution: list[tuple[int, float]],
  action: int,
) -> Float64s:
  """Returns the baseline after the drawn action minus its mean over all actions, shape (2,); 0 if it is unknown."""
  mean, drawn = np.zeros(2), np.zeros(2)
  for other_action, probability in distribution:
    if probability > 0:
      child = view.child(state, other_action)
      values = view.returns(child) if view.mover(child) == TERMINAL else baseline(child)
      if values is None:
        return np.zeros(2)
      values = _two_numbers(values, child)
      mean += probability * values
      drawn = values if other_action == action else drawn
  return drawn - mean


def _two_numbers(values: Any, state: Any) -> Float64s:
  """Returns the values of a baseline as float64 (2,); raises ArgumentError if they are anything else."""
  try:
    result = np.asarray(values, np.float64)
  except (TypeError, ValueError):
    result = np.zeros(0)
  if result.shape != (2,) or not np.isfinite(result).all():
    raise errors.ArgumentError(
      f"baseline has returned {arguments.shortened(values)} after the history [{state.history_str()}]. It must return "
      "a finite number for each of two players, or None."
    )
  return result


def _history(state: Any) -> Hashable:
  return tuple(state.history())


@typed
def value_baseline(
  game: AnyGame, policy: PolicyLike, *, key: Callable[[Any], Hashable] = _history
) -> Baseline:
  """Returns a baseline for `play_match`: the expected payoff of each player at each history if all play a policy.

  The game may be smaller than the played game. `key` then maps states of both games to common names, for example to the
  board, the hands and the pot. The baseline of a name is the mean over histories of that name, weighted by reach.

  Args:
    game: a game that can be walked, such as an abstraction of the played game.
    policy: a policy of this game, see `judge`. The closer it is to the contestants' policies, the more luck the
      baseline removes.
    key: a function from a state of either game to its name.

  Raises:
    PolicyError: the policy is not a policy of this game.
    GameError: see `compile_game`.
  """
  compiled = compile_game(game).original
  table = open_spiel.to_dict(compiled, to_behavioral_form(compiled, policy))
  view = compiled.view
  # For each name: the sum of weighted payoffs of each player, and last the sum of weights.
  sums: dict[Hashable, Float64s] = collections.defaultdict(lambda: np.zeros(3))

  def visit(state: Any, reach: float) -> Float64s:
    mover = view.mover(state)
    if mover == TERMINAL:
      return np.array(view.returns(state), np.float64)
    is_chance = mover == CHANCE
    moves = view.chance_outcomes(state) if is_chance else table[view.infostate(state)].items()
    result = sum(
      (
        probability * visit(view.child(state, action), reach * probability)
        for action, probability in moves
      ),
      np.zeros(compiled.num_players),
    )
    # The tiny weight gives a value to names whose histories are never reached.
    sums[key(state)] += max(reach, 1e-100) * np.append(result, 1.0)
    return result

  visit(view.new_initial_state(), 1.0)
  means = {name: weighted[:-1] / weighted[-1] for name, weighted in sums.items()}
  return lambda state: means.get(key(state))
