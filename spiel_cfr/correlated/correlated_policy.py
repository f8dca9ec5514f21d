"""Correlated policies, and the mediator that recommends their actions during play.

The mediator draws each recommendation given all earlier ones, so that recommendations follow a correlation plan or a
mixture of profiles. A player who takes another action, or acts without asking, gets no more recommendations; the other
players get theirs as before.
"""

import abc
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._util import arguments, copying
from spiel_cfr._util.doors import typed
from spiel_cfr.cfr.warm_start import read_policy
from spiel_cfr.correlated.correlation_plans import RelevantPairs
from spiel_cfr.correlated.gaps import (
  KINDS,
  MEASURED,
  NORMAL_FORMS,
  CorrelatedGap,
  EmpiricalPlay,
)
from spiel_cfr.correlated.normal_form_gap import normal_form_gap
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.policies import forms, open_spiel
from spiel_cfr.policies.tabular_policy import player_to_move


class CorrelatedPolicy(abc.ABC):
  """Base class of correlated policies: joint distributions of recommendations to all players.

  Sequences are numbered as in solvers' arrays.

  Attributes:
    compiled_game: the game.
  """

  compiled_game: CompiledGame

  @abc.abstractmethod
  def _weights(self, told: Sequence[int], player: int, sequences: Int64s) -> Float64s:
    """Returns the probabilities of `next_recommendations`, up to a factor and rounding."""

  @abc.abstractmethod
  def sequence_form(self) -> Float64s:
    """Returns the probability that each sequence is recommended, shape (sequences,)."""

  @functools.cached_property
  def _rows(self) -> list[dict[str, int]]:
    return [
      {infostate: row for row, infostate in enumerate(own)} for own in self.compiled_game.infostates
    ]

  def _sequences_at(self, player: int, infostate: str) -> Int64s:
    own, row = self.compiled_game.infosets[player], self._rows[player].get(infostate)
    if row is None:
      raise errors.PolicyError(
        f"Player {player}'s infostate {infostate!r} is not in the game that was compiled, {self.compiled_game}."
      )
    return int(own.first_sequence[row]) + int(own.stride[row]) * np.arange(own.num_actions[row])

  def marginals(self) -> open_spiel.PolicyDict:
    """Returns how often each action is recommended as infostate -> action -> probability.

    The marginals forget what goes with what: if all played them independently, it would be another game.
    """
    return open_spiel.to_dict(
      self.compiled_game, forms.behavioral_form(self.compiled_game, self.sequence_form())
    )

  def mediator(self, seed: int | np.random.Generator | None = None) -> "Mediator":
    """Returns a mediator for one play after the other, which all players ask.

    Raises:
      ArgumentError: that is no seed.
    """
    return Mediator(self, seed)

  def bots(self, seed: int | np.random.Generator | None = None) -> list["MediatedBot"]:
    """Returns a bot for each player, who ask one mediator and do what it says.

        bots = optimal_equilibrium("sheriff(num_rounds=1)").policy.bots(seed=0)
        pyspiel.evaluate_bots(game.new_initial_state(), bots, 0)

    Raises:
      ArgumentError: that is no seed.
    """
    mediator = self.mediator(seed)
    return [MediatedBot(mediator, player) for player in range(self.compiled_game.num_players)]


def next_recommendations(
  policy: CorrelatedPolicy, told: Sequence[int], player: int, infostate: str
) -> tuple[Int64s, Float64s]:
  """Returns an infoset's sequences, and how likely each is to be recommended there; all alike where play never comes.

  Args:
    policy: what is recommended.
    told: the last sequence that each player was told; its empty sequence before.
    player: whose infoset it is.
    infostate: its name.

  Raises:
    PolicyError: it is not in the compiled game.
  """
  sequences = policy._sequences_at(player, infostate)
  weights = np.maximum(policy._weights(told, player, sequences), 0.0)
  total = weights.sum()
  return sequences, weights / total if total > 0 else np.full(len(sequences), 1 / len(sequences))


