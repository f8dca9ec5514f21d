"""Two contestants play games of any size: each deal twice, in both seats, and with a baseline that takes luck away.

With b any function of states, b(z) the returns at a terminal z, and h the states of a game that was played,

    returns + sum over h of (E b(ha) - b(ha))

has the same mean as the returns, if the sum goes over chance nodes and moves of bots that tell their policies: the mean
is over what they could have drawn, a is what they drew. It varies as much less as b is close to what the contestants
get. Burch et al., "AIVAT: A New Variance Reduction Technique for Agent Evaluation in Imperfect Information Games"
(2018). Seats are exchanged while chance draws the same, as duplicate bridge is played.
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
from spiel_cfr._util.doors import typed
from spiel_cfr.bots import PolicyBot
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.openspiel.answers import CHANCE, TERMINAL
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.loading import load_game
from spiel_cfr.policies import open_spiel
from spiel_cfr.policies.open_spiel import asked
from spiel_cfr.referee.reading import Anything, read_anything
from spiel_cfr.referee.seats import play

# state -> about what each player will get, or None where that is not known.
Baseline: TypeAlias = Callable[[Any], Sequence[float] | Float64s | None]
# A bot for each seat, or a policy as `PolicyBot` takes it.
Contestant: TypeAlias = Any


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Match:
  """Results of a match.

  Attributes:
    scores: in the game's units, less what the baseline knows to be luck, shape (deals, 2): as player 0, as player 1.
    returns: the same without the baseline.
  """

  scores: Float64s
  returns: Float64s

  @property
  def mean(self) -> float:
    """Mean payoff of the contestant per game."""
    return float(self.scores.mean())

  @property
  def standard_error(self) -> float:
    """Standard error of `mean`; infinite for a single deal."""
    count = len(self.scores)
    # The two games of a deal depend on each other.
    deals = self.scores.mean(axis=1)
    return float(deals.std(ddof=1)) / math.sqrt(count) if count > 1 else math.inf

  def interval(self, confidence: float = 0.95) -> tuple[float, float]:
    """Returns bounds between which the true mean is in that share of all matches; true of many deals, not of a few.

    Raises:
      ArgumentError: `confidence` is not between 0 and 1.
    """
    confidence = arguments.real_number(confidence, "confidence", 0.0, math.nextafter(1.0, 0.0))
    off = statistics.NormalDist().inv_cdf((1 + confidence) / 2) * self.standard_error
    return self.mean - off, self.mean + off

  def __repr__(self) -> str:
    low, high = self.interval()
    after, before = self.scores.mean(axis=1).var(), self.returns.mean(axis=1).var()
    # Without a baseline they are the same.
    corrected = before > 0 and not np.array_equal(self.scores, self.returns)
    rest = f"; the baseline leaves {after / before:z.1%} of the variance" if corrected else ""
    return (
      f"<Match of {len(self.scores):,} deals, each in both seats: the contestant gets {self.mean:z.6g} a game, with "
      f"95% confidence {low:z.6g} to {high:z.6g}{rest}>"
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
  """Plays a game of two players many times.

  Args:
    game: of any size. Where moves are simultaneous, bots see its turn-based form.
    contestant: two bots, one for each seat, which play as they tell if they tell a policy; or a policy, see `PolicyBot`
      and `FunctionPolicy`.
    opponent: the same.
    deals: how often chance deals; each deal is played twice, and the two change seats.
    baseline: about what players will get from a state on, such as `value_baseline` makes. Whatever it says, the mean
      stays right.
    seed: of chance, and of bots that are made here.

  Raises:
    UnsupportedGameError: the game has another number of players.
    ArgumentError: an argument makes no sense.
    PolicyError: a bot chooses an action that is not legal, or tells no distribution.
  """
  view = GameView(load_game(game))
  if view.num_players != 2:
    raise errors.UnsupportedGameError(f"{view.game} has {view.num_players} players, and two meet.")
  deals = arguments.positive_integer(deals, "deals")
  seed = arguments.integer(seed, "seed", 0)
  sides = [
    _bots(view.game, side, np.random.default_rng([seed, i]))
    for i, side in enumerate((contestant, opponent))
  ]
  found = np.zeros((deals, 2, 2))
  for deal in range(deals):
    for seat in (0, 1):
      bots = [sides[seat][0], sides[1 - seat][1]]
      # The same numbers in both games.
      rng = np.random.default_rng([seed, 2, deal])
      luckless, returns = _play(view, bots, rng, baseline)
      found[deal, seat] = luckless[seat], returns[seat]
  return Match(found[..., 0], found[..., 1])


def _bots(game: pyspiel.Game, side: Contestant, rng: np.random.Generator) -> list[pyspiel.Bot]:
  if not isinstance(side, list | tuple):
    open_spiel.check_game(game, side)
    return [PolicyBot(side, player, seed=rng) for player in (0, 1)]
  if len(side) != 2 or not all(isinstance(bot, pyspiel.Bot) for bot in side):
    raise errors.ArgumentError(
      f"A contestant is a policy or two bots, one for each seat, not {arguments.shortened(side)}."
    )
  return list(side)


def _play(
  view: GameView, bots: Sequence[pyspiel.Bot], rng: np.random.Generator, baseline: Baseline | None
) -> tuple[Float64s, Float64s]:
  """Plays a game; returns what each player got, less luck and as it was."""
  luck = np.zeros(2)

  def choose(state: Any, mover: int) -> int:
    chances: list[tuple[int, float]] = []
    if mover == CHANCE:
      chances = view.chance_outcomes(state)
      sums = np.cumsum([chance for _, chance in chances])
      action = chances[int(np.searchsorted(sums[:-1], rng.random() * sums[-1], "right"))][0]
    elif bots[mover].provides_policy():
      chances, action = asked(bots[mover].step_with_policy, state)
    else:
      action = asked(bots[mover].step, state)
    _check_move(view, state, mover, chances, action)
    if baseline is not None and chances:
      luck[:] += _luck(view, baseline, state, chances, action)
    return action

  returns = np.array(view.returns(play(view, choose, bots)), np.float64)
  return returns - luck, returns


def _check_move(
  view: GameView, state: Any, mover: int, chances: list[tuple[int, float]], action: int
) -> None:
  legal = view.legal_actions(state) if mover >= 0 else [each for each, _ in chances]
  told = dict(chances)
  if action not in legal or (told and (abs(sum(told.values()) - 1) > 1e-6 or not told.get(action))):
    raise errors.PolicyError(
      f"After the history [{state.history_str()}] player {mover} plays {action} with probabilities {told}; legal are "
      f"{legal}."
    )


def _luck(
  view: GameView,
  baseline: Baseline,
  state: Any,
  chances: list[tuple[int, float]],
  action: int,
) -> Float64s:
  """Returns how much better what was drawn is than what could be expected, shape (players,); 0 if that is unknown."""
  mean, drawn = np.zeros(2), np.zeros(2)
  for each, chance in chances:
    if chance > 0:
      child = view.child(state, each)
      known = view.returns(child) if view.mover(child) == TERMINAL else baseline(child)
      if known is None:
        return np.zeros(2)
      worth = _two_numbers(known, child)
      mean += chance * worth
      drawn = worth if each == action else drawn
  return drawn - mean


def _two_numbers(known: Any, state: Any) -> Float64s:
  try:
    worth = np.asarray(known, np.float64)
  except (TypeError, ValueError):
    worth = np.zeros(0)
  if worth.shape != (2,) or not np.isfinite(worth).all():
    raise errors.ArgumentError(
      f"baseline has returned {arguments.shortened(known)} after the history [{state.history_str()}], not a finite "
      "number for each of two players, or None."
    )
  return worth


def _history(state: Any) -> Hashable:
  return tuple(state.history())


@typed
def value_baseline(
  game: AnyGame, policy: Anything, *, key: Callable[[Any], Hashable] = _history
) -> Baseline:
  """Returns a baseline for `play_match`: what players expect from each history of a game if all play a policy.

  The game may be a smaller one than that which is played: then `key` says which of its histories stand for a state, for
  instance a board, hands and a pot. Of several with the same key it is the mean, as often as they are played to.

  Args:
    game: a game that can be walked, such as an abstraction of what is played.
    policy: see `judge`; the closer to those of the contestants, the better.
    key: takes a state of either game.

  Raises:
    PolicyError: the policy is not one for this game.
    GameError: see `compile_game`.
  """
  compiled = compile_game(game).original
  table = open_spiel.to_dict(compiled, read_anything(compiled, policy))
  view = compiled.view
  sums: dict[Hashable, Float64s] = collections.defaultdict(lambda: np.zeros(3))

  def visit(state: Any, reach: float) -> Float64s:
    mover = view.mover(state)
    if mover == TERMINAL:
      return np.array(view.returns(state), np.float64)
    is_chance = mover == CHANCE
    moves = view.chance_outcomes(state) if is_chance else table[view.infostate(state)].items()
    result = sum(
      (chance * visit(view.child(state, action), reach * chance) for action, chance in moves),
      np.zeros(compiled.num_players),
    )
    # What is never played to has a value too.
    sums[key(state)] += max(reach, 1e-100) * np.append(result, 1.0)
    return result

  visit(view.new_initial_state(), 1.0)
  means = {name: found[:-1] / found[-1] for name, found in sums.items()}
  return lambda state: means.get(key(state))
