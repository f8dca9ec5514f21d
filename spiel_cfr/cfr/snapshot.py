"""Snapshots of infosets: regrets, strategies and reach after some iteration of a solver."""

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.policies import forms


class Snapshot(NamedTuple):
  """The regrets, strategies and reach of an infoset after some iteration.

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
    reach: the probability that the owner's own moves lead to the infoset, by its average policy. It is the sequence
      form of the sequence above the infoset.
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


class Inspectable(Protocol):
  """The part of a solver that a snapshot shows."""

  compiled_game: CompiledGame
  iteration: int

  @property
  def nodes_touched(self) -> int:
    """The number of nodes visited."""

  def current_probabilities(self) -> Float64s:
    """Returns the current policy in behavioral form, shape (sequences,)."""

  def average_probabilities(self) -> Float64s:
    """Returns the average policy in behavioral form, shape (sequences,)."""

  def cumulative_regrets(self) -> Float64s | None:
    """Returns the cumulative regret of every entry of `CompiledGame.actions`, or None."""


def snapshots(solver: Inspectable, infosets: Iterable[tuple[int, str]]) -> list[Snapshot]:
  """Returns snapshots of infosets, which are given as pairs of the player and the infostate."""
  game, regrets = solver.compiled_game, solver.cumulative_regrets()
  current, average = solver.current_probabilities(), solver.average_probabilities()
  average_sequence_form = forms.sequence_form(game, average)
  # Arrays of actions have all players' infosets one after the other, in the order of `game.infostates`.
  current_actions, average_actions = game.to_actions(current), game.to_actions(average)
  indices = [{name: index for index, name in enumerate(names)} for names in game.infostates]
  bounds = [[0, *itertools.accumulate(counts.tolist())] for counts in game.num_actions]
  offsets = [0, *itertools.accumulate(map(len, game.actions))]
  result = []
  for player, infostate in infosets:
    index = indices[player][infostate]
    begin, end = bounds[player][index : index + 2]
    entries = slice(offsets[player] + begin, offsets[player] + end)
    parent = game.treeplexes[player].parent[int(game.infosets[player].position[index])]
    result.append(
      Snapshot(
        iteration=int(solver.iteration),
        nodes_touched=solver.nodes_touched,
        player=player,
        infostate=infostate,
        actions=game.actions[player][begin:end].tolist(),
        current=current_actions[entries].tolist(),
        average=average_actions[entries].tolist(),
        regrets=None if regrets is None else regrets[entries].tolist(),
        reach=float(average_sequence_form[parent]),
      )
    )
  return result


def owner_of(names: Sequence[Sequence[str]], infostate: str, player: int | None) -> int:
  """Returns the player who owns an infoset.

  Args:
    names: for each player, the information state strings of its infosets.
    infostate: the information state string of the infoset.
    player: the owner, if several players have an infoset of this name; None to search all players.

  Raises:
    ArgumentError: no player has such an infoset, or several have.
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