class PlanPolicy(CorrelatedPolicy):
  """Draws from a correlation plan of two players."""

  def __init__(self, pairs: RelevantPairs, plan: Float64s) -> None:
    """Takes the plan, shape (pairs,)."""
    self.compiled_game, self._pairs, self._plan = pairs.game, pairs, plan

  def _weights(self, told: Sequence[int], player: int, sequences: Int64s) -> Float64s:
    number = self._pairs.number
    others = np.full(len(sequences), number[told[1 - player]])
    return self._plan[self._pairs.index_of(player, number[sequences], others)]

  def sequence_form(self) -> Float64s:
    """Returns the entries of the plan that pair a sequence with the other player's empty one."""
    result = np.zeros(self.compiled_game.end)
    for player, own in enumerate(self._pairs.players):
      numbers = np.arange(len(own.places))
      result[own.places] = self._plan[self._pairs.index_of(player, numbers, np.zeros_like(numbers))]
    return result


class MixturePolicy(CorrelatedPolicy):
  """Draws a profile before each play, which all players are then told to play: of any number of players.

  What all iterates of a solver with simultaneous updates make together is such a mixture.
  """

  @typed
  def __init__(
    self,
    game: AnyGame,
    profiles: Sequence[open_spiel.AnyPolicy | Float64s],
    weights: Sequence[float] | None = None,
  ) -> None:
    """Takes profiles.

    Args:
      game: a compiled game, or what `compile_game` takes.
      profiles: policies of all players, each an array in behavioural form, shape (sequences,), such as
        `solver.current_probabilities()`; or anything that `policies.from_policy` reads.
      weights: of the profiles, in any unit; by default all alike.

    Raises:
      ArgumentError: there are no profiles, or weights are not one for each, see `arguments.weights`.
      PolicyError: a profile is not one for this game.
      GameError: see `compile_game`.
    """
    self.compiled_game = compile_game(game)
    self._profiles = [read_policy(self.compiled_game, each) for each in profiles]
    if not self._profiles:
      raise errors.ArgumentError("There are no profiles to draw from.")
    given = np.ones(len(profiles)) if weights is None else weights
    chances = arguments.weights(given, "weights, one for each profile,")
    if chances.shape != (len(profiles),):
      raise errors.ArgumentError(
        f"weights are {arguments.shortened(weights)} for {len(profiles)} profiles; give one for each."
      )
    self._shares = chances / chances.sum()

  @functools.cached_property
  def _sequence_forms(self) -> Float64s:
    return np.array([forms.sequence_form(self.compiled_game, each) for each in self._profiles])

  def _weights(self, told: Sequence[int], player: int, sequences: Int64s) -> Float64s:
    others = [last for other, last in enumerate(told) if other != player]
    likely = self._shares * self._sequence_forms[:, others].prod(axis=1)
    return np.asarray(likely @ self._sequence_forms[:, sequences])

  def sequence_form(self) -> Float64s:
    """Returns the mixture of the profiles, which as a policy is the product of average strategies."""
    return np.asarray(self._shares @ self._sequence_forms)

  def gap(self, kind: str = "extensive-form") -> CorrelatedGap:
    """Returns how far it is from an equilibrium, exactly.

    Args:
      kind: a name in `correlated.KINDS`; "normal-form", Aumann's, in which each player is told a pure strategy that is
        drawn from its part of the profile; or "mixed normal-form", in which it is told that part.

    Raises:
      ArgumentError: there is no such kind.
      AbstractionError: the game is an abstraction that loses something, or infosets are shared.
      GameTooLargeError: the kind takes more than 2^26 regrets, or a player may be told too many pure strategies.
    """
    if kind in NORMAL_FORMS:
      return normal_form_gap(self.compiled_game, self._profiles, self._shares, kind)
    arguments.one_of(kind, "kind", (*KINDS, *NORMAL_FORMS))
    play = EmpiricalPlay(
      self.compiled_game, next(name for name, kinds in MEASURED.items() if kind in kinds)
    )
    for profile, share in zip(self._profiles, self._shares.tolist(), strict=True):
      if share:
        play.add(profile, share)
    return play.gap(kind)


