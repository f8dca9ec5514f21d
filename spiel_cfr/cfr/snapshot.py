"""Snapshots of infosets: regrets, strategies and reach at some iteration of a solver."""

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.policies import forms


class Snapshot(NamedTuple):
  """The regrets, strategies and reach of an infoset at some iteration.

  Attributes:
    iteration: the number of iterations done.
    nodes_touched: the number of nodes visited.
    player: the owner of the infoset.
    infostate: the information state string.
    actions: the legal actions.
    current: the current strategy, action by action.
    average: the average strategy, action by action.
    regrets: R(I, a), the cumulative regrets, action by action, in the game's units, as the solver keeps them: weighted,
      discounted or cut off at 0. None if the solver keeps no regrets.
    reach: the probability that the owner's own moves lead to the infoset, by its average policy: its sequence form at
      the sequence above.
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
  """Returns snapshots of infosets of a game.

  Args:
    game: the game.
    infosets: the player and infostate of each.
    current: the current policy in behavioral form, shape (sequences,).
    average: the average policy in behavioral form, shape (sequences,).
    regrets: cumulative regrets of every entry of `CompiledGame.actions`, or None.
    iteration: the number of iterations done.
    nodes_touched: the number of nodes visited.
  """
  form = forms.sequence_form(game, average)
  plays, averages = game.to_actions(current), game.to_actions(average)
  places = [{name: place for place, name in enumerate(names)} for names in game.infostates]
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
  """Returns the player with an infoset of this name, given each player's `names`; `player` chooses among several.

  Raises:
    ArgumentError: no player has one, or several have.
  """
  arguments.of_type(infostate, "infostate", str)
  if player is not None:
    player = arguments.integer(player, "player", 0, len(names) - 1)
  owners = [
    owner
    for owner, infostates in enumerate(names)
    if player in (None, owner) and infostate in infostates
  ]
  if len(owners) != 1:
    raise errors.ArgumentError(
      f"{len(owners) or 'No'} players have an infoset {arguments.shortened(infostate)}, and exactly one must: "
      "solver.infostates() lists those of each player, or those met yet; player= chooses the owner."
    )
  return owners[0]
