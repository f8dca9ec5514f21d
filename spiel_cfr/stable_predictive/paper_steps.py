"""Step sizes of stable-predictive CFR by position in the tree of decision and observation points.

Farina, Kroer, Brown and Sandholm, "Stable-Predictive Optimistic Counterfactual Regret Minimization" (2019). With n_v
the number of children of a point v, kappa the wanted stability of the whole strategy, and B = 0 below an action that
nothing follows,

    (14)  gamma_root = kappa;   gamma_v = gamma_u / (2 sqrt(n_u)) below a decision point u
                                gamma_v = gamma_u / sqrt(n_u)     below an observation point u
    (15)  kappa_j = gamma_j / (2 sqrt(n_j) B_j)
    (16)  B_k = sqrt(sum of B_j^2 over children j),   B_j = sqrt(1 + max of B_k^2 over children k)

A player's empty sequence is the root, an observation point; the observation point after an action of a decision point
has as children all decision points that may be the next. A regret minimizer whose losses and predictions have norm D_j
or less gets step_j = kappa_j / (3 D_j), and then moves by kappa_j or less.
"""

import dataclasses
from typing import Literal, TypeAlias

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.treeplex import COUNT, DEPTH, Treeplex
from spiel_cfr.regret_minimizers.oftrl import OFTRL
from spiel_cfr.regret_minimizers.regularizers import Regularizer, regularizer_range

# Where D comes from: what the utilities of each infoset can be at most, or the largest payoff of the game.
LossBounds: TypeAlias = Literal["infosets", "payoffs"]


@dataclasses.dataclass(frozen=True, eq=False)
class PaperSteps:
  """The constants of every infoset, all of shape (infosets of all players,), and of every player, shape (players,).

  Attributes:
    regularizer: "entropy" or "euclidean".
    horizon: for how many iterations the steps are best, None if that was not given.
    kappa_root: the stability that is wanted of each player's whole strategy.
    gamma: the stability that is wanted of the strategy from an infoset on.
    kappa: the stability of the local strategy that gives it.
    strategy_norm: B, the largest Euclidean norm of a sequence-form strategy from an infoset on.
    loss_norm: D, no counterfactual loss or prediction has a larger norm.
    regularizer_range: of the regularizer on the simplex of each infoset.
    steps: kappa / (3 D).
    alpha: the regret of player p is at most alpha_p / kappa_root + beta_p kappa_root sum of ||l^t - m^t||^2.
    beta: see alpha.
    sensitivity: by how much the Euclidean norm of a player's gradient changes at most when each other player's
      sequence-form strategy moves by 1.
    pace: what a player's predictions miss by is at most D pace kappa_root at each infoset: the others' largest l1
      movements, summed up over the levels of their decisions, are at most pace kappa_root.
    first_error: before the run the regret of player p is at most alpha_p / kappa_root + first_error_p kappa_root +
      later_errors_p kappa_root^3 (T - 1).
    later_errors: see first_error.
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
    """Returns what plays with these steps."""
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
    regularizer: of the regret minimizers.
    horizon: for how many iterations the regret bound is to be smallest, where `kappa_root` is not given.
    kappa_root: the wanted stability of a player's whole strategy.
    loss_bounds: "infosets" for D_j of what the utilities of each infoset can be at most, and errors that are D_j
      times what the others move by; "payoffs" for one D, the largest payoff, and errors that are L times that.

  Returns:
    The constants. With kappa_root left to them,

      kappa_root = (sum over p of alpha_p / (3 horizon * sum over p of later_errors_p))^(1/4)

    which makes the sum of all players' regret bounds smallest, but for the first error.
  """
  low, high = game.payoff_range
  largest = max(abs(low), abs(high))
  gamma, strategy_norm, loss_norm = (np.zeros(game.num_infosets) for _ in range(3))
  relative_kappa, ranges = np.zeros(game.num_infosets), np.zeros(game.num_infosets)
  for tree in game.treeplexes:
    own, actions = own_infosets(tree), tree.infoset_actions
    strategy_norm[own] = _strategy_norms(tree)
    gamma[own] = _gammas(tree)
    relative_kappa[own] = gamma[own] / (2 * np.sqrt(actions) * strategy_norm[own])
    ranges[own] = regularizer_range(regularizer, actions)
    if loss_bounds == "infosets":
      loss_norm[own] = np.sqrt(actions) * game.loss_bounds[own]
    else:
      loss_norm[own] = largest * np.sqrt(actions.max(initial=0))
  losses = loss_norm > 0
  divisor = np.where(losses, 3 * loss_norm, 1.0)
  # Where there is nothing to lose, standing still has no regret.
  rate = np.where(losses, relative_kappa / divisor, 0.0)
  terms = (
    (ranges / np.where(losses, rate, 1.0) * losses, np.add),
    (rate * strategy_norm**2, np.maximum),
    (rate * loss_norm**2, np.add),
  )
  alpha, beta, first_error = (
    np.array([largest_sum(tree, term[own_infosets(tree)], combined) for tree in game.treeplexes])
    for term, combined in terms
  )
  sensitivity = np.array(
    [game.payoff.sensitivity(game.treeplexes, player) for player in range(game.num_players)]
  )
  paces = np.array([_pace(tree, relative_kappa[own_infosets(tree)]) for tree in game.treeplexes])
  pace = paces.sum() - paces
  later_errors = beta * sensitivity**2 if loss_bounds == "payoffs" else first_error * pace**2
  if kappa_root is None:
    assert horizon is not None
    spread = 3 * horizon * float(later_errors.sum())
    kappa_root = float((alpha.sum() / spread) ** 0.25) if spread > 0 else 1.0
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
  """(16): B of each infoset."""
  norm = np.zeros(tree.num_infosets)
  below = np.zeros(tree.end)
  for sequences, infosets in reversed(list(tree.infoset_groups())):
    squared = 1 + below[sequences].max(axis=0)
    norm[infosets] = np.sqrt(squared)
    np.add.at(below, tree.parent[infosets], squared)
  return norm


def _gammas(tree: Treeplex) -> Float64s:
  """(14): gamma of each infoset, for a root with gamma 1."""
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
  """Returns the largest l1 movements of local strategies that move by kappa at most, summed over levels."""
  largest = np.zeros(tree.depth)
  np.maximum.at(largest, depths(tree), np.sqrt(tree.infoset_actions) * kappa)
  return float(largest.sum())


def own_infosets(tree: Treeplex) -> slice:
  """Returns which infosets of the game are the player's."""
  return slice(tree.first_infoset, tree.first_infoset + tree.num_infosets)


def depths(tree: Treeplex) -> Int64s:
  """Returns how many infosets of the player lie above each, shape (infosets,)."""
  groups = tree.groups.astype(np.int64)
  return np.asarray(np.repeat(groups[:, DEPTH], groups[:, COUNT]))


def largest_sum(tree: Treeplex, terms: Float64s, at_observations: np.ufunc = np.add) -> float:
  """Returns the largest sum of terms of infosets along a pure plan.

  Args:
    tree: the player's.
    terms: of each of the player's infosets, shape (infosets,).
    at_observations: how the infosets that may be the next after an action are combined; `np.add` for all of them,
      `np.maximum` for one of them.
  """
  below = np.zeros(tree.end)
  for sequences, infosets in reversed(list(tree.infoset_groups())):
    best = terms[infosets] + below[sequences].max(axis=0)
    at_observations.at(below, tree.parent[infosets], best)
  return float(below[tree.root])
