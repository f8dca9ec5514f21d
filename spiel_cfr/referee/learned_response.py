"""Lower bound on NashConv in games of any size, from responses that are learned by playing.

No response gains more than a best response. The mean gain of a learned response in fresh plays therefore bounds
NashConv from below, with the probability that `mean_bounds` computes. A better learner makes the bound tighter. Timbers
et al. 2022, "Approximate Exploitability: Learning a Best Response", do this with networks.

The learner here is Monte Carlo tree search over the responder's infosets (Kocsis and Szepesvari 2006, "Bandit based
Monte-Carlo Planning"). All plays share one tree, as in Cowling, Powley and Whitehouse 2012, "Information Set Monte
Carlo Tree Search". Chance and the opponents play by their distributions, so a play costs one walk from the root to a
terminal. Every play adds one infoset to the tree. Below the tree, the responder follows the evaluated policy.
"""

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from open_spiel.python import policy as open_spiel_policy

from spiel_cfr import errors
from spiel_cfr._util import arguments
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.mccfr.random_draws import new_key
from spiel_cfr.policies.tabular_policy import player_to_move
from spiel_cfr.referee.mean_bounds import least_mean
from spiel_cfr.referee.seats import Seats

# The maximum of few sample means is biased upwards. The value of an infoset is therefore an average of its best
# action's mean, weighted by the number of plays, and of the mean of all plays, with this weight.
_WEIGHT_OF_MEAN = 5


@dataclasses.dataclass(frozen=True)
class NashConvBound:
  """Lower bound on a policy's NashConv, in the game's units.

  Attributes:
    bound: float. NashConv is at least this with probability `confidence`; 0 if the plays prove no gain.
    estimate: float. The mean gain of the responses in the fresh plays, an unbiased estimate of their expected gain.
    interval: two floats. Bounds on the expected gain of the responses, with probability `confidence`. NashConv may be
      above both.
    confidence: float. The probability of the bounds, over the draws of the fresh plays.
    response: `LearnedResponse`. The responses; for players without a response, the evaluated policy.
    players: tuple of int. The responding players.
    episodes: int. The number of plays that the responses have learned from.
    evaluation_episodes: int. The number of fresh plays of each response.
    states: int. The number of states visited in all plays.
  """

  bound: float
  estimate: float
  interval: tuple[float, float]
  confidence: float
  response: "LearnedResponse"
  players: tuple[int, ...]
  episodes: int
  evaluation_episodes: int
  states: int

  def __str__(self) -> str:
    low, high = self.interval
    return (
      f"NashConv is at least {self.bound:z.4g}, with probability {self.confidence:z.4g}.\n"
      f"Responses of players {', '.join(map(str, self.players))} gain {self.estimate:z.4g} ({low:z.4g} to {high:z.4g}) "
      f"in {self.evaluation_episodes:,} fresh games each; learned from {self.episodes:,} games; {self.states:,} states."
    )


class LearnedResponse(open_spiel_policy.Policy):  # type: ignore[misc]
  """Policy of learned responses: one action at each learned infoset, and the evaluated policy at all others.

  Attributes:
    actions: list of dictionaries. For each player, infostate -> action at learned infosets.
  """

  def __init__(self, seats: Seats, actions: Sequence[Mapping[str, int]]) -> None:
    super().__init__(seats.view.open_spiel_game(), list(range(seats.view.num_players)))
    self._seats, self.actions = seats, [dict(learned) for learned in actions]

  def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
    """Returns action -> probability.

    Raises:
      PolicyError: `player_id` is not to move, or the evaluated policy has no probabilities.
    """
    player = player_to_move(state, player_id)
    infostate, legal = self._seats.view.look_up(state, player)
    chosen = self.actions[player].get(infostate)
    if chosen is not None:
      return {action: float(action == chosen) for action in legal}
    return dict(zip(legal, self._seats.distribution(state, player, infostate, legal), strict=True))


