"""Constant step sizes of stable-predictive CFR: equations (14) to (16) of the paper, and the regret bounds (6).

Farina, Kroer, Brown and Sandholm, "Stable-Predictive Optimistic Counterfactual Regret Minimization" (2019). The paper
sees a player's decisions as a tree of points. A *decision point* is an infoset; its children are the sequences that end
with its actions. An *observation point* is a sequence; its children are the infosets that may come next. The root is an
observation point, the player's empty sequence.

A regret minimizer is (kappa, alpha, beta)-stable-predictive if its strategies x^t and its regret R^T satisfy

    (5)   ||x^(t+1) - x^t||_2 <= kappa
    (6)   R^T <= alpha / kappa + beta kappa * sum over t of ||l^t - m^t||_2^2

with l^t the losses and m^t their predictions. The paper minimizes losses, this library maximizes utilities: l^t is the
gradient of a player's utility, up to its sign. At an infoset, l^t is the vector of counterfactual utilities. Norms are
the same for both signs.

The equations distribute the stability of a player's whole strategy, in the Euclidean norm of the sequence form, over
the tree:

    n_v       number of children of point v
    B_v       largest Euclidean norm of a sequence-form strategy from point v on
    gamma_v   target stability of the strategy from point v on
    kappa_j   target stability of the local strategy at infoset j

    (14)  gamma_root = kappa
          gamma_v = gamma_u / (2 sqrt(n_u))     if the parent u of v is a decision point
          gamma_v = gamma_u / sqrt(n_u)         if the parent u of v is an observation point
    (15)  kappa_j = gamma_j / (2 sqrt(n_j) B_j)
    (16)  B_j = sqrt(1 + max of B_k^2 over the children k of infoset j)
          B_k = sqrt(sum of B_j^2 over the children j of sequence k), 0 without children

Let D_j bound the Euclidean norms of the counterfactual losses at infoset j and of their predictions. Then optimistic
follow-the-regularized-leader (OFTRL) with step size

    eta_j = kappa_j / (3 D_j)

is (kappa_j, 3 D_j range_j, 1 / (3 D_j))-stable-predictive, with range_j the range of its regularizer.
"""

import dataclasses
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.treeplex import Treeplex
from spiel_cfr.regret_minimizers.oftrl import OFTRL
from spiel_cfr.regret_minimizers.regularizers import Regularizer, regularizer_range
from spiel_cfr.stable_predictive.regret_composition import (
  decision_depths,
  infosets_of,
  largest_plan_sums,
)

# What D is computed from: the largest possible utility of each infoset, or the largest payoff of the game.
LossBounds: TypeAlias = Literal["infosets", "payoffs"]


