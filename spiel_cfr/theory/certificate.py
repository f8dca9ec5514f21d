"""Checks on a run of stable-predictive CFR of everything that its theory promises.

Farina, Kroer, Brown and Sandholm, "Stable-Predictive Optimistic Counterfactual Regret Minimization" (2019). The run is
repeated from its first iteration in single steps, which gives the same strategies bit for bit, so that a solver pays
nothing for a certificate that nobody asks for.

Utilities take the place of losses. A point is a decision point, which is an infoset, or the observation point after a
sequence. The regret of a point is that of the strategies from there on:

    R_v = max over strategies z below v of  sum over t of  <u^t, z> - <u^t, x^t>
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol, Self

import numpy as np

from spiel_cfr.compiled.base import CompiledGame
from spiel_cfr.kernels.arrays import Float64s, Int64s, aligned_zeros
from spiel_cfr.minimizers.oftrl import Prediction
from spiel_cfr.policy import forms
from spiel_cfr.theory.step_sizes import StepSizes

# What rounding may add to sums of many numbers, relative to the bound and to the sum of the payoffs so far.
_ROUNDING = 1e-12


class StablePredictiveRun(Protocol):
  """What is certified: a `StablePredictiveCFRSolver`, whose attributes these are."""

  compiled_game: CompiledGame
  constants: StepSizes
  horizon: int | None
  prediction: Prediction
  averaging: Any
  alternating_updates: bool
  precision: float

  @property
  def iteration(self) -> int: ...  # noqa: D102
  def restarted(self) -> Self: ...  # noqa: D102
  def evaluate_and_update_policy(self) -> None: ...  # noqa: D102
  def current_probabilities(self) -> Float64s: ...  # noqa: D102
  def current_sequence_form(self) -> Float64s: ...  # noqa: D102
  def nash_conv(self) -> float: ...  # noqa: D102


@dataclasses.dataclass(frozen=True)
class Check:
  """One promise of the theory, at all points and iterations.

  Attributes:
    name: what is promised.
    holds: whether it was kept everywhere.
    ratio: the largest measured value, as a fraction of its bound; 1 has no slack left.
    where: the point of that ratio; if the promise was broken, the point where that happened first.
    iteration: likewise.
    value: what was measured there.
    bound: what it must not exceed.
  """

  name: str
  holds: bool
  ratio: float
  where: str
  iteration: int
  value: float
  bound: float

  def __str__(self) -> str:
    """Returns a line of the report."""
    verdict = "holds " if self.holds else "BROKEN"
    return (
      f"{verdict} {self.name:<44} {self.ratio:9.2e}  {self.value:9.2e} <= {self.bound:9.2e}  "
      f"at {self.where}, iteration {self.iteration}"
    )


@dataclasses.dataclass(frozen=True)
class Certificate:
  """What `StablePredictiveCFRSolver.certificate` has found.

  Attributes:
    checks: every promise.
    iterations: how many there were.
    gap: NashConv of the average strategies.
    guarantee: what the theory promises for it before the run, None where it promises nothing.
    notes: what the theory does not cover here, and what it says past the horizon.
  """

  checks: tuple[Check, ...]
  iterations: int
  gap: float
  guarantee: float | None
  notes: tuple[str, ...]

  @property
  def holds(self) -> bool:
    """Whether every promise was kept."""
    return all(check.holds for check in self.checks)

  @property
  def broken(self) -> tuple[Check, ...]:
    """The promises that were not kept."""
    return tuple(check for check in self.checks if not check.holds)

  def __str__(self) -> str:
    """Returns the report: for each promise the least slack, as value / bound, and where."""
    promised = "none" if self.guarantee is None else f"{self.guarantee:.3e}"
    return "\n".join(
      [
        f"{self.iterations} iterations; NashConv {self.gap:.3e}, guaranteed before the run: {promised}",
        *map(str, self.checks),
        *self.notes,
      ]
    )


class _Ledger:
  """Keeps the worst case of each check, or its first violation."""

  def __init__(self) -> None:
    self.checks: dict[str, Check] = {}

  def record(
    self,
    name: str,
    iteration: int,
    values: Float64s,
    bounds: Float64s,
    rounding: float | Float64s,
    where: Callable[[int], str],
  ) -> None:
    """Checks values <= bounds, all of one shape, up to rounding."""
    known = self.checks.get(name)
    if not len(values) or (known and not known.holds):
      return
    ratios = np.divide(values, bounds, out=np.zeros(len(values)), where=bounds > 0)
    broken = ~(values <= bounds * (1 + _ROUNDING) + rounding)
    worst = int(np.argmax(np.where(broken, np.inf, ratios)))
    if known and not broken[worst] and ratios[worst] <= known.ratio:
      return
    self.checks[name] = Check(
      name,
      not broken[worst],
      float(ratios[worst]),
      where(worst),
      iteration,
      float(values[worst]),
      float(bounds[worst]),
    )


class _Player:
  """One player's strategies, losses and regrets, point by point."""

  def __init__(self, solver: StablePredictiveRun, player: int) -> None:
    game = solver.compiled_game
    self.game, self.tree, self.player = game, game.treeplexes[player], player
    self.solver = solver
    tree = self.tree
    self.own = slice(tree.first_infoset, tree.first_infoset + tree.num_infosets)
    self.blocks: list[tuple[Int64s, slice, Int64s]] = [
      (sequences, infosets, tree.parent[infosets].astype(np.int64))
      for sequences, infosets in tree.blocks()
    ]
    self.gradient = aligned_zeros(game.end)
    self.total_gradient, self.predicted_gradient = np.zeros((2, game.end))
    self.predicted, self.local_regret = np.zeros((2, game.end))
    self.played, self.played_below = np.zeros(tree.num_infosets), np.zeros(game.end)
    self.errors = np.zeros(tree.num_infosets)
    self.played_total = self.gradient_errors = self.first_gradient = 0.0

  def at_infoset(self, infoset: int) -> str:
    """Names an infoset, numbered in layout order."""
    return f"player {self.player}'s infostate {self.game.infostate(self.player, infoset)!r}"

  def at_sequence(self, sequence: int) -> str:
    """Names the observation point after a sequence, numbered from the empty one."""
    if sequence == 0:
      return f"player {self.player}'s root"
    for sequences, infosets, _ in self.blocks:
      rows, columns = np.nonzero(sequences == sequence + self.tree.root)
      if len(rows):
        return f"action {rows[0]} at {self.at_infoset(infosets.start + int(columns[0]))}"
    return "padding"

  def at_player(self, _: int) -> str:
    """Names the player."""
    return f"player {self.player}"

  def carried_up(self, strategy: Float64s, gradient: Float64s) -> tuple[Float64s, Float64s]:
    """Counterfactual utilities (11), and the value of each infoset."""
    utility, value = gradient.copy(), np.zeros(self.tree.num_infosets)
    for sequences, infosets, parents in reversed(self.blocks):
      value[infosets] = (strategy[sequences] * utility[sequences]).sum(axis=0)
      np.add.at(utility, parents, value[infosets])
    return utility, value

  def norms(self, vector: Float64s, order: float) -> Float64s:
    """Norm of each infoset's entries."""
    result = np.zeros(self.tree.num_infosets)
    for sequences, infosets, _ in self.blocks:
      result[infosets] = np.linalg.norm(vector[sequences], ord=order, axis=0)
    return result

  def check(self, ledger: _Ledger, t: int, old: Float64s, new: Float64s, seen: Float64s) -> None:
    """Checks iteration t, in which `old` became `new`, having seen the sequence-form strategies `seen`."""
    constants, tree = self.solver.constants, self.tree
    primal, dual = constants.norms
    low, high = self.game.payoff_range
    rounding = _ROUNDING * t * max(abs(low), abs(high))
    self.gradient[:] = 0.0
    self.game.payoff.gradient_into(self.player, seen, self.gradient)
    gradient = self.gradient.copy()
    utility, value = self.carried_up(old, gradient)

    kappa, gamma = constants.kappa[self.own], constants.gamma[self.own]
    loss_norm, steps = constants.loss_norm[self.own], constants.steps[self.own]
    ledger.record(
      "local stability (5)", t, self.norms(new - old, primal), kappa, _ROUNDING, self.at_infoset
    )
    moved, moved_root = self.movement(old, new)
    ledger.record("stability from an infoset on", t, moved, gamma, _ROUNDING, self.at_infoset)
    ledger.record(
      "stability of the whole strategy",
      t,
      np.array([moved_root]),
      np.array([constants.kappa_root]),
      _ROUNDING,
      self.at_player,
    )
    ledger.record(
      "norm of the losses", t, self.norms(utility, dual), loss_norm, rounding, self.at_infoset
    )
    ledger.record(
      "norm of the predictions",
      t,
      self.norms(self.predicted, dual),
      loss_norm,
      rounding,
      self.at_infoset,
    )

    # Local regrets and their bound.
    self.errors += self.norms(utility - self.predicted, dual) ** 2
    best_local = np.zeros(tree.num_infosets)
    for sequences, infosets, _ in self.blocks:
      self.local_regret[sequences] += utility[sequences] - value[infosets]
      best_local[infosets] = self.local_regret[sequences].max(axis=0)
    moving = steps > 0
    diameters = np.divide(
      constants.diameter[self.own], steps, out=np.zeros(len(steps)), where=moving
    )
    bound = diameters + steps * self.errors
    ledger.record("local regret (6)", t, best_local, bound, rounding, self.at_infoset)

    # Regrets of points: Lemmas 1 and 2.
    self.total_gradient += gradient
    self.played += value
    for _, infosets, parents in self.blocks:
      np.add.at(self.played_below, parents, value[infosets])
    sequence_value = float(gradient @ forms.sequence_form(self.game, old))
    self.played_total += sequence_value
    best, best_below = self.total_gradient.copy(), np.zeros(self.game.end)
    regret = np.zeros(tree.num_infosets)
    sum_of_children = np.zeros(self.game.end)
    lemma_2 = np.zeros(tree.num_infosets)
    for sequences, infosets, parents in reversed(self.blocks):
      top = best[sequences].max(axis=0)
      regret[infosets] = top - self.played[infosets]
      below = best_below[sequences] - self.played_below[sequences]
      lemma_2[infosets] = best_local[infosets] + below.max(axis=0)
      np.add.at(best, parents, top)
      np.add.at(best_below, parents, top)
      np.add.at(sum_of_children, parents, regret[infosets])
    point_regret = (best_below - self.played_below)[tree.root : tree.end]
    difference = np.abs(point_regret - sum_of_children[tree.root : tree.end])
    tolerance = np.full(len(difference), rounding)
    ledger.record("Lemma 1, up to rounding", t, difference, tolerance, 0.0, self.at_sequence)
    self.regret = float(best[tree.root]) - self.played_total
    whole = np.array([abs(self.regret - point_regret[0])])
    ledger.record(
      "Lemma 1 at the root, by sequence form",
      t,
      whole,
      tolerance[:1],
      0.0,
      self.at_player,
    )
    ledger.record("Lemma 2", t, regret, lemma_2, rounding, self.at_infoset)

    # The whole strategy's regret, and how fast gradients change.
    error = float(np.linalg.norm(gradient - self.predicted_gradient))
    self.gradient_errors += error**2
    if t == 1:
      self.first_gradient = error
    if self.solver.prediction == "subtree":
      total = constants.regret_bound(self.player, self.gradient_errors)
      ledger.record(
        "regret (6)", t, np.array([self.regret]), np.array([total]), rounding, self.at_player
      )
      self.predicted, _ = self.carried_up(new, gradient)
    else:
      self.predicted = utility
    if t > 1 and not self.solver.alternating_updates:
      bound_on_change = constants.sensitivity[self.player] * constants.kappa_root
      ledger.record(
        "change of the gradient",
        t,
        np.array([error]),
        np.array([bound_on_change]),
        rounding,
        self.at_player,
      )
    self.predicted_gradient = gradient

  def movement(self, old: Float64s, new: Float64s) -> tuple[Float64s, float]:
    """Euclidean distance of the sequence-form strategies from each infoset on, and from the root.

    With x = (a_1 y_1, ..., a_n y_n), y_i = (1, what follows action i), it keeps |y|^2, |dy|^2 and <y, dy>, so that
    small distances are not lost in differences of norms.
    """
    tree = self.tree
    squared, moved, product = np.zeros((3, self.game.end))
    result = np.zeros(tree.num_infosets)
    for sequences, infosets, parents in reversed(self.blocks):
      before, after = old[sequences], new[sequences]
      change = after - before
      norm = 1 + squared[sequences]
      distance = (
        change**2 * norm + 2 * change * after * product[sequences] + after**2 * moved[sequences]
      )
      result[infosets] = np.sqrt(np.maximum(distance.sum(axis=0), 0))
      np.add.at(squared, parents, (before**2 * norm).sum(axis=0))
      np.add.at(moved, parents, distance.sum(axis=0))
      np.add.at(
        product, parents, (before * (change * norm + after * product[sequences])).sum(axis=0)
      )
    return result, float(np.sqrt(max(moved[tree.root], 0)))


