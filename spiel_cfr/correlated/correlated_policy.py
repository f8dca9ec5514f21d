"""Correlated policies, and the mediator that recommends their actions during play.

The mediator draws each recommendation given all earlier ones, by a correlation plan or a mixture of profiles. A player
who takes another action, or acts without asking, gets no further recommendations. The other players get theirs as
before.
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
    compiled_game: `CompiledGame`. The game.
  """

  compiled_game: CompiledGame

  @abc.abstractmethod
  def _weights(self, last: Sequence[int], player: int, sequences: Int64s) -> Float64s:
    """Returns the probabilities of `next_recommendations`, shape (actions,), up to a factor and rounding."""

  @abc.abstractmethod
  def sequence_form(self) -> Float64s:
    """Returns the probability that each sequence is recommended, shape (sequences,)."""

  @functools.cached_property
  def _rows(self) -> list[dict[str, int]]:
    """One dictionary a player: infostate -> number of the infoset."""
    return [
      {infostate: row for row, infostate in enumerate(infostates)}
      for infostates in self.compiled_game.infostates
    ]

  def _sequences_at(self, player: int, infostate: str) -> Int64s:
    """Returns the sequences of an infoset's actions, shape (actions,)."""
    infosets, row = self.compiled_game.infosets[player], self._rows[player].get(infostate)
    if row is None:
      raise errors.PolicyError(
        f"Player {player}'s infostate {infostate!r} is not in the game that was compiled, {self.compiled_game}."
      )
    first, stride = int(infosets.first_sequence[row]), int(infosets.stride[row])
    return first + stride * np.arange(infosets.num_actions[row])

  def marginals(self) -> open_spiel.PolicyDict:
    """Returns how often each action is recommended, as infostate -> action -> probability.

    The marginals have lost the correlation. Players who play them independently play another policy.
    """
    return open_spiel.to_dict(
      self.compiled_game, forms.behavioral_form(self.compiled_game, self.sequence_form())
    )

  def mediator(self, seed: int | np.random.Generator | None = None) -> "Mediator":
    """Returns a mediator that all players share, for any number of plays in turn.

    Raises:
      ArgumentError: the seed is invalid.
    """
    return Mediator(self, seed)

  def bots(self, seed: int | np.random.Generator | None = None) -> list["MediatedBot"]:
    """Returns one bot a player; the bots share a mediator and follow its recommendations.

        bots = optimal_equilibrium("sheriff(num_rounds=1)").policy.bots(seed=0)
        pyspiel.evaluate_bots(game.new_initial_state(), bots, 0)

    Raises:
      ArgumentError: the seed is invalid.
    """
    mediator = self.mediator(seed)
    return [MediatedBot(mediator, player) for player in range(self.compiled_game.num_players)]


def next_recommendations(
  policy: CorrelatedPolicy, last: Sequence[int], player: int, infostate: str
) -> tuple[Int64s, Float64s]:
  """Returns an infoset's sequences, and the probability that each is recommended next, both of shape (actions,).

  Probabilities are uniform at infosets that followed recommendations never reach.

  Args:
    policy: the distribution of recommendations.
    last: the sequence last recommended to each player; its empty sequence at first.
    player: the infoset's owner.
    infostate: the infoset's information state string.

  Raises:
    PolicyError: the infostate is not in the compiled game.
  """
  sequences = policy._sequences_at(player, infostate)
  weights = np.maximum(policy._weights(last, player, sequences), 0.0)
  total = weights.sum()
  return sequences, weights / total if total > 0 else np.full(len(sequences), 1 / len(sequences))


class PlanPolicy(CorrelatedPolicy):
  """Correlated policy that follows a correlation plan of two players."""

  def __init__(self, pairs: RelevantPairs, plan: Float64s) -> None:
    """Takes the plan, shape (pairs,)."""
    self.compiled_game, self._pairs, self._plan = pairs.game, pairs, plan

  def _weights(self, last: Sequence[int], player: int, sequences: Int64s) -> Float64s:
    number = self._pairs.number
    others = np.full(len(sequences), number[last[1 - player]])
    return self._plan[self._pairs.index_of(player, number[sequences], others)]

  def sequence_form(self) -> Float64s:
    """Returns the probability that each sequence is recommended, shape (sequences,).

    It is the plan's entry for the pair with the other player's empty sequence.
    """
    result = np.zeros(self.compiled_game.end)
    for player, of_player in enumerate(self._pairs.players):
      numbers = np.arange(len(of_player.places))
      pairs = self._pairs.index_of(player, numbers, np.zeros_like(numbers))
      result[of_player.places] = self._plan[pairs]
    return result


