"""The verdict on a policy: its value, its exploitability, and the infosets at which it loses."""

import dataclasses
import functools
import os
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._util import arguments
from spiel_cfr.evaluation.best_responses import take_best
from spiel_cfr.evaluation.evaluate import Evaluated
from spiel_cfr.explorer import Exploration, explore
from spiel_cfr.explorer.move_names import MoveNames
from spiel_cfr.games.compiled import counterfactual_values
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.private_moves.private_moves_game import PrivateMovesGame
from spiel_cfr.games.vector.public_tree_game import PublicTreeGame
from spiel_cfr.policies import forms, open_spiel
from spiel_cfr.policies.tabular_policy import CompiledTabularPolicy


class InfosetGain(NamedTuple):
  """The gain of a best response at an infoset.

  Attributes:
    gain: a game, in the game's units, see `Verdict.gains`.
    player: whose infoset.
    infostate: its name.
    played: action -> probability.
    best: the best action, if all that follows is best too.
  """

  gain: float
  player: int
  infostate: str
  played: dict[int, float]
  best: int


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Verdict(Evaluated):
  """Exact evaluation of a policy.

  Attributes:
    compiled_game: the game as arrays.
    probabilities: the policy in behavioural form, shape (sequences,).
    expected_values: what each player expects when all play the policy, shape (players,).
    best_response_values: what each would expect from a best response to the others, shape (players,).
    value: what the game is worth to player 0 if both play perfectly; None if it is not known, or is not one number.
  """

  compiled_game: CompiledGame
  probabilities: Float64s
  expected_values: Float64s
  best_response_values: Float64s
  value: float | None

  @functools.cached_property
  def policy(self) -> CompiledTabularPolicy:
    """The policy, as OpenSpiel's Python class."""
    return CompiledTabularPolicy(self.compiled_game, self.probabilities)

  def probabilities_in(self, game: CompiledGame) -> Float64s | None:
    """See `open_spiel.HasArray`."""
    return self.probabilities if open_spiel.is_same_game(game, self.compiled_game) else None

  @property
  def guaranteed(self) -> Float64s | None:
    """The payoff that each player's policy guarantees, shape (2,); None outside constant-sum games of two players."""
    if not self.compiled_game.is_two_player_constant_sum:
      return None
    found: Float64s = (self.compiled_game.constant_sum or 0.0) - self.best_response_values[::-1]
    return found

  @property
  def value_gaps(self) -> Float64s | None:
    """The value of the game less `guaranteed`, for each player, shape (2,); None without a `value`.

    They are not negative, but for rounding, and sum to NashConv.
    """
    if self.value is None or self.guaranteed is None:
      return None
    values = np.array([self.value, (self.compiled_game.constant_sum or 0.0) - self.value])
    return values - self.guaranteed

  @functools.cached_property
  def gains(self) -> Float64s:
    """The gain of a best response at each infoset, per game; shape (infosets,), all players' in order of discovery.

    With x the player's sequence form, p its probabilities, and u(ja) what action a of infoset j is worth if its owner
    plays a best response from there on, times how likely chance and the others lead there,

        gain(j) = x(parent of j) (max over a of u(ja) - sum over a of p(ja) u(ja)).

    Those of a player are not negative, and sum to what it gains in all.
    """
    game, starts, worth = self.compiled_game, self._starts, self._worth
    if not len(starts):
      return np.zeros(0)
    reach = forms.sequence_form(game, self.probabilities)
    above = [
      tree.parent[own.position] for tree, own in zip(game.treeplexes, game.infosets, strict=True)
    ]
    played = game.to_actions(self.probabilities) * worth
    best = np.maximum.reduceat(worth, starts)
    result: Float64s = reach[np.concatenate(above)] * (best - np.add.reduceat(played, starts))
    return result

  def worst(self, count: int = 10) -> list[InfosetGain]:
    """Returns the infosets at which best responses gain most, at most `count`; none where it is but rounding.

    They leave most against the others as these play. What makes a player gain there may be a fault of another's.

    Raises:
      ArgumentError: `count` is not a positive integer.
    """
    count = arguments.positive_integer(count, "count")
    game, result = self.compiled_game, []
    least = 1e-12 * max(map(abs, game.payoff_range))
    chances, actions = game.to_actions(self.probabilities), np.concatenate(game.actions)
    firsts = [game.infoset_rows(player).start for player in range(game.num_players)]
    ends = [*self._starts[1:].tolist(), len(actions)]
    for row in np.argsort(-self.gains, kind="stable")[:count].tolist():
      if self.gains[row] > least:
        here = slice(int(self._starts[row]), ends[row])
        played = dict(zip(actions[here].tolist(), chances[here].tolist(), strict=True))
        best = int(actions[here][self._worth[here].argmax()])
        player = int(np.searchsorted(firsts, row, side="right")) - 1
        infostate = game.infostates[player][row - firsts[player]]
        result.append(InfosetGain(float(self.gains[row]), player, infostate, played, best))
    return result

  @functools.cached_property
  def _worth(self) -> Float64s:
    """U of `gains`, for every action of every infoset in order of discovery."""
    game = self.compiled_game
    worth = counterfactual_values.gradients(game, forms.sequence_form(game, self.probabilities))
    counterfactual_values.backward_pass(game, take_best, worth)
    return game.to_actions(worth)

  @functools.cached_property
  def _starts(self) -> Int64s:
    """The first action of each infoset, in order of discovery."""
    counts = np.concatenate(self.compiled_game.num_actions)
    result: Int64s = np.cumsum(counts) - counts
    return result

  def explore(self, path: str | os.PathLike[str], **options: Any) -> Exploration:
    """Writes a page on which one clicks through the game and the policy; `options` are those of `explore`.

    Raises:
      ArgumentError: an option makes no sense.
      GameTooLargeError: the game has more histories than `max_nodes`.
      OSError: the file can't be written.
    """
    return explore(self.policy, path, game=self.compiled_game, **options)

  def __repr__(self) -> str:
    return f"<Verdict on a policy of {self.compiled_game.name}: NashConv {self.nash_conv:z.6g}>"

  def __str__(self) -> str:
    game = self.compiled_game
    rows = {
      "all play the policy": self.expected_values,
      "a best response gets": self.best_response_values,
      "which is more by": self.best_response_values - self.expected_values,
      "the policy gets at least": self.guaranteed,
      "perfect play gets more by": self.value_gaps,
    }
    lines = [
      str(game),
      " " * 26 + "".join(f"player {i}".rjust(12) for i in range(game.num_players)),
    ]
    for name, numbers in rows.items():
      if numbers is not None:
        lines.append(f"{name:26}" + "".join(f"{each:z12.6f}" for each in numbers.tolist()))
    if game.is_two_player_constant_sum:
      known = "" if self.value is None else f"; value of the game {self.value:z.6f} for player 0"
      lines.append(
        f"exploitability {self.exploitability:z.6g}, NashConv {self.nash_conv:z.6g}{known}"
      )
    else:
      lines += [
        f"NashConv {self.nash_conv:z.6g}: what players gain by best responses, each while the others stay. 0 is a Nash",
        "equilibrium; here a small one does not say what a policy gets against other players than these.",
      ]
    worst = self.worst(5)
    lines += [
      f"{each.gain / self.gains.sum():z6.1%} of it is gained where player {each.player} plays the best action, {best}, "
      f"with {each.played[each.best]:z.3g}: {each.infostate!r}"
      for each, best in zip(worst, self._best_actions(worst), strict=True)
    ]
    return "\n".join(lines)

  def _best_actions(self, places: list[InfosetGain]) -> list[str]:
    """Returns the name of the best action at each infoset; its number where no state of the infoset is at hand."""
    game = self.compiled_game
    try:
      # In these forms, to find a state would take a walk of all histories.
      if isinstance(game, PublicTreeGame | PrivateMovesGame):
        raise errors.NoStatesError
      names, view = MoveNames(game.game), game.view
    except errors.NoStatesError:
      return [str(each.best) for each in places]
    states = [
      view.first_states([[each.infostate] * (each.player == i) for i in range(game.num_players)])[0]
      for each in places
    ]
    return [names.name(state, each.best) for state, each in zip(states, places, strict=True)]
