"""Evaluation of a policy part by part: its value and that of a best response, for each player."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._numba.steps import Chain, Step
from spiel_cfr.evaluation.best_responses import (
  Expectation,
  Normalize,
  choose_best,
  expect_value,
  normalize_actions,
  take_best,
)
from spiel_cfr.games.compiled.trunk_and_subtrees import Partition, PartWalk, Visit, Workspace
from spiel_cfr.games.sequence_form.single_passes import backward


class Evaluator:
  """Evaluates policies of one game. All calls use the same arrays and chains."""

  def __init__(self, partition: Partition) -> None:
    """Allocates the arrays."""
    self._partition, self._walk = partition, PartWalk(partition)
    self._expected = np.zeros((len(partition.parts), 1))
    # In small games a chain takes longer to make than to run.
    self._chains: dict[Any, Chain] = {}

  def __call__(
    self,
    sequence_form: npt.NDArray[Any],
    totals: Sequence[float],
    responses: Float64s | None,
    normalizes: bool = False,
  ) -> Float64s:
    """Evaluates a policy.

    Args:
      sequence_form: shape (sequences,).
      totals: the divisor of each player's sequence form.
      responses: shape (sequences,). Filled with the best responses in behavioral form; None if they are not needed.
      normalizes: whether the actions of an infoset are scaled to sum to the sequence above.

    Returns:
      A row for each player: the expected value of the policy, and of a best response.
    """
    walk, parts = self._walk, self._partition.parts
    if responses is not None:
      for forced, _ in self._partition.forced():
        responses[forced] = 1.0

    def visit(player: int, number: int, workspace: Workspace) -> None:
      if number:
        walk.load(number, workspace, sequence_form, totals)
        if normalizes:
          self._normalization(number, workspace).run()
      self._evaluation(player, number, workspace, responses).run()

    walk.load(0, walk.trunk, sequence_form, totals)
    if normalizes:
      self._normalization(0, walk.trunk).run()
    values = np.zeros((len(walk.players), 2))
    for player in walk.players:
      walk.for_each_subtree(functools.partial(visit, player))
      visit(player, 0, walk.trunk)
      root = parts[0].place(player).start
      values[player] = sum(self._expected.ravel().tolist()), walk.trunk.utility[player][root]
    return values

  def _normalization(self, number: int, workspace: Workspace) -> Chain:
    """Returns the steps that scale the actions of each infoset of a part."""
    return self._kept(
      (number, workspace),
      lambda: [
        normalize_actions.on(Normalize(tree, workspace.sequence_form[player]))
        for player, tree in enumerate(self._partition.parts[number].trees)
      ],
    )

  def _evaluation(
    self, player: int, number: int, workspace: Workspace, responses: Float64s | None
  ) -> Chain:
    """Returns the steps that evaluate a player's strategy and its best response in a part."""
    part, walk, visit = self._partition.parts[number], self._walk, Visit(number, player, workspace)
    place, utility = part.place(player), visit.utility

    def steps() -> list[Step]:
      expected = Expectation(utility[place], visit.sequence_form[place], self._expected[number])
      return [
        walk.gradient(visit),
        # Before the values of subtrees are added, so that each leaf counts once.
        expect_value.on(expected),
        *walk.collect(visit),
        backward(
          take_best if responses is None else choose_best,
          part.trees[player],
          utility,
          strategy=None if responses is None else responses[part.sequences[player]],
          scratch=workspace.scratch,
        ),
        *walk.leave(visit),
      ]

    return (
      Chain(steps()) if responses is not None else self._kept((player, number, workspace), steps)
    )

  def _kept(self, key: Any, steps: Callable[[], list[Step]]) -> Chain:
    """Returns the chain of a key, made at the first call."""
    if key not in self._chains:
      self._chains[key] = Chain(steps())
    return self._chains[key]