@dataclasses.dataclass(frozen=True, eq=False)
class PaperSteps:
  """Step sizes of the paper for a game, and the constants of its regret bounds.

  A player's whole strategy is (kappa_root, alpha, beta)-stable-predictive. Let l^t be the gradient of its utility in
  iteration t, and m^t the prediction of the gradient. After T iterations, the player's regret is at most

      (6)   alpha / kappa_root + beta kappa_root * sum over t of ||l^t - m^t||_2^2

  This bound depends on the run. The player's regret is also at most a number that is known before the run:

      alpha / kappa_root + first_error_factor kappa_root + later_errors_factor kappa_root^3 (T - 1)

  docs/theory/stable_predictive.md derives both bounds. They hold for steps of any kappa_root.

  Attributes:
    regularizer: "entropy" or "euclidean".
    horizon: the number of iterations for which the steps are best; None if the caller gave kappa_root instead.
    kappa_root: float. The target stability of each player's whole strategy, kappa in (14).
    stability: float64 (infosets,). Gamma of (14), the target stability of the strategy from each infoset on.
    kappa: float64 (infosets,). The target stability of each infoset's local strategy, (15).
    strategy_norm: float64 (infosets,). B, the largest Euclidean norm of a sequence-form strategy from the infoset on,
      (16).
    loss_norm: float64 (infosets,). D, a bound on the Euclidean norms of the counterfactual utilities and of their
      predictions.
    regularizer_range: float64 (infosets,). The range of the regularizer on the infoset's simplex.
    steps: float64 (infosets,). The step sizes, kappa / (3 D).
    alpha: float64 (players,). The factor of 1 / kappa_root in both bounds on the player's regret.
    beta: float64 (players,). The factor of kappa_root times the sum of squared errors in the bound (6).
    sensitivity: float64 (players,). The largest change of the Euclidean norm of the player's gradient when the
      sequence form of every other player moves by 1.
    opponent_movement: float64 (players,). The largest l1 movement of a local strategy of the other players in an
      iteration, in units of kappa_root, summed over the levels of their decisions. The error of the prediction at an
      infoset is at most D * opponent_movement * kappa_root.
    first_error_factor: float64 (players,). The factor of kappa_root in the bound before the run: the cost of the first
      iteration, which has no prediction.
    later_errors_factor: float64 (players,). The factor of kappa_root^3 (T - 1) in the bound before the run: the cost of
      the errors of all other predictions.
  """

  regularizer: Regularizer
  horizon: int | None
  kappa_root: float
  stability: Float64s
  kappa: Float64s
  strategy_norm: Float64s
  loss_norm: Float64s
  regularizer_range: Float64s
  steps: Float64s
  alpha: Float64s
  beta: Float64s
  sensitivity: Float64s
  opponent_movement: Float64s
  first_error_factor: Float64s
  later_errors_factor: Float64s

  def minimizer(self) -> OFTRL:
    """Returns the regret minimizer with these steps."""
    return OFTRL(self.steps, self.regularizer)

  def regret_bound(self, player: int, squared_errors: float) -> float:
    """Returns the bound (6) on a player's regret, given the sum over t of ||l^t - m^t||_2^2."""
    of_errors = self.beta[player] * self.kappa_root * squared_errors
    return float(self.alpha[player] / self.kappa_root + of_errors)

  def guarantee(self, iterations: int) -> float:
    """Returns a bound on the sum of all players' regrets divided by `iterations`, which is known before the run."""
    kappa = self.kappa_root
    later_errors = self.later_errors_factor * kappa**3 * (iterations - 1)
    regrets = (self.alpha / kappa + self.first_error_factor * kappa + later_errors).sum()
    return float(regrets / iterations)

  def scaled(self, factor: float) -> "PaperSteps":
    """Returns the constants for `factor` times the stability. Gamma, kappa and the steps are proportional to it."""
    return dataclasses.replace(
      self,
      kappa_root=factor * self.kappa_root,
      stability=factor * self.stability,
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
  """Returns the paper's step sizes for a game.

  Args:
    game: the game.
    regularizer: the regularizer of the regret minimizers.
    horizon: the number of iterations for which the regret bound is smallest. None is allowed if `kappa_root` is given.
    kappa_root: the target stability of a player's whole strategy. By default, the best one for `horizon`.
    loss_bounds: what D is computed from. With "infosets", D comes from each infoset's largest possible utility. The
      error of a prediction is then at most D times the movement of the other players' local strategies. With
      "payoffs", D comes from the largest payoff of the game. The error of a prediction is then at most `sensitivity`
      times the movement of the other players' whole strategies.
  """
  trees = game.treeplexes
  actions = np.concatenate([tree.infoset_actions for tree in trees])
  ranges = regularizer_range(regularizer, actions)
  strategy_norm = np.concatenate([_strategy_norms(tree) for tree in trees])
  loss_norm = _loss_norms(game, loss_bounds)
  # Names that begin with `unit` are for kappa_root = 1. Gamma, kappa and the steps are proportional to kappa_root.
  unit_gamma = np.concatenate([_unit_gammas(tree) for tree in trees])
  unit_kappa = unit_gamma / (2 * np.sqrt(actions) * strategy_norm)
  # If D is 0, all utilities are 0 and a constant strategy has no regret: the step and the local regret are 0.
  has_losses = loss_norm > 0
  unit_steps = _divided(unit_kappa, 3 * loss_norm, has_losses)
  # By Lemmas 1 and 2, a player's regret is at most the sum of local bounds (6), range / step + step * squared errors.
  alpha = largest_plan_sums(trees, _divided(ranges, unit_steps, has_losses))
  # Let e_j be the error of the predicted utilities at infoset j. Let e_j' be the error of the predicted gradient at all
  # of the player's sequences from j on. Then ||e_j||_2 <= B_j ||e_j'||_2. Infosets j after one observation point have
  # different entries of the gradient. So the sum of step_j ||e_j||_2^2 over these j is at most the maximum of
  # step_j B_j^2 times the sum of ||e_j'||_2^2.
  beta = largest_plan_sums(trees, unit_steps * strategy_norm**2, np.maximum)
  first_error_factor = largest_plan_sums(trees, unit_steps * loss_norm**2)
  sensitivity = np.array(
    [game.payoff.sensitivity(trees, player) for player in range(game.num_players)]
  )
  movement = np.array([_local_movement(tree, unit_kappa[infosets_of(tree)]) for tree in trees])
  opponent_movement = movement.sum() - movement
  if loss_bounds == "payoffs":
    later_errors_factor = beta * sensitivity**2
  else:
    later_errors_factor = first_error_factor * opponent_movement**2
  if kappa_root is None:
    assert horizon is not None
    kappa_root = _best_kappa(alpha, later_errors_factor, horizon)
  return PaperSteps(
    regularizer=regularizer,
    horizon=horizon,
    kappa_root=kappa_root,
    stability=kappa_root * unit_gamma,
    kappa=kappa_root * unit_kappa,
    strategy_norm=strategy_norm,
    loss_norm=loss_norm,
    regularizer_range=ranges,
    steps=kappa_root * unit_steps,
    alpha=alpha,
    beta=beta,
    sensitivity=sensitivity,
    opponent_movement=opponent_movement,
    first_error_factor=first_error_factor,
    later_errors_factor=later_errors_factor,
  )


def _best_kappa(alpha: Float64s, later_errors_factor: Float64s, horizon: int) -> float:
  """Returns the kappa_root that minimizes the sum of all players' regret bounds, without the first error.

  kappa_root = (sum of alpha / (3 horizon * sum of later_errors_factor))^(1/4)
  """
  growth = 3 * horizon * float(later_errors_factor.sum())
  return float((alpha.sum() / growth) ** 0.25) if growth > 0 else 1.0


def _strategy_norms(tree: Treeplex) -> Float64s:
  """Returns B of each of a player's infosets, equation (16)."""
  norms = np.zeros(tree.num_infosets)
  # B^2 of the observation point at each sequence.
  squares_below = np.zeros(tree.end)
  for sequences, infosets in reversed(list(tree.infoset_groups())):
    squares = 1 + squares_below[sequences].max(axis=0)
    norms[infosets] = np.sqrt(squares)
    np.add.at(squares_below, tree.parent[infosets], squares)
  return norms


def _unit_gammas(tree: Treeplex) -> Float64s:
  """Returns gamma of each of a player's infosets, equation (14), for gamma_root = 1."""
  gamma = np.zeros(tree.num_infosets)
  # The numbers of children and gamma of the observation point at each sequence.
  children = np.bincount(tree.parent, minlength=tree.end)
  gamma_of_sequence = np.zeros(tree.end)
  gamma_of_sequence[tree.root] = 1.0
  for sequences, infosets in tree.infoset_groups():
    parent = tree.parent[infosets]
    gamma[infosets] = gamma_of_sequence[parent] / np.sqrt(children[parent])
    gamma_of_sequence[sequences] = gamma[infosets] / (2 * np.sqrt(len(sequences)))
  return gamma


def _loss_norms(game: CompiledGame, loss_bounds: LossBounds) -> Float64s:
  """Returns D of each infoset of all players, a bound on the Euclidean norm of its counterfactual utilities."""
  actions = [tree.infoset_actions for tree in game.treeplexes]
  if loss_bounds == "infosets":
    return np.asarray(np.sqrt(np.concatenate(actions)) * game.loss_bounds)
  largest_payoff = max(map(abs, game.payoff_range))
  return np.concatenate(
    [np.full(len(counts), largest_payoff * np.sqrt(counts.max(initial=0))) for counts in actions]
  )


def _local_movement(tree: Treeplex, kappa: Float64s) -> float:
  """Returns the largest l1 movement of a player's local strategies, summed over the levels of its decisions.

  Args:
    tree: the treeplex of the player.
    kappa: float64 (the player's infosets,). The largest Euclidean movement of each local strategy.
  """
  largest = np.zeros(tree.depth)
  np.maximum.at(largest, decision_depths(tree), np.sqrt(tree.infoset_actions) * kappa)
  return float(largest.sum())


def _divided(numerator: Float64s, denominator: Float64s, where: npt.NDArray[np.bool_]) -> Float64s:
  """Returns quotients where `where` is True, and 0 elsewhere."""
  return np.asarray(np.divide(numerator, denominator, out=np.zeros(len(numerator)), where=where))
