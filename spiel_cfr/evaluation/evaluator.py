"""Evaluator of policies: computes expected values and best responses with compiled chains of kernels.

A large game is evaluated part by part: first the subtrees, in several threads, then the trunk above them.
"""

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
from spiel_cfr.games.compiled.trunk_and_subtrees import Partition, PartSteps, PartWorkspace, Visit
from spiel_cfr.games.sequence_form.single_passes import backward


class Evaluator:
  """Evaluator of the policies of one game. All calls use the same arrays and chains of kernels."""

  def __init__(self, partition: Partition) -> None:
    """Allocates the arrays for the parts of a game."""
    self._partition, self._part_steps = partition, PartSteps(partition)
    self._expected = np.zeros((len(partition.parts), 1))
    # Chains by what they compute. In small games a chain takes longer to make than to run.
    self._chains: dict[Any, Chain] = {}

  def __call__(
    self,
    sequence_form: npt.NDArray[Any],
    scales: Sequence[float],
    best_responses: Float64s | None,
    normalizes: bool = False,
  ) -> Float64s:
    """Evaluates a policy.

    Args:
      sequence_form: shape (sequences,). A positive multiple of each player's strategy.
      scales: that multiple, one number for each player.
      best_responses: shape (sequences,). Overwritten with the best responses in behavioral form; None to omit them.
      normalizes: True to rescale the actions of each infoset so that they sum to the sequence above.

    Returns:
      Shape (players, 2): each player's expected value of the policy, and of its best response.
    """
    part_steps, parts = self._part_steps, self._partition.parts
    if best_responses is not None:
      for forced, _ in self._partition.forced():
        best_responses[forced] = 1.0

    def evaluate_part(player: int, number: int, workspace: PartWorkspace) -> None:
      if number:
        part_steps.load(number, workspace, sequence_form, scales)
        if normalizes:
          self._normalization(number, workspace).run()
      self._evaluation(player, number, workspace, best_responses).run()

    part_steps.load(0, part_steps.workspace_of_part_0, sequence_form, scales)
    if normalizes:
      self._normalization(0, part_steps.workspace_of_part_0).run()
    values = np.zeros((len(part_steps.players), 2))
    for player in part_steps.players:
      part_steps.for_each_subtree(functools.partial(evaluate_part, player))
      evaluate_part(player, 0, part_steps.workspace_of_part_0)
      root = parts[0].player_slice(player).start
      values[player] = (
        sum(self._expected.ravel().tolist()),
        part_steps.workspace_of_part_0.utility[player][root],
      )
    return values

  def _normalization(self, number: int, workspace: PartWorkspace) -> Chain:
    """Returns the chain that rescales the actions of each infoset of a part to sum to the sequence above."""
    return self._cached_chain(
      (number, workspace),
      lambda: [
        normalize_actions.on(Normalize(tree, workspace.sequence_form[player]))
        for player, tree in enumerate(self._partition.parts[number].trees)
      ],
    )

  def _evaluation(
    self, player: int, number: int, workspace: PartWorkspace, best_responses: Float64s | None
  ) -> Chain:
    """Returns the chain that evaluates a player's strategy and its best response in a part."""
    part, part_steps = self._partition.parts[number], self._part_steps
    visit = Visit(number, player, workspace)
    sequences, utility = part.player_slice(player), visit.utility

    def steps() -> list[Step]:
      expected = Expectation(
        utility[sequences], visit.sequence_form[sequences], self._expected[number]
      )
      return [
        part_steps.gradient(visit),
        # The expected value comes before the values of subtrees are added, so that every leaf counts once.
        expect_value.on(expected),
        *part_steps.add_passed_up_values(visit),
        backward(
          take_best if best_responses is None else choose_best,
          part.trees[player],
          utility,
          strategy=None if best_responses is None else best_responses[part.sequences[player]],
          scratch=workspace.scratch,
        ),
        *part_steps.pass_up_values(visit),
      ]

    # The caller's array of best responses is another one at each call.
    if best_responses is not None:
      return Chain(steps())
    return self._cached_chain((player, number, workspace), steps)

  def _cached_chain(self, key: Any, steps: Callable[[], list[Step]]) -> Chain:
    """Returns the chain stored under a key; the first call makes it from the steps."""
    if key not in self._chains:
      self._chains[key] = Chain(steps())
    return self._chains[key]