def certify(solver: StablePredictiveRun) -> Certificate:
  """Repeats a run and checks it; see `StablePredictiveCFRSolver.certificate`."""
  game = solver.compiled_game
  replica = solver.restarted()
  players = [_Player(solver, player) for player in range(game.num_players)]
  ledger = _Ledger()
  for t in range(1, solver.iteration + 1):
    old, old_sequence = replica.current_probabilities(), replica.current_sequence_form()
    replica.evaluate_and_update_policy()
    new, new_sequence = replica.current_probabilities(), replica.current_sequence_form()
    seen = old_sequence.copy()
    for player, tree in zip(players, game.treeplexes, strict=True):
      player.check(ledger, t, old, new, seen)
      if solver.alternating_updates:
        seen[tree.root : tree.end] = new_sequence[tree.root : tree.end]
  gap, notes, guarantee = solver.nash_conv(), [], None
  if solver.prediction == "last":
    notes.append(
      "The regret of a whole strategy is not bounded: that needs the prediction from the subtree."
    )
  if game.num_players != 2 or game.constant_sum is None:
    notes.append("The gap is not bounded: this is not a zero-sum game of two players.")
  elif solver.alternating_updates:
    notes.append("The gap is not bounded by the regrets: updates alternate.")
  elif solver.averaging != "uniform":
    notes.append("The gap is not bounded by the regrets: averages are not uniform.")
  elif solver.iteration:
    t = solver.iteration
    low, high = game.payoff_range
    ledger.record(
      "gap <= sum of regrets / T",
      t,
      np.array([gap]),
      np.array([sum(player.regret for player in players) / t]),
      max(_ROUNDING, t * solver.precision) * max(abs(low), abs(high)),
      lambda _: "the average strategies",
    )
    if solver.prediction == "subtree":
      guarantee, floor = _guarantee(solver, [player.first_gradient for player in players])
      if solver.horizon is not None and t > solver.horizon:
        notes.append(
          f"Past the horizon of {solver.horizon} iterations the guarantee still falls, but not below "
          f"{floor:.3e}: start again with a longer horizon."
        )
  return Certificate(tuple(ledger.checks.values()), solver.iteration, gap, guarantee, tuple(notes))


def _guarantee(solver: StablePredictiveRun, first_gradients: list[float]) -> tuple[float, float]:
  """Bounds the gap after the iterations that were done, and after any number of them."""
  constants, t = solver.constants, solver.iteration
  changes = (constants.sensitivity * constants.kappa_root) ** 2
  regrets = [
    constants.regret_bound(player, first**2 + (t - 1) * float(changes[player]))
    for player, first in enumerate(first_gradients)
  ]
  floor = constants.kappa_root * float(constants.beta @ changes)
  return sum(regrets) / t, floor
