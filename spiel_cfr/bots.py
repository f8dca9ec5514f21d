"""Bots that play a policy, as OpenSpiel's bots: for tournaments, and for games against people."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python import policy as open_spiel_policy

from spiel_cfr import errors
from spiel_cfr._util import arguments, copying
from spiel_cfr.exploitation import SafeExploiter
from spiel_cfr.games.openspiel import checked_calls
from spiel_cfr.policies.open_spiel import AnyPolicy, policy_of

# The tolerance of the sum of probabilities.
_TOLERANCE = 1e-6


class PolicyReader:
  """A reader of policies in any form that bots accept: it returns probabilities at states of OpenSpiel.

  Attributes:
    policy: Any. A mapping from infostates to action -> probability, or a policy of OpenSpiel, in Python or C++.
  """

  def __init__(self, policies: AnyPolicy) -> None:
    """Takes a policy in one of the forms that `DrawingBot` lists.

    Raises:
      ArgumentError: no bot can play the policy.
    """
    policy = policy_of(policies)
    if isinstance(policy, pyspiel.TabularPolicy):
      policy = policy.policy_table()  # A dictionary can be pickled.
    elif isinstance(policy, open_spiel_policy.Policy) and policy is not policies:
      policy = copy.copy(policy)  # A solver's policy would change with the solver.
    if not isinstance(policy, Mapping | pyspiel.Policy | open_spiel_policy.Policy):
      raise errors.ArgumentError(
        f"{arguments.shortened(policies)} is not a policy that a bot can play. Give a solver, one of OpenSpiel's "
        "policies, or a dictionary infostate -> {action: probability}."
      )
    self.policy = policy

  def ask(self, state: Any, player: int) -> dict[int, float]:
    """Returns the policy's probabilities of a player's actions, without a check.

    Raises:
      PolicyError: the policy is a mapping without this infostate. Other policies raise errors of their own.
    """
    if isinstance(self.policy, open_spiel_policy.Policy):
      return dict(self.policy.action_probabilities(state, player))
    if isinstance(self.policy, Mapping):
      infostate = checked_calls.information_state_string(state, player)
      if infostate not in self.policy:
        raise errors.PolicyError(f"The policy has no probabilities for infostate {infostate!r}.")
      return dict(self.policy[infostate])
    return dict(self.policy.get_state_policy(state, player))

  def look_up(self, state: Any, player: int) -> dict[int, float] | None:
    """Returns the policy's probabilities of a player's actions, without a check; None if the policy has none."""
    try:
      return self.ask(state, player) or None
    except (errors.PolicyError, KeyError):
      return None

  def strategy(self, state: Any, player: int) -> list[tuple[int, float]]:
    """Returns (action, probability) of each legal action of a player; an empty list if another player is to move.

    Raises:
      PolicyError: the policy has no probabilities at this state, or invalid ones.
    """
    legal = checked_calls.legal_actions(state, player)
    if not legal:
      return []
    where = f"After the history [{state.history_str()}] the policy"
    chances = distribution(self.ask(state, player), legal, where)
    return list(zip(map(int, legal), chances, strict=True))


class DrawingBot(copying.CopyableBot):
  """Base class of bots that draw their actions from `get_policy`, given a policy."""

  def __init__(
    self,
    policies: AnyPolicy,
    player: int,
    *,
    seed: int | np.random.Generator | None = None,
  ) -> None:
    """Makes the bot.

    Args:
      policies: a solver, for a copy of its average policy; a solution, for instance of `solve`; a policy of OpenSpiel,
        in Python or C++; or a mapping from infostates to action -> probability.
      player: the seat of the bot.
      seed: the seed of its actions.

    Raises:
      ArgumentError: the player, the seed or the policy is invalid.
    """
    super().__init__()
    self._reader = PolicyReader(policies)
    seats = getattr(getattr(self._reader.policy, "game", None), "num_players", None)
    self._player = (
      arguments.integer(player, "player", 0, seats() - 1)
      if callable(seats)
      else arguments.integer(player, "player", 0)
    )
    if not isinstance(seed, np.random.Generator):
      seed = np.random.default_rng(None if seed is None else arguments.integer(seed, "seed", 0))
    self._rng = seed

  def player_id(self) -> int:
    """Returns the seat of the bot."""
    return self._player

  def provides_policy(self) -> bool:
    return True

  def get_policy(self, state: Any) -> list[tuple[int, float]]:
    """Returns (action, probability) of each legal action; an empty list if another player is to move."""
    raise NotImplementedError

  def step_with_policy(self, state: Any) -> tuple[list[tuple[int, float]], int]:
    """Returns the probabilities, and an action drawn from them.

    Raises:
      PolicyError: the policy has no probabilities at this state.
    """
    chances = self.get_policy(state)
    if not chances:
      return [], int(pyspiel.INVALID_ACTION)
    weights = np.array([chance for _, chance in chances])
    drawn = self._rng.choice(len(chances), p=weights / weights.sum())
    return chances, chances[int(drawn)][0]

  def step(self, state: Any) -> int:
    """Returns an action drawn from the policy, see `step_with_policy`."""
    return self.step_with_policy(state)[1]


class PolicyBot(DrawingBot):
  """A bot that plays a policy, for `pyspiel.evaluate_bots` and other functions that take bots.

  >>> game = pyspiel.load_game("kuhn_poker")
  >>> solver = spiel_cfr.Solver.load("kuhn.npz", game)  # doctest: +SKIP
  >>> bots = [PolicyBot(solver, player, seed=player) for player in range(2)]  # doctest: +SKIP
  >>> pyspiel.evaluate_bots(game.new_initial_state(), bots, seed=0)  # doctest: +SKIP
  [1.0, -1.0]
  """

  def restart_at(self, state: Any) -> None:
    """Does nothing, since the bot has no memory of a game."""

  def get_policy(self, state: Any) -> list[tuple[int, float]]:
    """Returns (action, probability) of each legal action; an empty list if another player is to move.

    Raises:
      PolicyError: the policy has no probabilities at this state.
    """
    return self._reader.strategy(state, self._player)


class SafeBot(DrawingBot):
  """A bot that exploits one opponent over many games, and risks only what the opponent has given away.

  >>> bot = SafeBot(exploitation.SafeExploiter("kuhn_poker", 0), seed=0)  # doctest: +SKIP
  >>> for seed in range(1000):  # doctest: +SKIP
  ...   pyspiel.evaluate_bots(game.new_initial_state(), [bot, opponent], seed)

  The exploiter learns from a game when the next one begins. The bot reads the histories of the states that it is shown,
  including all cards. If it is not shown the end of a game, the exploiter counts fewer gifts, and remains safe.
  """

  def __init__(
    self, exploiter: SafeExploiter, *, seed: int | np.random.Generator | None = None
  ) -> None:
    """Makes the bot.

    Args:
      exploiter: the player of the repeated game; the bot's games are added to those that it has observed.
      seed: the seed of the bot's actions.

    Raises:
      ArgumentError: the exploiter or the seed is invalid.
    """
    arguments.of_type(exploiter, "exploiter", SafeExploiter)
    super().__init__(exploiter.policy, exploiter.player, seed=seed)
    self._exploiter, self._history = exploiter, list[int]()

  def restart(self) -> None:
    """Learns from the last game.

    Raises:
      ArgumentError: the bot was shown states of another game.
    """
    history, self._history = self._history, []
    if history:
      self._exploiter.observe(history)
      self._reader = PolicyReader(self._exploiter.policy)

  def restart_at(self, state: Any) -> None:
    """Learns from the last game, see `restart`."""
    self.restart()

  def inform_action(self, state: Any, player_id: int, action: int) -> None:
    """Remembers the move of another player or of chance."""
    self._history = [*state.history(), int(action)]

  def get_policy(self, state: Any) -> list[tuple[int, float]]:
    """Returns (action, probability) of each legal action; an empty list if another player is to move.

    Raises:
      PolicyError: the state belongs to another game.
    """
    self._history = state.history()
    return self._reader.strategy(state, self._player)


def distribution(chances: Mapping[int, float], legal: Sequence[int], whose: str) -> list[float]:
  """Returns the probability of each legal action.

  Raises:
    PolicyError: the probabilities are not a distribution over the legal actions; the message begins with `whose`.
  """
  result = [float(chances.get(action, 0.0)) for action in legal]
  if not (abs(sum(result) - 1) < _TOLERANCE and min(result) >= 0):
    raise errors.PolicyError(
      f"{whose} has {chances!r}, which is not a distribution over the legal actions {legal}."
    )
  return result