def nash_conv_lower_bound(
  game: AnyGame,
  policy: Any,
  *,
  player: int | None = None,
  episodes: int = 100_000,
  evaluation_episodes: int = 20_000,
  confidence: float = 0.95,
  seed: int | np.random.Generator | None = None,
) -> NashConvBound:
  """Learns to exploit a policy, and returns a lower bound on its NashConv.

  Args:
    game: an OpenSpiel game or its string, of any size; or a compiled game.
    policy: a policy that `PolicyBot` plays, which is called once for each infostate; or a list with such a policy or an
      OpenSpiel bot for each player. Bots must not learn from earlier plays.
    player: the responding player; None for each player in turn. The gain of one player also bounds NashConv.
    episodes: the number of plays that a response learns from.
    evaluation_episodes: the number of fresh plays of each response.
    confidence: the probability of the bound, over the draws of the fresh plays.
    seed: the seed of all random draws except those of bots without a policy.

  Raises:
    ArgumentError: an argument is invalid.
    PolicyError: a policy or bot returns no distribution or an illegal action.
    UnsupportedGameError: bots would have to move at once, or payoffs have no limits.
    GameError: see `load_game`.
    InvalidPayoffError: the payoffs of a play contradict the game's limits or its constant sum.
  """
  episodes = arguments.integer(episodes, "episodes", 0)
  evaluation_episodes = arguments.integer(evaluation_episodes, "evaluation_episodes", 2)
  confidence = arguments.real_number(confidence, "confidence", 0.0, 1.0)
  if confidence in (0.0, 1.0):
    raise errors.ArgumentError(f"confidence must be between 0 and 1, not {confidence}.")
  learning, fresh = map(np.random.default_rng, np.random.SeedSequence(new_key(seed)).spawn(2))
  seats = Seats(game, policy)
  num_players = seats.view.num_players
  players = tuple(range(num_players))
  if player is not None:
    players = (arguments.integer(player, "player", 0, num_players - 1),)

  actions: list[dict[str, int]] = [{} for _ in range(num_players)]
  for responder in players:
    actions[responder] = _learn(seats, responder, episodes, learning)
  # If all players respond in a constant-sum game, the sum of the policy's payoffs is known without plays.
  policy_sum = seats.constant_sum if player is None else None
  samples = _gains(seats, players, actions, policy_sum, evaluation_episodes, fresh)
  count, (low, high) = len(players), seats.payoff_range
  limits = count * (low - high), count * (high - low)
  if policy_sum is not None:
    limits = count * low - policy_sum, count * high - policy_sum
  error_probability = 1 - confidence
  return NashConvBound(
    bound=max(0.0, least_mean(samples, *limits, error_probability)),
    estimate=float(samples.mean()),
    interval=(
      least_mean(samples, *limits, error_probability / 2),
      -least_mean(-samples, -limits[1], -limits[0], error_probability / 2),
    ),
    confidence=confidence,
    response=LearnedResponse(seats, actions),
    players=players,
    episodes=episodes * count,
    evaluation_episodes=evaluation_episodes,
    states=seats.states,
  )


class _Infoset:
  """Infoset in the learner's tree: statistics of the plays through it.

  Attributes:
    legal: list of int. The legal actions.
    counts: list of int. The number of plays of each action.
    totals: list of float. For each action, the sum of the values of its plays. The value of a play is its payoff, or
      the change of `value` at the next infoset in the tree.
    value: float. The value of the infoset, times its number of plays.
  """

  __slots__ = ("counts", "legal", "totals", "value")

  def __init__(self, legal: list[int]) -> None:
    self.legal, self.counts, self.totals = legal, [0] * len(legal), [0.0] * len(legal)
    self.value = 0.0

  def means(self) -> list[float]:
    """Returns the mean value of each action; -inf for actions never played."""
    pairs = zip(self.totals, self.counts, strict=True)
    return [total / count if count else -math.inf for total, count in pairs]

  def explore(self, scale: float, uniform: float) -> int:
    """Returns the index of the next action: an untried one, or the one with the highest upper confidence bound.

    Args:
      scale: the scale of payoffs, which multiplies the width of confidence bounds.
      uniform: a random number in [0, 1), which selects the untried action.
    """
    if 0 in self.counts:
      untried = [index for index, count in enumerate(self.counts) if not count]
      return untried[int(uniform * len(untried))]
    width = scale * math.sqrt(math.log(sum(self.counts)))
    highest = [
      mean + width / math.sqrt(count) for mean, count in zip(self.means(), self.counts, strict=True)
    ]
    return highest.index(max(highest))

  def learn(self, index: int, value: float) -> float:
    """Adds a play of an action, given its index and the value of the play; returns the change of `self.value`."""
    self.counts[index] += 1
    self.totals[index] += value
    count, before = sum(self.counts), self.value
    best = count * max(self.means())
    self.value = (count * best + _WEIGHT_OF_MEAN * sum(self.totals)) / (count + _WEIGHT_OF_MEAN)
    return self.value - before