class Mediator:
  """Recommends actions to the players of one play after the other.

  Attributes:
    compiled_game: the game.
  """

  @typed
  def __init__(
    self, correlated_policy: CorrelatedPolicy, seed: int | np.random.Generator | None = None
  ) -> None:
    """Begins a play.

    Args:
      correlated_policy: what it recommends.
      seed: of its draws.

    Raises:
      ArgumentError: that is no seed.
    """
    self.compiled_game = correlated_policy.compiled_game
    self._policy = correlated_policy
    if not isinstance(seed, np.random.Generator):
      seed = np.random.default_rng(None if seed is None else arguments.integer(seed, "seed", 0))
    self._rng = seed
    self.restart()

  def restart(self) -> None:
    """Begins another play."""
    # Where in the list of an infoset's actions the one is that was recommended there in this play.
    self._recommended: dict[tuple[int, str], int] = {}

  def recommend(self, state: Any, player: int | None = None) -> int:
    """Returns the action that a player is told to take; the same if it is asked again at the same infoset.

    Args:
      state: at which the player is to move, in this play.
      player: whose; needed where several move at once.

    Raises:
      PolicyError: the player is not to move, the state is not in the compiled game, or the player has taken another
        action than it was told, or has not asked, so that it is told no more.
    """
    player = player_to_move(state, player)
    view = self.compiled_game.view
    view.check_state(state)
    told, left = self._retrace(state)
    if player in left:
      raise errors.PolicyError(
        f"Before the history [{state.history_str()}] player {player} has not done what the mediator would have told "
        "it, and is told no more. Let it play by a policy, or call restart() if a new play has begun."
      )
    if state.is_simultaneous_node():
      # Nobody sees what others do now, but all recommendations go together.
      for other in range(self.compiled_game.num_players):
        if other not in left and state.legal_actions(other):
          self._tell(told, other, view.look_up(state, other)[0])
    infostate, legal = view.look_up(state, player)
    key = player, infostate
    if key not in self._recommended:
      _, chances = next_recommendations(self._policy, told, *key)
      self._recommended[key] = int(self._rng.choice(len(legal), p=chances))
    return int(legal[self._recommended[key]])

  def _retrace(self, state: Any) -> tuple[list[int], set[int]]:
    """Returns the last sequence that each player was told on the way to a state, and who has left the mediator."""
    view = self.compiled_game.view
    told, left = [tree.root for tree in self.compiled_game.treeplexes], set[int]()
    past = view.new_initial_state()
    for action in state.history():
      player = past.current_player()
      if player >= 0 and player not in left:
        infostate, legal = view.look_up(past, player)
        self._tell(told, player, infostate)
        place = self._recommended.get((player, infostate))
        if place is None or legal[place] != action:
          left.add(player)
      past.apply_action(action)
    return told, left

  def _tell(self, told: list[int], player: int, infostate: str) -> None:
    place = self._recommended.get((player, infostate))
    if place is not None:
      told[player] = int(self._policy._sequences_at(player, infostate)[place])


class MediatedBot(copying.CopyableBot):
  """A bot that follows a mediator, which the bots of all players share. For `pyspiel.evaluate_bots` and the like.

  Another bot can take the place of any of them: it gets no recommendations, and the others get theirs as before. A
  copy has a mediator of its own if it is deep or pickled; copies and pickles of a list of bots still share one.
  """

  @typed
  def __init__(self, mediator: Mediator, player: int) -> None:
    """Makes the bot.

    Args:
      mediator: whom it asks.
      player: as whom it plays.

    Raises:
      ArgumentError: there is no such player.
    """
    super().__init__()
    self._mediator = mediator
    players = mediator.compiled_game.num_players
    self._player = arguments.integer(player, "player", 0, players - 1)

  def player_id(self) -> int:
    """Returns as whom it plays."""
    return self._player

  def restart(self) -> None:
    """Begins another play, for all who share the mediator."""
    self._mediator.restart()

  def restart_at(self, state: Any) -> None:
    """Begins another play, like `restart`."""
    self.restart()

  def step(self, state: Any) -> int:
    """Returns what it is told.

    Raises:
      PolicyError: see `Mediator.recommend`.
    """
    return self._mediator.recommend(state, self._player)
