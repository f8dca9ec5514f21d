"""Constant step sizes of stable-predictive CFR, from the tree of decision and observation points.

Farina, Kroer, Brown and Sandholm, "Stable-Predictive Optimistic Counterfactual Regret Minimization" (2019). Let n_v be
the number of children of a point v, kappa the target stability of the whole strategy, and B = 0 below an action without
children:

    (14)  gamma_root = kappa;   gamma_v = gamma_u / (2 sqrt(n_u)) below a decision point u
                                gamma_v = gamma_u / sqrt(n_u)     below an observation point u
    (15)  kappa_j = gamma_j / (2 sqrt(n_j) B_j)
    (16)  B_k = sqrt(sum of B_j^2 over children j),   B_j = sqrt(1 + max of B_k^2 over children k)

The root is an observation point, a player's empty sequence. The children of the observation point after an action are
the decision points that may come next. A regret minimizer whose losses and predictions have a norm of at most D_j gets
step_j = kappa_j / (3 D_j), and then moves by at most kappa_j.
"""

import dataclasses
from typing import Literal, TypeAlias

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.treeplex import COUNT, DEPTH, Treeplex
from spiel_cfr.regret_minimizers.oftrl import OFTRL
from spiel_cfr.regret_minimizers.regularizers import Regularizer, regularizer_range

# The source of D: the largest possible utility of each infoset, or the largest payoff of the game.
LossBounds: TypeAlias = Literal["infosets", "payoffs"]


@dataclasses.dataclass(frozen=True, eq=False)
class PaperSteps:
  """The constants of the paper's steps, of all players' infosets and of players.

  A player's regret is at most alpha / kappa_root + beta kappa_root sum of ||l^t - m^t||^2. Before the run, it is at
  most alpha / kappa_root + first_error kappa_root + later_errors kappa_root^3 (T - 1).

  Attributes:
    regularizer: "entropy" or "euclidean".
    horizon: the number of iterations for which the steps are best; None if it was not given.
    kappa_root: the target stability of each player's whole strategy.
    gamma: float64 (infosets,). The target stability of the strategy from an infoset on.
    kappa: float64 (infosets,). The target stability of the local strategy.
    strategy_norm: float64 (infosets,). B, the largest Euclidean norm of a sequence-form strategy from an infoset on.
    loss_norm: float64 (infosets,). D, the largest norm of a counterfactual loss or prediction.
    regularizer_range: float64 (infosets,). The range of the regularizer on the simplex.
    steps: float64 (infosets,). kappa / (3 D).
    alpha: float64 (players,). See above.
    beta: float64 (players,). See above.
    sensitivity: float64 (players,). The largest change of the Euclidean norm of the player's gradient when the
      sequence form of every other player moves by 1.
    pace: float64 (players,). The others' largest l1 movements, summed over the levels of their decisions, are at most
      pace kappa_root. So errors of predictions at an infoset are at most D pace kappa_root.
    first_error: float64 (players,). See above.
    later_errors: float64 (players,). See above.
  """

  regularizer: Regularizer
  horizon: int | None
  kappa_root: float
  gamma: Float64s
  kappa: Float64s
  strategy_norm: Float64s
  loss_norm: Float64s
  regularizer_range: Float64s
  steps: Float64s
  alpha: Float64s
  beta: Float64s
  sensitivity: Float64s
  pace: Float64s
  first_error: Float64s
  later_errors: Float64s

  def minimizer(self) -> OFTRL:
    """Returns the minimizer with these steps."""
    return OFTRL(self.steps, self.regularizer)

  def regret_bound(self, player: int, errors: float) -> float:
    """Returns the bound on a player's regret, where `errors` is the sum of the squared errors of the predictions."""
    result = self.alpha[player] / self.kappa_root + self.beta[player] * self.kappa_root * errors
    return float(result)

  def guarantee(self, iterations: int) -> float:
    """Bounds the sum of all regrets over the number of iterations, before the run."""
    kappa = self.kappa_root
    later = self.later_errors * kappa**3 * (iterations - 1)
    total = (self.alpha / kappa + self.first_error * kappa + later).sum()
    return float(total / iterations)

  def scaled(self, factor: float) -> "PaperSteps":
    """Returns the constants for `factor` times the stability: kappa, gamma and steps are proportional to it."""
    return dataclasses.replace(
      self,
      kappa_root=factor * self.kappa_root,
      gamma=factor * self.gamma,
      kappa=factor * self.kappa,
      steps=factor * self.steps,
    )