def _learn(
  seats: Seats, player: int, episodes: int, generator: np.random.Generator
) -> dict[str, int]:
  """Lets a player learn a response in a number of plays; returns infostate -> best action at learned infosets."""
  tree: dict[str, _Infoset] = {}
  path: list[tuple[_Infoset, int]] = []
  scale = (seats.payoff_range[1] - seats.payoff_range[0]) / 2
  # True until the play leaves the tree.
  is_inside = True

  def respond(infostate: str, legal: list[int]) -> int | None:
    nonlocal is_inside
    infoset = tree.get(infostate) if is_inside else None
    if infoset is None or infoset.legal != legal:
      if is_inside:
        tree.setdefault(infostate, _Infoset(legal))
      is_inside = False
      return None
    index = infoset.explore(scale, generator.random())
    path.append((infoset, index))
    return index

  for _ in range(episodes):
    path.clear()
    is_inside = True
    value = seats.play(player, respond, lambda _: generator.random())[player]
    for infoset, index in reversed(path):
      value = infoset.learn(index, value)
  return {
    infostate: infoset.legal[max(range(len(infoset.legal)), key=infoset.means().__getitem__)]
    for infostate, infoset in tree.items()
    if any(infoset.counts)
  }


def _gains(
  seats: Seats,
  players: Sequence[int],
  actions: Sequence[Mapping[str, int]],
  policy_sum: float | None,
  episodes: int,
  generator: np.random.Generator,
) -> npt.NDArray[np.float64]:
  """Returns the gains of all responses together in fresh plays, shape (episodes,).

  An episode has one play of each response. If `policy_sum` is None, it has another play, in which all players follow
  the policy. The plays of an episode share their random numbers, separately for chance and each player, so that most
  luck cancels. Episodes are independent.

  Args:
    seats: the game and its players.
    players: the responding players.
    actions: the response of each player, see `LearnedResponse`.
    policy_sum: the sum of the players' expected payoffs if all follow the policy; None if it is unknown.
    episodes: the number of episodes.
    generator: the source of random numbers.
  """
  # The random numbers of an episode by mover, and how many of them the present play has used.
  streams: dict[int, list[float]] = {}
  num_used: dict[int, int] = {}

  def draw(mover: int) -> float:
    stream, index = streams.setdefault(mover, []), num_used.get(mover, 0)
    num_used[mover] = index + 1
    if index == len(stream):
      stream.append(generator.random())
    return stream[index]

  def play(player: int) -> list[float]:
    num_used.clear()
    return seats.play(player, functools.partial(respond, player), draw)

  def respond(player: int, infostate: str, legal: list[int]) -> int | None:
    action = actions[player].get(infostate)
    return legal.index(action) if action in legal else None

  result = np.empty(episodes)
  for episode in range(episodes):
    streams.clear()
    result[episode] = math.fsum(play(player)[player] for player in players)
    if policy_sum is None:
      returns = play(-1)  # No player responds.
      result[episode] -= math.fsum(returns[player] for player in players)
    else:
      result[episode] -= policy_sum
  return result
