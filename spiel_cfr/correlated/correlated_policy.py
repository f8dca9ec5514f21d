"""Correlated policies, and the mediator that recommends their actions during play.

The mediator draws each recommendation from a correlation plan or a mixture of profiles, conditional on all earlier
recommendations. A player that takes another action, or acts without asking, gets no further recommendations. The other
players still get theirs.
"""

import abc
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._util import arguments, copying
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.cfr.warm_start import read_policy
from spiel_cfr.correlated.correlation_plans import RelevantPairs
from spiel_cfr.correlated.gap_kinds import GAP_KINDS, MEASURABLE_GAPS, NORMAL_FORMS
from spiel_cfr.correlated.gaps import CorrelatedGap, EmpiricalPlay
from spiel_cfr.correlated.normal_form_gap import normal_form_gap
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.infosets import entry_slices
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.policies import forms, open_spiel
from spiel_cfr.policies.tabular_policy import player_to_move


class CorrelatedPolicy(abc.ABC):
  """Base class of correlated policies: joint distributions of recommendations to all players.

  Attributes:
    compiled_game: `CompiledGame`. The game.
  """

  compiled_game: CompiledGame

  @abc.abstractmethod
  def _joint_probabilities(
    self, last_sequences: Sequence[int], player: int, sequences: Int64s
  ) -> Float64s:
    """Returns the probability that each sequence is recommended together with the other players' last sequences.

    Args:
      last_sequences: the sequence last recommended to each player, as an index of solvers' arrays.
      player: the player of `sequences`.
      sequences: the sequences of an infoset's actions, shape (actions,).

    Returns:
      Shape (actions,). Rounding can make an entry slightly negative.
    """

  @abc.abstractmethod
  def sequence_form(self) -> Float64s:
    """Returns the probability that each sequence is recommended, shape (sequences,)."""

  @functools.cached_property
  def _entry_slices(self) -> list[dict[str, slice]]:
    """For each player, a dictionary: infostate -> slice of its actions in arrays over all actions."""
    return entry_slices(self.compiled_game.infosets)

  def _sequences_at(self, player: int, infostate: str) -> Int64s:
    """Returns the sequences of an infoset's actions, as indices of solvers' arrays, shape (actions,)."""
    entries = self._entry_slices[player].get(infostate)
    if entries is None:
      raise errors.PolicyError(
        f"Player {player}'s infostate {infostate!r} is not in the game that was compiled, {self.compiled_game}."
      )
    return self.compiled_game.all_action_sequences[entries]

  def marginals(self) -> open_spiel.PolicyDict:
    """Returns the probability of each recommendation at its infoset, as infostate -> action -> probability.

    Marginals do not contain the correlation: players that follow them independently play another policy.
    """
    return open_spiel.to_dict(
      self.compiled_game, forms.behavioral_form(self.compiled_game, self.sequence_form())
    )

  def mediator(self, seed: int | np.random.Generator | None = None) -> "Mediator":
    """Returns a mediator that all players share, for any number of consecutive plays.

    Raises:
      ArgumentError: the seed is invalid.
    """
    return Mediator(self, seed)

  def bots(self, seed: int | np.random.Generator | None = None) -> list["MediatedBot"]:
    """Returns one bot for each player. The bots share a mediator, and follow its recommendations.

        bots = optimal_equilibrium("sheriff(num_rounds=1)").policy.bots(seed=0)
        pyspiel.evaluate_bots(game.new_initial_state(), bots, 0)

    Raises:
      ArgumentError: the seed is invalid.
    """
    mediator = self.mediator(seed)
    return [MediatedBot(mediator, player) for player in range(self.compiled_game.num_players)]


def next_recommendations(
  policy: CorrelatedPolicy, last_sequences: Sequence[int], player: int, infostate: str
) -> tuple[Int64s, Float64s]:
  """Returns an infoset's sequences, and the probability that each is recommended next, both of shape (actions,).

  Sequences are indices of solvers' arrays. Probabilities are uniform at infosets that a player never reaches if it
  follows all recommendations.

  Args:
    policy: the distribution of recommendations.
    last_sequences: the sequence last recommended to each player, which is its empty sequence before the first
      recommendation.
    player: the player to move at the infoset.
    infostate: the infoset's information state string.

  Raises:
    PolicyError: the infostate is not in the compiled game.
  """
  sequences = policy._sequences_at(player, infostate)
  joint = np.maximum(policy._joint_probabilities(last_sequences, player, sequences), 0.0)
  total = joint.sum()
  return sequences, joint / total if total > 0 else np.full(len(sequences), 1 / len(sequences))