def paper_steps(
  game: CompiledGame,
  regularizer: Regularizer,
  *,
  horizon: int | None = None,
  kappa_root: float | None = None,
  loss_bounds: LossBounds = "infosets",
) -> PaperSteps:
  """Computes the constants of a game.

  Args:
    game: the game.
    regularizer: the regularizer of the regret minimizers.
    horizon: the number of iterations for which the regret bound is smallest; required without `kappa_root`.
    kappa_root: the target stability of a player's whole strategy; by default, from `horizon`.
    loss_bounds: "infosets" for D_j from the largest possible utility of each infoset, and errors of D_j times the
      movement of the others; "payoffs" for one D, the largest payoff, and errors of L times that.

  Returns:
    The constants. The default kappa_root is

      kappa_root = (sum over p of alpha_p / (3 horizon * sum over p of later_errors_p))^(1/4)

    which minimizes the sum of all players' regret bounds, without the first error.
  """
  low, high = game.payoff_range
  largest = max(abs(low), abs(high))
  gamma, strategy_norm, loss_norm = (np.zeros(game.num_infosets) for _ in range(3))
  relative_kappa, ranges = np.zeros(game.num_infosets), np.zeros(game.num_infosets)
  for tree in game.treeplexes:
    mine, actions = infosets_of(tree), tree.infoset_actions
    strategy_norm[mine] = _strategy_norms(tree)
    gamma[mine] = _gammas(tree)
    relative_kappa[mine] = gamma[mine] / (2 * np.sqrt(actions) * strategy_norm[mine])
    ranges[mine] = regularizer_range(regularizer, actions)
    if loss_bounds == "infosets":
      loss_norm[mine] = np.sqrt(actions) * game.loss_bounds[mine]
    else:
      loss_norm[mine] = largest * np.sqrt(actions.max(initial=0))
  losses = loss_norm > 0
  divisor = np.where(losses, 3 * loss_norm, 1.0)
  # Without losses, a constant strategy has no regret.
  rate = np.where(losses, relative_kappa / divisor, 0.0)
  terms = (
    (ranges / np.where(losses, rate, 1.0) * losses, np.add),
    (rate * strategy_norm**2, np.maximum),
    (rate * loss_norm**2, np.add),
  )
  alpha, beta, first_error = (
    np.array([largest_sum(tree, term[infosets_of(tree)], combined) for tree in game.treeplexes])
    for term, combined in terms
  )
  sensitivity = np.array(
    [game.payoff.sensitivity(game.treeplexes, player) for player in range(game.num_players)]
  )
  paces = np.array([_pace(tree, relative_kappa[infosets_of(tree)]) for tree in game.treeplexes])
  pace = paces.sum() - paces
  later_errors = beta * sensitivity**2 if loss_bounds == "payoffs" else first_error * pace**2
  if kappa_root is None:
    assert horizon is not None
    growth = 3 * horizon * float(later_errors.sum())
    kappa_root = float((alpha.sum() / growth) ** 0.25) if growth > 0 else 1.0
  return PaperSteps(
    regularizer=regularizer,
    horizon=horizon,
    kappa_root=kappa_root,
    gamma=kappa_root * gamma,
    kappa=kappa_root * relative_kappa,
    strategy_norm=strategy_norm,
    loss_norm=loss_norm,
    regularizer_range=ranges,
    steps=kappa_root * rate,
    alpha=alpha,
    beta=beta,
    sensitivity=sensitivity,
    pace=pace,
    first_error=first_error,
    later_errors=later_errors,
  )


def _strategy_norms(tree: Treeplex) -> Float64s:
  """Returns B of each infoset, equation (16)."""
  norm = np.zeros(tree.num_infosets)
  below = np.zeros(tree.end)
  for sequences, infosets in reversed(list(tree.infoset_groups())):
    squared = 1 + below[sequences].max(axis=0)
    norm[infosets] = np.sqrt(squared)
    np.add.at(below, tree.parent[infosets], squared)
  return norm


def _gammas(tree: Treeplex) -> Float64s:
  """Returns gamma of each infoset for a root with gamma 1, equation (14)."""
  gamma = np.zeros(tree.num_infosets)
  children = np.bincount(tree.parent, minlength=tree.end)
  at_observation = np.zeros(tree.end)
  at_observation[tree.root] = 1.0
  for sequences, infosets in tree.infoset_groups():
    parent = tree.parent[infosets]
    gamma[infosets] = at_observation[parent] / np.sqrt(children[parent])
    at_observation[sequences] = gamma[infosets] / (2 * np.sqrt(len(sequences)))
  return gamma


def _pace(tree: Treeplex, kappa: Float64s) -> float:
  """Returns the largest l1 movements of local strategies that move by at most kappa, summed over levels."""
  largest = np.zeros(tree.depth)
  np.maximum.at(largest, depths(tree), np.sqrt(tree.infoset_actions) * kappa)
  return float(largest.sum())


def infosets_of(tree: Treeplex) -> slice:
  """Returns a player's infosets in the game."""
  return slice(tree.first_infoset, tree.first_infoset + tree.num_infosets)


def depths(tree: Treeplex) -> Int64s:
  """Returns the number of the player's infosets above each of its infosets, shape (infosets,)."""
  groups = tree.groups.astype(np.int64)
  return np.asarray(np.repeat(groups[:, DEPTH], groups[:, COUNT]))


def largest_sum(tree: Treeplex, terms: Float64s, at_observations: np.ufunc = np.add) -> float:
  """Returns the largest sum of terms of infosets along a pure plan.

  Args:
    tree: the treeplex of a player.
    terms: float64 (the player's infosets,). The terms.
    at_observations: the combination of the infosets that may come next after an action: `np.add` for all of them,
      `np.maximum` for one of them.
  """
  below = np.zeros(tree.end)
  for sequences, infosets in reversed(list(tree.infoset_groups())):
    best = terms[infosets] + below[sequences].max(axis=0)
    at_observations.at(below, tree.parent[infosets], best)
  return float(below[tree.root])
