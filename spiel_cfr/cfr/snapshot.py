"""What an infoset does at some time: the regrets, strategies and reach that a solver has there."""

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.policies import forms


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
    regrets: R(I, a), the cumulative regrets, action by action, in the game's units, as the solver keeps them: weighted,
      discounted or cut off at 0; None where it keeps none.
    reach: how likely the owner's own moves lead there by its average policy, chance and the other players left out:
      the entry of the average in sequence form, by which the strategies played there weigh in the average.
  """

  iteration: int
  nodes_touched: int
  player: int
  infostate: str
  actions: list[int]
  current: list[float]
  average: list[float]
  regrets: list[float] | None
  reach: float


def snapshots(
  game: CompiledGame,
  infosets: Iterable[tuple[int, str]],
  current: Float64s,
  average: Float64s,
  regrets: Float64s | None,
  *,
  iteration: int,
  nodes_touched: int,
) -> list[Snapshot]:
  """Returns what infosets of a game do, each given by its player and infostate.

  Args:
    game: the game.
    infosets: the infosets.
    current: the current policy in behavioural form, shape (sequences,).
    average: the average policy in behavioural form, shape (sequences,).
    regrets: cumulative regrets of every entry of `CompiledGame.actions`, or None.
    iteration: how many iterations have been done.
    nodes_touched: how many nodes have been visited.
  """
  form = forms.sequence_form(game, average)
  plays, averages = game.to_actions(current), game.to_actions(average)
  places = [{name: place for place, name in enumerate(own)} for own in game.infostates]
  starts = [[0, *itertools.accumulate(counts.tolist())] for counts in game.num_actions]
  offsets = [0, *itertools.accumulate(map(len, game.actions))]
  result = []
  for player, infostate in infosets:
    place = places[player][infostate]
    begin, end = starts[player][place : place + 2]
    here = slice(offsets[player] + begin, offsets[player] + end)
    above = game.treeplexes[player].parent[int(game.infosets[player].position[place])]
    result.append(
      Snapshot(
        iteration,
        nodes_touched,
        player,
        infostate,
        game.actions[player][begin:end].tolist(),
        plays[here].tolist(),
        averages[here].tolist(),
        None if regrets is None else regrets[here].tolist(),
        float(form[above]),
      )
    )
  return result


def owner_of(names: Sequence[Sequence[str]], infostate: str, player: int | None) -> int:
  """Returns the player with an infoset of this name among each player's `names`; `player` says whose is meant.

  Raises:
    ArgumentError: no player has one, or several have.
  """
  if player is not None:
    player = arguments.integer(player, "player", 0, len(names) - 1)
  owners = [
    owner for owner, own in enumerate(names) if player in (None, owner) and infostate in own
  ]
  if len(owners) != 1:
    raise errors.ArgumentError(
      f"{len(owners) or 'No'} players have an infoset {arguments.shortened(infostate)}, where one must have it: "
      "solver.infostates() lists those of each player, or those met yet; player= says whose is meant."
    )
  return owners[0]
