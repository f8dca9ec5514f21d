"""Verdict on a policy: its expected values, its exploitability, and the infosets at which best responses gain most."""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._util import arguments
from spiel_cfr.evaluation.best_responses import take_best
from spiel_cfr.evaluation.evaluate import Evaluated
from spiel_cfr.explorer.move_names import MoveNames
from spiel_cfr.games.compiled import counterfactual_values
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.private_moves.private_moves_game import PrivateMovesGame
from spiel_cfr.games.vector.public_tree_game import PublicTreeGame
from spiel_cfr.policies import forms
from spiel_cfr.policies.solved_policy import PolicyResult


class InfosetGain(NamedTuple):
  """Gain of a best response at an infoset.

  Attributes:
    gain: float. The gain per play of the game, in its units, see `Verdict.gains`.
    player: int. The player to move at the infoset.
    infostate: str. The information state string of the infoset.
    played: dictionary. The policy at the infoset: action -> probability.
    best: int. The action of a best response.
  """

  gain: float
  player: int
  infostate: str
  played: dict[int, float]
  best: int


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Verdict(Evaluated, PolicyResult):
  """Exact evaluation of a policy, the result of `judge`; `print` shows it as a table.

  Attributes:
    compiled_game: `CompiledGame`. The game.
    probabilities: float64 (sequences,). The policy in behavioral form.
    expected_values: float64 (players,). The expected payoff of each player if all play the policy.
    best_response_values: float64 (players,). The value of each player's best response to the others.
    value: float. The value of the game for player 0; None if it is unknown, or if the game has no value.
  """

  compiled_game: CompiledGame
  probabilities: Float64s
  expected_values: Float64s
  best_response_values: Float64s
  value: float | None

  @property
  def guaranteed(self) -> Float64s | None:
    """The payoff that each player's policy guarantees, shape (2,); None if the game is not two-player constant-sum."""
    if not self.compiled_game.is_two_player_constant_sum:
      return None
    guaranteed: Float64s = (self.compiled_game.constant_sum or 0.0) - self.best_response_values[
      ::-1
    ]
    return guaranteed

  @property
  def value_gaps(self) -> Float64s | None:
    """The value of the game minus `guaranteed`, for each player, shape (2,); None if `value` is None.

    The gaps are at least 0, up to rounding, and sum to NashConv.
    """
    if self.value is None or self.guaranteed is None:
      return None
    values = np.array([self.value, (self.compiled_game.constant_sum or 0.0) - self.value])
    return values - self.guaranteed

  @functools.cached_property
  def gains(self) -> Float64s:
    """The gain of a best response at each infoset, per play of the game, shape (infosets,).

    Infosets are ordered by player, and then by discovery. Let x be the player's strategy in sequence form, p its action
    probabilities, and u(ja) the counterfactual value of action a at infoset j, if the player plays a best response
    after it.

        gain(j) = x(parent of j) (max over a of u(ja) - sum over a of p(ja) u(ja))

    The gains of a player are at least 0, and sum to the gain of its best response.
    """
    game, starts, values = self.compiled_game, self._starts, self._action_values
    if not len(starts):
      return np.zeros(0)
    reach = forms.sequence_form(game, self.probabilities)
    parents = [
      tree.parent[infosets.position]
      for tree, infosets in zip(game.treeplexes, game.infosets, strict=True)
    ]
    played = game.to_actions(self.probabilities) * values
    best = np.maximum.reduceat(values, starts)
    result: Float64s = reach[np.concatenate(parents)] * (best - np.add.reduceat(played, starts))
    return result

  def worst(self, count: int = 10) -> list[InfosetGain]:
    """Returns up to `count` infosets at which best responses gain most, without gains that may be rounding.

    A best response is against the policies of the other players. Its gain may be due to a mistake of another player.

    Raises:
      ArgumentError: `count` is not a positive integer.
    """
    count = arguments.positive_integer(count, "count")
    game, result = self.compiled_game, []
    least = 1e-12 * max(map(abs, game.payoff_range))
    probabilities, actions = game.to_actions(self.probabilities), np.concatenate(game.actions)
    firsts = [game.infoset_rows(player).start for player in range(game.num_players)]
    ends = [*self._starts[1:].tolist(), len(actions)]
    for row in np.argsort(-self.gains, kind="stable")[:count].tolist():
      if self.gains[row] > least:
        here = slice(int(self._starts[row]), ends[row])
        played = dict(zip(actions[here].tolist(), probabilities[here].tolist(), strict=True))
        best = int(actions[here][self._action_values[here].argmax()])
        player = int(np.searchsorted(firsts, row, side="right")) - 1
        infostate = game.infostates[player][row - firsts[player]]
        result.append(InfosetGain(float(self.gains[row]), player, infostate, played, best))
    return result

  @functools.cached_property
  def _action_values(self) -> Float64s:
    """The counterfactual values u in the formula of `gains`, shape (actions,), in order of discovery."""
    game = self.compiled_game
    values = counterfactual_values.gradients(game, forms.sequence_form(game, self.probabilities))
    counterfactual_values.backward_pass(game, take_best, values)
    return game.to_actions(values)

  @functools.cached_property
  def _starts(self) -> Int64s:
    """The index of the first action of each infoset, shape (infosets,), in order of discovery."""
    counts = np.concatenate(self.compiled_game.num_actions)
    result: Int64s = np.cumsum(counts) - counts
    return result

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
        lines.append(f"{name:26}" + "".join(f"{number:z12.6f}" for number in numbers.tolist()))
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
      f"{infoset.gain / self.gains.sum():z6.1%} player {infoset.player} plays the best action, {best}, with "
      f"probability {infoset.played[infoset.best]:z.3g} at {infoset.infostate!r}"
      for infoset, best in zip(worst, self._best_actions(worst), strict=True)
    ]
    return "\n".join(lines)

  def _best_actions(self, infosets: list[InfosetGain]) -> list[str]:
    """Returns the name of the best action at each infoset; its number if the game has no state of the infoset."""
    game = self.compiled_game
    try:
      # These forms of games would have to walk all histories to find a state.
      if isinstance(game, PublicTreeGame | PrivateMovesGame):
        raise errors.NoStatesError
      names, view = MoveNames(game.game), game.view
    except errors.NoStatesError:
      return [str(infoset.best) for infoset in infosets]
    result = []
    for infoset in infosets:
      # One list of infostates for each player, all but one of them empty.
      infostates: list[list[str]] = [[] for _ in range(game.num_players)]
      infostates[infoset.player].append(infoset.infostate)
      result.append(names.name(view.first_states(infostates)[0], infoset.best))
    return result