class MixturePolicy(CorrelatedPolicy):
  """Mixture of strategy profiles: before each play, one profile is drawn and recommended to all players.

  Example: the iterates of a solver with simultaneous updates. The number of players is arbitrary.
  """

  @typed
  def __init__(
    self,
    game: AnyGame,
    profiles: Sequence[open_spiel.AnyPolicy | Float64s],
    weights: Sequence[float] | None = None,
  ) -> None:
    """Makes the mixture.

    Args:
      game: a compiled game, or an argument of `compile_game`.
      profiles: policies of all players. Each is an array in behavioral form, shape (sequences,), such as
        `solver.current_probabilities()`, or anything that `policies.from_policy` reads.
      weights: one a profile, proportional to its probability; None for equal weights.

    Raises:
      ArgumentError: there are no profiles, or `weights` is not one weight a profile, see `arguments.weights`.
      PolicyError: a profile is not a policy of this game.
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

  def _weights(self, last: Sequence[int], player: int, sequences: Int64s) -> Float64s:
    others = [sequence for other, sequence in enumerate(last) if other != player]
    posterior = self._shares * self._sequence_forms[:, others].prod(axis=1)
    return np.asarray(posterior @ self._sequence_forms[:, sequences])

  def sequence_form(self) -> Float64s:
    """Returns the mixture of the profiles' sequence forms, shape (sequences,): the players' average strategies."""
    return np.asarray(self._shares @ self._sequence_forms)

  def gap(self, kind: str = "extensive-form") -> CorrelatedGap:
    """Returns the exact gap from an equilibrium.

    Args:
      kind: a name in `correlated.KINDS`, "normal-form" or "mixed normal-form". In "normal-form", Aumann's, the mediator
        tells each player a pure strategy drawn from its part of the profile; in "mixed normal-form", the whole part.

    Raises:
      ArgumentError: the kind is unknown.
      AbstractionError: the game is a lossy abstraction, or infosets are shared.
      GameTooLargeError: the kind needs more than 2^26 regrets, or too many pure strategies.
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
  """Mediator: it recommends actions to all players, for any number of plays in turn.

  Attributes:
    compiled_game: `CompiledGame`. The game.
  """

  @typed
  def __init__(
    self, correlated_policy: CorrelatedPolicy, seed: int | np.random.Generator | None = None
  ) -> None:
    """Begins a play.

    Args:
      correlated_policy: the distribution of recommendations.
      seed: the seed of the draws, or a generator.

    Raises:
      ArgumentError: the seed is invalid.
    """
    self.compiled_game = correlated_policy.compiled_game
    self._policy = correlated_policy
    if not isinstance(seed, np.random.Generator):
      seed = np.random.default_rng(None if seed is None else arguments.integer(seed, "seed", 0))
    self._rng = seed
    self.restart()

  def restart(self) -> None:
    """Begins another play."""
    # (player, infostate) -> index, in the list of legal actions, of the action recommended in this play.
    self._recommended: dict[tuple[int, str], int] = {}

  def recommend(self, state: Any, player: int | None = None) -> int:
    """Returns the recommended action. A repeated call at the same infoset returns the same action.

    Args:
      state: a state of this play at which the player is to move.
      player: the player to move; needed at simultaneous nodes.

    Raises:
      PolicyError: the player is not to move, the state is not in the compiled game, or the player gets no further
        recommendations: it has taken another action than recommended, or acted without asking.
    """
    player = player_to_move(state, player)
    view = self.compiled_game.view
    view.check_state(state)
    last, deviators = self._retrace(state)
    if player in deviators:
      raise errors.PolicyError(
        f"Before the history [{state.history_str()}] player {player} has not followed the mediator's recommendation, "
        "and is told no more. Let it play by a policy, or call restart() if a new play has begun."
      )
    if state.is_simultaneous_node():
      # Players don't see each other's actions here, but their recommendations are correlated.
      for other in range(self.compiled_game.num_players):
        if other not in deviators and state.legal_actions(other):
          self._append(last, other, view.look_up(state, other)[0])
    infostate, legal = view.look_up(state, player)
    key = player, infostate
    if key not in self._recommended:
      _, chances = next_recommendations(self._policy, last, *key)
      self._recommended[key] = int(self._rng.choice(len(legal), p=chances))
    return int(legal[self._recommended[key]])

  def _retrace(self, state: Any) -> tuple[list[int], set[int]]:
    """Returns the sequence last recommended to each player before a state, and the players who have deviated."""
    view = self.compiled_game.view
    last, deviators = [tree.root for tree in self.compiled_game.treeplexes], set[int]()
    past = view.new_initial_state()
    for action in state.history():
      player = past.current_player()
      if player >= 0 and player not in deviators:
        infostate, legal = view.look_up(past, player)
        self._append(last, player, infostate)
        place = self._recommended.get((player, infostate))
        if place is None or legal[place] != action:
          deviators.add(player)
      past.apply_action(action)
    return last, deviators

  def _append(self, last: list[int], player: int, infostate: str) -> None:
    """Replaces a player's last sequence by the one recommended at an infoset, if there is one."""
    place = self._recommended.get((player, infostate))
    if place is not None:
      last[player] = int(self._policy._sequences_at(player, infostate)[place])


class MediatedBot(copying.CopyableBot):
  """Bot that follows a mediator, for `pyspiel.evaluate_bots` and matches. The bots of all players share the mediator.

  Another bot may replace any of them: it gets no recommendations, and the others get theirs as before. A deep copy or a
  pickle of one bot has a mediator of its own; those of a list of bots share one.
  """

  @typed
  def __init__(self, mediator: Mediator, player: int) -> None:
    """Makes the bot.

    Args:
      mediator: the mediator that it follows.
      player: the player that it plays.

    Raises:
      ArgumentError: the game has no such player.
    """
    super().__init__()
    self._mediator = mediator
    players = mediator.compiled_game.num_players
    self._player = arguments.integer(player, "player", 0, players - 1)

  def player_id(self) -> int:
    """Returns the player that it plays."""
    return self._player

  def restart(self) -> None:
    """Begins another play, for all bots that share the mediator."""
    self._mediator.restart()

  def restart_at(self, state: Any) -> None:
    """Begins another play, like `restart`."""
    self.restart()

  def step(self, state: Any) -> int:
    """Returns the recommended action.

    Raises:
      PolicyError: see `Mediator.recommend`.
    """
    return self._mediator.recommend(state, self._player)
