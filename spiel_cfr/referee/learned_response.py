"""A lower bound on NashConv for games of any size: responses learned by playing, and then played in fresh games.

However a response was found, what it gains on average over the policy is not more than a best response gains. So a
mean over fresh games bounds NashConv from below, with the probability that `mean_bounds` gives; how good the learner
is decides only how tight that is. Timbers et al. 2022, "Approximate Exploitability: Learning a Best Response", do this
with networks.

The learner is a tree of the responder's own infosets (Kocsis and Szepesvari 2006, "Bandit based Monte-Carlo Planning";
one tree for all games, as in Cowling, Powley and Whitehouse 2012, "Information Set Monte Carlo Tree Search"). Chance
and the others play as they do, so that a game costs one walk from root to end whatever the game's size. A game adds
one infoset to the tree, and goes on below it as the policy that is judged would; so does the response where the tree
ends.
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

# The value of an infoset is that of its best action, and, as if seen so often, the mean of what was played there: the
# best of few numbers is too good to be true.
_MEAN_COUNTS_AS = 5


@dataclasses.dataclass(frozen=True)
class NashConvBound:
  """Bounds of a policy's NashConv, in the game's own units.

  Attributes:
    bound: NashConv is at least this, with the probability `confidence`; 0 where nothing was shown.
    estimate: what the responses have gained in the fresh games, on average; without bias what they gain.
    interval: what they gain is between these two with the probability `confidence`. NashConv may be above both.
    confidence: over the draws of the fresh games.
    response: the responses, and the policy that was judged for other players.
    players: who responds. NashConv adds up what all players gain by best responses, each at least 0.
    episodes: how many games have been learned from.
    evaluation_episodes: how many fresh ones were played with each response.
    states: how many states all these games have visited.
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
  """Plays a fixed action where something was learned, elsewhere as the policy that it responds to.

  Attributes:
    actions: each player's infostates -> the action there.
  """

  def __init__(self, seats: Seats, actions: Sequence[Mapping[str, int]]) -> None:
    super().__init__(seats.view.open_spiel_game(), list(range(seats.view.num_players)))
    self._seats, self.actions = seats, [dict(own) for own in actions]

  def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
    """Returns action -> probability; raises PolicyError where it is not the player's turn, or the policy has none."""
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
  """Learns to exploit a policy, and says how much NashConv is at least.

  Args:
    game: a game string or a game of OpenSpiel, of any size; or a compiled game.
    policy: whatever `PolicyBot` plays, asked once an infostate; or a list of one such policy or bot of OpenSpiel's for
      each player. Bots must play alike in every game.
    player: who is to respond; by default each player in turn. What one player gains bounds NashConv too.
    episodes: how many games each response learns from.
    evaluation_episodes: how many fresh games it then plays.
    confidence: the probability with which the bound holds, over the draws of fresh games.
    seed: of all draws but those of bots that do not tell their policy.

  Raises:
    ArgumentError: an argument makes no sense.
    PolicyError: a policy or bot does not answer with what can be played.
    GameError: see `load_game`; UnsupportedGameError: bots are to play at once, or payoffs have no limits.
    InvalidPayoffError: a game ends with payoffs that its limits or its constant sum rule out.
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
  for each in players:
    actions[each] = _learn(seats, each, episodes, learning)
  # What all gain together needs no game of the policy against itself where all get the same in sum.
  known = seats.constant_sum if player is None else None
  samples = _gains(seats, players, actions, known, evaluation_episodes, fresh)
  count, (low, high) = len(players), seats.payoff_range
  limits = count * (low - high), count * (high - low)
  if known is not None:
    limits = count * low - known, count * high - known
  missed = 1 - confidence
  return NashConvBound(
    bound=max(0.0, least_mean(samples, *limits, missed)),
    estimate=float(samples.mean()),
    interval=(
      least_mean(samples, *limits, missed / 2),
      -least_mean(-samples, -limits[1], -limits[0], missed / 2),
    ),
    confidence=confidence,
    response=LearnedResponse(seats, actions),
    players=players,
    episodes=episodes * count,
    evaluation_episodes=evaluation_episodes,
    states=seats.states,
  )


class _Infoset:
  """An infoset of the learner: for each action the number of plays, and the sum of their values.

  Attributes:
    totals: what each has brought: the returns of games that went on as the policy, and `value` of infosets below.
    value: what the infoset is worth, times how often an action was played there.
  """

  __slots__ = ("counts", "legal", "totals", "value")

  def __init__(self, legal: list[int]) -> None:
    self.legal, self.counts, self.totals = legal, [0] * len(legal), [0.0] * len(legal)
    self.value = 0.0

  def means(self) -> list[float]:
    """Returns what each action is worth; less than anything where it was never played."""
    pairs = zip(self.totals, self.counts, strict=True)
    return [total / count if count else -math.inf for total, count in pairs]

  def explore(self, scale: float, uniform: float) -> int:
    """Returns the place of the action to play next: one not tried, then the one with the highest upper bound."""
    if 0 in self.counts:
      untried = [place for place, count in enumerate(self.counts) if not count]
      return untried[int(uniform * len(untried))]
    width = scale * math.sqrt(math.log(sum(self.counts)))
    highest = [
      mean + width / math.sqrt(count) for mean, count in zip(self.means(), self.counts, strict=True)
    ]
    return highest.index(max(highest))

  def learn(self, place: int, worth: float) -> float:
    """Takes note that an action was played and of what it was worth; returns by how much `value` has changed."""
    self.counts[place] += 1
    self.totals[place] += worth
    count, before = sum(self.counts), self.value
    best = count * max(self.means())
    self.value = (count * best + _MEAN_COUNTS_AS * sum(self.totals)) / (count + _MEAN_COUNTS_AS)
    return self.value - before


def _learn(
  seats: Seats, player: int, episodes: int, generator: np.random.Generator
) -> dict[str, int]:
  """Returns what a player does at infosets where it has learned something."""
  tree: dict[str, _Infoset] = {}
  path: list[tuple[_Infoset, int]] = []
  scale = (seats.payoff_range[1] - seats.payoff_range[0]) / 2
  is_inside = True

  def respond(infostate: str, legal: list[int]) -> int | None:
    nonlocal is_inside
    infoset = tree.get(infostate) if is_inside else None
    if infoset is None or infoset.legal != legal:
      if is_inside:
        tree.setdefault(infostate, _Infoset(legal))
      is_inside = False
      return None
    place = infoset.explore(scale, generator.random())
    path.append((infoset, place))
    return place

  for _ in range(episodes):
    path.clear()
    is_inside = True
    worth = seats.play(player, respond, lambda _: generator.random())[player]
    for infoset, place in reversed(path):
      worth = infoset.learn(place, worth)
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
  """Returns what responses gain in fresh games, shape (episodes,): each number from one game a response.

  What the policy gets itself is `policy_sum`, or the returns of one more game.
  These games have the same luck, chance and player by player: good cards for one are then bad ones for another, and
  most of what is luck cancels. The games of different episodes are independent.
  """
  streams: dict[int, list[float]] = {}
  used: dict[int, int] = {}

  def luck(mover: int) -> float:
    stream, place = streams.setdefault(mover, []), used.get(mover, 0)
    used[mover] = place + 1
    if place == len(stream):
      stream.append(generator.random())
    return stream[place]

  def game(player: int) -> list[float]:
    used.clear()
    return seats.play(player, functools.partial(respond, player), luck)

  def respond(player: int, infostate: str, legal: list[int]) -> int | None:
    chosen = actions[player].get(infostate)
    return legal.index(chosen) if chosen in legal else None

  result = np.empty(episodes)
  for episode in range(episodes):
    streams.clear()
    result[episode] = math.fsum(game(player)[player] for player in players)
    if policy_sum is None:
      own = game(-1)
      result[episode] -= math.fsum(own[player] for player in players)
    else:
      result[episode] -= policy_sum
  return result