class PlanPolicy(CorrelatedPolicy):
  """Correlated policy of two players that follows a correlation plan."""

  def __init__(self, pairs: RelevantPairs, plan: Float64s) -> None:
    """Makes the policy.

    Args:
      pairs: the relevant pairs of sequences of the game.
      plan: shape (pairs,). The probability of each pair.
    """
    self.compiled_game, self._pairs, self._plan = pairs.game, pairs, plan

  def _joint_probabilities(
    self, last_sequences: Sequence[int], player: int, sequences: Int64s
  ) -> Float64s:
    number = self._pairs.number
    opponent_last = np.full(len(sequences), number[last_sequences[1 - player]])
    return self._plan[self._pairs.index_of(player, number[sequences], opponent_last)]

  def sequence_form(self) -> Float64s:
    """Returns the probability that each sequence is recommended, shape (sequences,).

    It is the plan's entry for the pair of the sequence and the other player's empty sequence.
    """
    result = np.zeros(self.compiled_game.end)
    for player, sequences in enumerate(self._pairs.players):
      numbers = np.arange(len(sequences.indices))
      pairs = self._pairs.index_of(player, numbers, np.zeros_like(numbers))
      result[sequences.indices] = self._plan[pairs]
    return result


class MixturePolicy(CorrelatedPolicy):
  """Mixture of strategy profiles of any number of players: before each play, one is drawn and recommended to all.

  An example are the iterates of a solver with simultaneous updates.
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
      profiles: strategy profiles. A profile is an array in behavioral form, shape (sequences,), such as
        `solver.current_probabilities()`, or anything that `policies.from_policy` reads.
      weights: one number for each profile, proportional to its probability; None for equal weights.

    Raises:
      ArgumentError: there are no profiles, or `weights` are not one valid weight for each profile.
      PolicyError: a profile is not a policy of this game.
      GameError: see `compile_game`.
    """
    self.compiled_game = compile_game(game)
    self._profiles = [read_policy(self.compiled_game, profile) for profile in profiles]
    if not self._profiles:
      raise errors.ArgumentError("profiles is empty. Give at least one strategy profile.")
    checked = arguments.weights(
      np.ones(len(profiles)) if weights is None else weights, "weights, one for each profile,"
    )
    if checked.shape != (len(profiles),):
      raise errors.ArgumentError(
        f"weights are {arguments.shortened(weights)} for {len(profiles)} profiles; give one for each."
      )
    self._profile_probabilities = checked / checked.sum()

  @functools.cached_property
  def _sequence_forms(self) -> Float64s:
    """The profiles in sequence form, shape (profiles, sequences)."""
    return np.array(
      [forms.sequence_form(self.compiled_game, profile) for profile in self._profiles]
    )

  def _joint_probabilities(
    self, last_sequences: Sequence[int], player: int, sequences: Int64s
  ) -> Float64s:
    others = [sequence for other, sequence in enumerate(last_sequences) if other != player]
    # The probability that a profile is drawn and recommends the other players' last sequences.
    joint = self._profile_probabilities * self._sequence_forms[:, others].prod(axis=1)
    return np.asarray(joint @ self._sequence_forms[:, sequences])

  def sequence_form(self) -> Float64s:
    """Returns the players' average strategies, shape (sequences,): the mean of the profiles in sequence form."""
    return np.asarray(self._profile_probabilities @ self._sequence_forms)

  def gap(self, kind: str = "extensive-form") -> CorrelatedGap:
    """Returns the exact gap of the mixture from a correlated equilibrium.

    Args:
      kind: a name in `correlated.GAP_KINDS`, "normal-form" or "mixed normal-form". The normal-form kind is Aumann's:
        the mediator draws a pure strategy from each player's mixed strategy in the profile, and tells it to the player.
        In the mixed kind, it tells each player its mixed strategy.

    Raises:
      ArgumentError: the kind is unknown.
      AbstractionError: the game is a lossy abstraction, or has shared infosets.
      GameTooLargeError: the kind needs more than 2^26 regrets, or too many pure strategies.
    """
    if kind in NORMAL_FORMS:
      return normal_form_gap(self.compiled_game, self._profiles, self._profile_probabilities, kind)
    arguments.one_of(kind, "kind", (*GAP_KINDS, *NORMAL_FORMS))
    deviations = next(name for name, kinds in MEASURABLE_GAPS.items() if kind in kinds)
    play = EmpiricalPlay(self.compiled_game, deviations)
    probabilities = self._profile_probabilities.tolist()
    for profile, probability in zip(self._profiles, probabilities, strict=True):
      if probability:
        play.add(profile, probability)
    return play.gap(kind)


