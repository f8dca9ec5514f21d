"""Verdict on a policy: its values, its exploitability, and the infosets at which it loses most."""

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
  """Gain of a best response at an infoset.

  Attributes:
    gain: float. The gain per play, in the game's units, see `Verdict.gains`.
    player: int. The owner of the infoset.
    infostate: str. Its information state string.
    played: dictionary. Action -> probability of the policy.
    best: int. The action of a best response.
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
    compiled_game: `CompiledGame`. The game.
    probabilities: float64 (sequences,). The policy in behavioral form.
    expected_values: float64 (players,). The expected payoff of each player if all play the policy.
    best_response_values: float64 (players,). The value of each player's best response to the others.
    value: float. The value of the game for player 0; None if it is unknown, or the game has none.
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
    """Returns the policy in behavioral form if it is of this game, see `open_spiel.HasArray`."""
    return self.probabilities if open_spiel.is_same_game(game, self.compiled_game) else None

  @property
  def guaranteed(self) -> Float64s | None:
    """The payoff that each player's policy guarantees, shape (2,); None unless two-player constant-sum."""
    if not self.compiled_game.is_two_player_constant_sum:
      return None
    guaranteed: Float64s = (self.compiled_game.constant_sum or 0.0) - self.best_response_values[
      ::-1
    ]
    return guaranteed

  @property
  def value_gaps(self) -> Float64s | None:
    """The value of the game less `guaranteed`, for each player, shape (2,); None without a `value`.

    The gaps are at least 0, up to rounding, and sum to NashConv.
    """
    if self.value is None or self.guaranteed is None:
      return None
    values = np.array([self.value, (self.compiled_game.constant_sum or 0.0) - self.value])
    return values - self.guaranteed

  @functools.cached_property
  def gains(self) -> Float64s:
    """The gain of a best response at each infoset per play, shape (infosets,), player by player in order of discovery.

    Let x be the player's sequence form, p its probabilities, and u(ja) the counterfactual value of action a at infoset
    j if its owner plays a best response from there on.

        gain(j) = x(parent of j) (max over a of u(ja) - sum over a of p(ja) u(ja))

    The gains of a player are at least 0, and sum to the gain of its best response.
    """
    game, starts, values = self.compiled_game, self._starts, self._action_values
    if not len(starts):
      return np.zeros(0)
    reach = forms.sequence_form(game, self.probabilities)
    above = [
      tree.parent[infosets.position]
      for tree, infosets in zip(game.treeplexes, game.infosets, strict=True)
    ]
    played = game.to_actions(self.probabilities) * values
    best = np.maximum.reduceat(values, starts)
    result: Float64s = reach[np.concatenate(above)] * (best - np.add.reduceat(played, starts))
    return result

  def worst(self, count: int = 10) -> list[InfosetGain]:
    """Returns up to `count` infosets at which best responses gain most; gains within rounding are left out.

    Gains are against the policies of the others. A gain may therefore be due to a mistake of another player.

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
        part = slice(int(self._starts[row]), ends[row])
        played = dict(zip(actions[part].tolist(), chances[part].tolist(), strict=True))
        best = int(actions[part][self._action_values[part].argmax()])
        player = int(np.searchsorted(firsts, row, side="right")) - 1
        infostate = game.infostates[player][row - firsts[player]]
        result.append(InfosetGain(float(self.gains[row]), player, infostate, played, best))
    return result

  @functools.cached_property
  def _action_values(self) -> Float64s:
    """The values u of `gains`, shape (actions,), in order of discovery."""
    game = self.compiled_game
    values = counterfactual_values.gradients(game, forms.sequence_form(game, self.probabilities))
    counterfactual_values.backward_pass(game, take_best, values)
    return game.to_actions(values)

  @functools.cached_property
  def _starts(self) -> Int64s:
    """The first action of each infoset, in order of discovery."""
    counts = np.concatenate(self.compiled_game.num_actions)
    result: Int64s = np.cumsum(counts) - counts
    return result

  def explore(self, path: str | os.PathLike[str], **options: Any) -> Exploration:
    """Writes a page to click through the game and the policy; `options` are those of `explore`.

    Raises:
      ArgumentError: an option is invalid.
      GameTooLargeError: the game has more histories than `max_nodes`.
      OSError: the file can't be written.
    """
    return explore(self.policy, path, game=self.compiled_game, **options)

  def __repr__(self) -> str:
    return f"<Verdict on a policy of {self.compiled_game.name}: NashConv {self.nash_conv:z.6g}>"

  def __str__(self) -> str:
    game = self.compiled_game
    rows = {
      "expected value": self.expected_values,
      "best response value": self.best_response_values,
      "gain of best response": self.best_response_values - self.expected_values,
      "guaranteed by the policy": self.guaranteed,
      "value less guarantee": self.value_gaps,
    }
    lines = [
      str(game),
      " " * 26 + "".join(f"player {i}".rjust(12) for i in range(game.num_players)),
    ]
    for name, numbers in rows.items():
      if numbers is not None:
        lines.append(f"{name:26}" + "".join(f"{each:z12.6f}" for each in numbers.tolist()))
    if game.is_two_player_constant_sum:
      value = "" if self.value is None else f"; value of the game {self.value:z.6f} for player 0"
      lines.append(
        f"exploitability {self.exploitability:z.6g}, NashConv {self.nash_conv:z.6g}{value}"
      )
    else:
      lines += [
        f"NashConv {self.nash_conv:z.6g}: the sum of the gains of best responses to the others' policies, 0 in a Nash",
        "equilibrium. In this game it bounds no payoff against other policies.",
      ]
    worst = self.worst(5)
    if worst:
      lines.append("Largest shares of NashConv, by infoset:")
    lines += [
      f"{each.gain / self.gains.sum():z6.1%} player {each.player} plays the best action, {best}, with probability "
      f"{each.played[each.best]:z.3g} at {each.infostate!r}"
      for each, best in zip(worst, self._best_actions(worst), strict=True)
    ]
    return "\n".join(lines)

  def _best_actions(self, places: list[InfosetGain]) -> list[str]:
    """Returns the name of the best action at each infoset; its number if the game has no state of the infoset."""
    game = self.compiled_game
    try:
      # These forms would have to walk all histories to find a state.
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
