"""What a table of infosets plays: policies of the infosets that samples have met, and a look at one of them."""

import copy
from typing import Any, Literal, NamedTuple

import numpy as np
from open_spiel.python import policy as open_spiel_policy

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr.cfr.turns import Turns, take_turns
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.mccfr.compiled_engine import CompiledEngine
from spiel_cfr.mccfr.random_draws import ITERATIONS, VISITED
from spiel_cfr.mccfr.state_engine import StateEngine
from spiel_cfr.policies import forms, open_spiel

Engine = CompiledEngine | StateEngine
# The entries of a table to which probabilities are in proportion: sums of strategies, or the current one.
Which = Literal["cumulative", "strategy"]


class Snapshot(NamedTuple):
  """What an infoset does at some time.

  Attributes:
    iteration: how many iterations had been done.
    nodes_touched: how many nodes had been visited.
    player: whose infoset it is.
    infostate: its information state string.
    actions: its legal actions.
    current: the current strategy, action by action.
    average: the average strategy.
    regret: cumulative regrets, as the minimizer discounts them.
  """

  iteration: int
  nodes_touched: int
  player: int
  infostate: str
  actions: list[int]
  current: list[float]
  average: list[float]
  regret: list[float]


def snapshot(engine: Engine, logarithms: Float64s, player: int, infostate: str) -> Snapshot:
  """Returns what an infoset does now, see `SamplingSolver.snapshot`; `logarithms` are those up to now of `Batch`."""
  player = arguments.integer(player, "player", 0, len(engine.infostates) - 1)
  infoset = engine.infostates[player].get(infostate)
  if infoset is None:
    raise errors.ArgumentError(f"Player {player} has no infoset {infostate!r}, or none met yet.")
  entries = engine.table.entries
  first = entries.first.item(infoset)
  actions, here = engine.actions_of(player, infostate)
  idle, regret = np.exp(logarithms - entries.caught_up[:, first]), entries.regret[here]
  return Snapshot(
    int(engine.counters[ITERATIONS]),
    int(engine.counters[VISITED]),
    player,
    infostate,
    actions,
    entries.strategy[here].tolist(),
    _normalized(entries.cumulative[here]),
    (regret * np.where(regret > 0, *idle)).tolist(),
  )


def sampled_form(compiled: CompiledGame, engine: Engine, which: Which) -> Float64s:
  """Returns what a table plays in a compiled game in behavioural form, shape (sequences,); uniform where unknown."""
  sums, first = getattr(engine.table.entries, which), engine.table.entries.first
  if isinstance(engine, CompiledEngine):
    in_order = sums[compiled.num_players + compiled.shared_entries]
  else:
    in_order, begin = np.zeros(len(compiled.all_action_sequences)), 0
    for infostates, num_actions, met in zip(
      compiled.infostates, compiled.num_actions, engine.infostates, strict=True
    ):
      for infostate, count in zip(infostates, num_actions.tolist(), strict=True):
        infoset = met.get(infostate)
        if infoset is not None:
          in_order[begin : begin + count] = sums[first[infoset] :][:count]
        begin += count
  return forms.behavioral_form(compiled, compiled.from_actions(in_order))


def sampled_dict(engine: Engine, which: Which) -> open_spiel.PolicyDict:
  """Returns what is played where the engine has been, as infostate -> action -> probability."""
  result: open_spiel.PolicyDict = {}
  sums = getattr(engine.table.entries, which)
  for player, infostates in enumerate(engine.infostates):
    for infostate in infostates:
      actions, entries = engine.actions_of(player, infostate)
      result[infostate] = dict(zip(actions, _normalized(sums[entries]), strict=True))
  return result


def _normalized(sums: Float64s) -> list[float]:
  """Returns what is in proportion to sums that are not negative; uniform where they are all zero."""
  total = sums.sum()
  result: list[float] = (sums / total if total > 0 else np.full(len(sums), 1 / len(sums))).tolist()
  return result


@take_turns
class SampledPolicy(open_spiel_policy.Policy):  # type: ignore[misc]
  """A policy for the infosets that a solver has met, uniform elsewhere; it moves with the solver."""

  def __init__(self, view: GameView, engine: Engine, which: Which, turns: Turns) -> None:
    """Keeps its arguments."""
    super().__init__(view.open_spiel_game(), list(range(view.num_players)))
    self._view, self._engine, self._which, self._turns = view, engine, which, turns

  def __copy__(self) -> "SampledPolicy":
    """Returns a copy that stays as it is."""
    return copy.deepcopy(self)

  def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
    """Returns action -> probability.

    Raises:
      PolicyError: no player is to move, or another one is.
    """
    player = open_spiel.player_to_move(state, player_id)
    infostate, actions = self._view.look_up(state, player)
    infoset = self._engine.infostates[player].get(infostate)
    sums = np.zeros(len(actions))
    if infoset is not None:
      entries = self._engine.table.entries
      sums = getattr(entries, self._which)[entries.first.item(infoset) :][: len(actions)]
    return dict(zip(actions, _normalized(sums), strict=True))