class Mediator:
  """Mediator that recommends actions to all players, for any number of consecutive plays.

  Attributes:
    compiled_game: `CompiledGame`. The game.
  """

  @typed
  def __init__(
    self, correlated_policy: CorrelatedPolicy, seed: int | np.random.Generator | None = None
  ) -> None:
    """Makes the mediator, ready for a first play.

    Args:
      correlated_policy: the distribution of recommendations.
      seed: the seed of the random draws, or a generator.

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
    self._recommended_index: dict[tuple[int, str], int] = {}

  def recommend(self, state: Any, player: int | None = None) -> int:
    """Returns the recommended action. A repeated call at the same infoset returns the same action.

    Args:
      state: a state of this play at which the player moves.
      player: the player; needed only at simultaneous nodes.

    Raises:
      PolicyError: the player is not to move, or the state is not in the compiled game. Or the player gets no further
        recommendations, because it took another action than recommended, or acted without asking.
    """
    player = player_to_move(state, player)
    view = self.compiled_game.view
    view.check_state(state)
    last_sequences, deviators = self._replay(state)
    if player in deviators:
      raise errors.PolicyError(
        f"Before the history [{state.history_str()}] player {player} has not followed the mediator's recommendation, "
        "and is told no more. Let it play by a policy, or call restart() if a new play has begun."
      )
    if state.is_simultaneous_node():
      # Recommendations at a simultaneous node are correlated too: this one depends on those already made here.
      for other in range(self.compiled_game.num_players):
        if other not in deviators and state.legal_actions(other):
          self._append(last_sequences, other, view.look_up(state, other)[0])
    infostate, legal = view.look_up(state, player)
    key = player, infostate
    if key not in self._recommended_index:
      _, probabilities = next_recommendations(self._policy, last_sequences, *key)
      self._recommended_index[key] = int(self._rng.choice(len(legal), p=probabilities))
    return int(legal[self._recommended_index[key]])

  def _replay(self, state: Any) -> tuple[list[int], set[int]]:
    """Returns the sequence last recommended to each player before a state, and the players that have deviated."""
    view = self.compiled_game.view
    last_sequences = [tree.root for tree in self.compiled_game.treeplexes]
    deviators = set[int]()
    past = view.new_initial_state()
    for action in state.history():
      player = past.current_player()
      if player >= 0 and player not in deviators:
        infostate, legal = view.look_up(past, player)
        self._append(last_sequences, player, infostate)
        index = self._recommended_index.get((player, infostate))
        if index is None or legal[index] != action:
          deviators.add(player)
      past.apply_action(action)
    return last_sequences, deviators

  def _append(self, last_sequences: list[int], player: int, infostate: str) -> None:
    """Replaces a player's last sequence by the sequence recommended at an infoset, if any was."""
    index = self._recommended_index.get((player, infostate))
    if index is not None:
      last_sequences[player] = int(self._policy._sequences_at(player, infostate)[index])


class MediatedBot(copying.CopyableBot):
  """Bot that follows a mediator, for `pyspiel.evaluate_bots` and matches. The bots of all players share the mediator.

  Another bot may replace any of these bots. It gets no recommendations, and the other players still get theirs. A deep
  copy or a pickle of one bot contains a new mediator; the bots in a copied or pickled list share one.
  """

  @typed
  def __init__(self, mediator: Mediator, player: int) -> None:
    """Makes the bot.

    Args:
      mediator: the mediator to follow.
      player: the player to play as.

    Raises:
      ArgumentError: the game has no such player.
    """
    super().__init__()
    self._mediator = mediator
    players = mediator.compiled_game.num_players
    self._player = arguments.integer(player, "player", 0, players - 1)

  def player_id(self) -> int:
    """Returns the player that the bot plays as."""
    return self._player

  def restart(self) -> None:
    """Begins another play for all bots that share the mediator."""
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
