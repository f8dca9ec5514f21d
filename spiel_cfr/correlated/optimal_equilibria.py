"""Optimal correlated equilibrium of a two-player game, found by one linear program over correlation plans.

A mediator draws a pair of pure strategies, and recommends to each player the actions of its strategy, at the infosets
that the player reaches. A player may leave the mediator, and then gets no further recommendations. The concepts differ
in the point at which a player decides to leave:

- "EFCE", extensive-form correlated equilibrium: at an infoset, after it sees the recommendation there.
- "EFCCE", extensive-form coarse correlated equilibrium: at an infoset, before it sees the recommendation there.
- "NFCCE", normal-form coarse correlated equilibrium: before the game.

Sources are von Stengel and Forges (2008), and Farina, Bianchi and Sandholm, "Coarse Correlation in Extensive-Form
Games" (2020). Every EFCE is an EFCCE, and every EFCCE an NFCCE, so the optimal value grows down the list.

Let s be the sequence last recommended to a player that leaves: an action of an infoset ("EFCE"), the sequence above an
infoset ("EFCCE"), or the empty sequence ("NFCCE"). The best value that the player can still get at infoset I is

    v_s(I) = max over actions a of I:  sum over t of U[Ia, t] xi[s, t]  +  sum over infosets K right below Ia of v_s(K)

where U are its payoffs. The incentive constraint: at the infosets where the player leaves, these values do not sum to
more than the value of obeying. Each maximum becomes one linear inequality for each action.
"""

import dataclasses
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import scipy  # Python imports its submodules at their first use.

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, concatenated_ranges
from spiel_cfr._util import arguments
from spiel_cfr._util.interrupt import interruptible
from spiel_cfr.correlated.correlated_policy import CorrelatedPolicy, PlanPolicy
from spiel_cfr.correlated.correlation_plans import PlayerSequences, RelevantPairs
from spiel_cfr.evaluation.sequence_form_matrices import payoff_matrix
from spiel_cfr.games.compiling import AnyGame, compile_game

Concept = Literal["EFCE", "EFCCE", "NFCCE"]
Objective = Literal["welfare", "fairness"] | int
# HiGHS's smallest feasibility tolerance.
_TOLERANCE = 1e-10


class Triggers(NamedTuple):
  """Triggers of a player under one concept, and the sequences that the player may play after each.

  A trigger is a point at which the player may leave the mediator: a recommended action ("EFCE"), an infoset ("EFCCE")
  or the start of the game ("NFCCE"). Sequences are numbered as in `PlayerSequences`.

  Attributes:
    recommended: int64 (triggers,). The sequence last recommended at each trigger.
    played: int64 (triggers,). The sequence last played before each trigger.
    previous: int64 (triggers,). The last trigger before each; -1 if there is none.
    obeying: int64 (2, n). Pairs of a trigger and a sequence that the player plays after it, if it obeys.
    leaving: int64 (2, rows). Pairs of a trigger and a sequence that the player may play after it, if it leaves.
  """

  recommended: Int64s
  played: Int64s
  previous: Int64s
  obeying: Int64s
  leaving: Int64s


def _list_triggers(player_sequences: PlayerSequences, concept: Concept) -> Triggers:
  """Returns the triggers of a player under a concept."""
  parent, infoset_of = player_sequences.parent, player_sequences.infoset
  ancestors, descendants = player_sequences.lineage
  if concept == "EFCE":
    recommended, played = np.arange(1, len(infoset_of)), parent[infoset_of[1:]]
    # An infoset has a trigger for each action that may be recommended.
    order, starts, sizes = player_sequences.by_infoset
    infoset = infoset_of[ancestors]
    counts = sizes[infoset]
    trigger = order[concatenated_ranges(starts[infoset], counts)] - 1
    obeying = np.stack([ancestors - 1, descendants])
    leaving = np.stack([trigger, np.repeat(descendants, counts)])
    return Triggers(recommended, played, played - 1, obeying, leaving)
  if concept == "EFCCE":
    after = np.stack([infoset_of[ancestors], descendants])
    return Triggers(parent, parent, infoset_of[parent], after, after)
  root, sequences = np.zeros(1, np.int64), np.arange(1, len(infoset_of))
  after = np.stack([np.zeros(len(sequences), np.int64), sequences])
  return Triggers(root, root, np.full(1, -1), after, after)


class IncentiveConstraints:
  """Incentive constraints of a player under one concept, see `Triggers`.

  A row is a trigger and a sequence that the player may play after leaving there. A value is the variable v_s(I) of a
  trigger with last recommendation s and an infoset I after it. A row bounds the value of its trigger and its sequence's
  infoset from below.

  Attributes:
    obedience: SciPy CSR (triggers, pairs). Its product with a plan is the payoff after each trigger if the player
      obeys.
    immediate: SciPy CSR (rows, pairs). Its product with a plan is the payoff at each row's sequence if the player left.
    later: SciPy CSR (rows, values). 1 at the values of the infosets right below each row's sequence.
    bounded_value: int64 (rows,). The value that each row bounds, in ascending order.
    leaving: SciPy CSR (triggers, values). 1 at the values of the infosets at which a player leaves at each trigger.
    previous: int64 (triggers,). The last trigger before each; -1 if there is none.
  """

  def __init__(self, pairs: RelevantPairs, player: int, concept: Concept) -> None:
    """Makes the constraints from the relevant pairs of the game."""
    self._pairs, self._player = pairs, player
    self._depth = pairs.game.treeplexes[player].depth
    payoffs = payoff_matrix(pairs.game, player)
    self._payoffs = payoffs if player == 0 else payoffs.T.tocsr()
    parent, infoset_of = pairs.players[player].parent, pairs.players[player].infoset
    triggers = _list_triggers(pairs.players[player], concept)
    self.previous = triggers.previous
    num_triggers = len(triggers.recommended)
    trigger, sequence = triggers.leaving
    keys = np.stack([trigger, infoset_of[sequence]])
    (value_trigger, value_infoset), value = np.unique(keys, axis=1, return_inverse=True)
    order = np.argsort(value.ravel(), kind="stable")
    self.bounded_value, trigger, sequence = value.ravel()[order], trigger[order], sequence[order]
    num_rows, num_values = len(sequence), len(value_trigger)

    obeying_trigger, obeying_sequence = triggers.obeying
    self.obedience = self._payoff_rows(
      obeying_sequence, obeying_sequence, obeying_trigger, num_triggers
    )
    self.immediate = self._payoff_rows(
      triggers.recommended[trigger], sequence, np.arange(num_rows), num_rows
    )
    is_first = parent[value_infoset] == triggers.played[value_trigger]
    values = np.flatnonzero(is_first)
    self.leaving = _matrix(
      np.ones(len(values)), value_trigger[values], values, (num_triggers, num_values)
    )
    # The row above any other value has the same trigger, and the sequence above the value's infoset.
    values = np.flatnonzero(~is_first)
    row_keys = trigger * len(infoset_of) + sequence
    parent_keys = value_trigger[values] * len(infoset_of) + parent[value_infoset[values]]
    by_key = np.argsort(row_keys)
    rows = by_key[np.searchsorted(row_keys, parent_keys, sorter=by_key)]
    self.later = _matrix(np.ones(len(values)), rows, values, (num_rows, num_values))

  def _payoff_rows(self, recommended: Int64s, played: Int64s, rows: Int64s, num_rows: int) -> Any:
    """Returns a matrix whose product with a plan is the player's payoff, SciPy CSR (num_rows, pairs).

    Args:
      recommended: shape (n,). The sequences that are recommended to the player.
      played: shape (n,). The sequences that the player plays instead.
      rows: shape (n,). The row to which the payoff is added.
      num_rows: the number of rows.
    """
    payoffs = self._payoffs
    counts = np.diff(payoffs.indptr)[played]
    entries = concatenated_ranges(payoffs.indptr[played].astype(np.int64), counts)
    others = payoffs.indices[entries].astype(np.int64)
    columns = self._pairs.index_of(self._player, np.repeat(recommended, counts), others)
    shape = num_rows, len(self._pairs)
    return _matrix(payoffs.data[entries], np.repeat(rows, counts), columns, shape)

  @property
  def bounds(self) -> Any:
    """SciPy CSR (rows, values). 1 at the value that each row bounds."""
    rows = np.arange(len(self.bounded_value))
    return _matrix(np.ones(len(rows)), rows, self.bounded_value, self.later.shape)

  def gain(self, plan: Float64s) -> float:
    """Returns the gain of the player's best response to the mediator, which obeys or leaves at each trigger."""
    if not len(self.bounded_value):
      return 0.0
    immediate = self.immediate @ plan
    starts = np.flatnonzero(np.diff(self.bounded_value, prepend=-1))
    values = np.zeros(self.later.shape[1])
    for _ in range(self._depth):
      values = np.maximum.reduceat(immediate + self.later @ values, starts)
    gains_by_leaving = (self.leaving @ values - self.obedience @ plan).tolist()
    # The best gain after each trigger, and in the last place from the start of the game.
    gains = [0.0] * (len(gains_by_leaving) + 1)
    for trigger in reversed(range(len(gains_by_leaving))):
      gains[self.previous[trigger]] += max(gains_by_leaving[trigger], gains[trigger])
    return gains[-1]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class OptimalEquilibrium:
  """Optimal correlated equilibrium, the result of `optimal_equilibrium`.

  Attributes:
    policy: `CorrelatedPolicy`. The distribution of recommendations.
    concept: "EFCE", "EFCCE" or "NFCCE".
    objective: "welfare", "fairness" or a player. The maximized objective.
    value: float. The value of the objective; if `is_exact` is False, an upper bound for all equilibria.
    expected_values: float64 (players,). The expected payoff of each player if both players obey.
    gains: float64 (players,). The largest gain of each player by leaving the mediator: 0 up to rounding, and 0 for a
      committed player.
    is_exact: bool. True if the game is triangle-free, so that the plan is a mixture of pure strategies. If it is False,
      recommendations to one player may depend on the infosets of the other. No player gains by leaving in either case.
  """

  policy: CorrelatedPolicy
  concept: Concept
  objective: Objective
  value: float
  expected_values: Float64s
  gains: Float64s
  is_exact: bool

  def __repr__(self) -> str:
    """Returns one line with the concept, the objective's value and the gains."""
    bound = "" if self.is_exact else "at most "
    return (
      f"<{self.concept} of {self.policy.compiled_game.name}: {self.objective} {bound}{self.value:z.12g}, leaving "
      f"gains {self.gains.max():z.1e}>"
    )


def optimal_equilibrium(
  game: AnyGame,
  concept: Concept = "EFCE",
  objective: Objective = "welfare",
  *,
  committed: int | None = None,
  max_histories: int = 100_000,
) -> OptimalEquilibrium:
  """Returns an optimal correlated equilibrium of a two-player game.

  The result is exact in triangle-free games, for example in all games without chance moves or with public ones. In
  other games the value is an upper bound, see `OptimalEquilibrium.is_exact`.

  Args:
    game: a compiled game, or an argument of `compile_game`. The program has a variable for each relevant pair of
      sequences, and one for each trigger and infoset after it.
    concept: "EFCE", "EFCCE" or "NFCCE".
    objective: "welfare" maximizes the sum of the players' expected payoffs, "fairness" the smaller one, and 0 or 1 the
      expected payoff of that player.
    committed: a player without incentive constraints, such as a Stackelberg leader; None if both players may leave.
      With "EFCE" and the leader's objective, the result is a Stackelberg extensive-form correlated equilibrium. Its
      value is an upper bound for commitment to a mixed strategy (`exploitation.commit`).
    max_histories: the largest number of histories that the game may have. Leduc poker has 9,457 histories, and 49,225
      relevant pairs.

  Raises:
    UnsupportedGameError: the game does not have two players, or has no states.
    AbstractionError: infosets of the game are shared.
    GameTooLargeError: the game has more than `max_histories` histories.
    ArgumentError: the concept, the objective or the player is unknown.
    NoSolutionError: HiGHS finds no solution, for example if payoffs have very different sizes.
    GameError: see `compile_game`.
  """
  arguments.one_of(concept, "concept", get_args(Concept))
  if isinstance(objective, bool) or not isinstance(objective, int) or not 0 <= objective <= 1:
    arguments.one_of(objective, "objective", ("welfare", "fairness"), " or a player, 0 or 1")
  max_histories = arguments.positive_integer(max_histories, "max_histories")
  compiled = compile_game(game, max_nodes=max_histories, vector_form=False)
  pairs = RelevantPairs(compiled, max_histories)
  if committed is not None:
    committed = arguments.integer(committed, "committed", 0, 1)
  constraints = [IncentiveConstraints(pairs, player, concept) for player in (0, 1)]
  free = [player for player in (0, 1) if player != committed]
  plan = _solve_program(pairs, constraints, objective, free)
  expected = np.array([payoffs @ plan for payoffs in pairs.payoffs])
  gains = np.zeros(2)
  gains[free] = [constraints[player].gain(plan) for player in free]
  values = {0: expected[0], 1: expected[1], "welfare": expected.sum(), "fairness": expected.min()}
  policy, value = PlanPolicy(pairs, plan), float(values[objective])
  return OptimalEquilibrium(policy, concept, objective, value, expected, gains, pairs.triangle_free)


def _solve_program(
  pairs: RelevantPairs,
  constraints: list[IncentiveConstraints],
  objective: Objective,
  free: list[int],
) -> Float64s:
  """Returns an optimal plan, shape (pairs,), that satisfies the incentive constraints of the `free` players."""
  # HiGHS measures feasibility in absolute numbers.
  scale = max(map(abs, pairs.game.payoff_range)) or 1.0
  payoffs = np.array(pairs.payoffs) / scale
  num_values = sum(incentives.later.shape[1] for incentives in constraints)
  equal, right_side = pairs.constraints
  # Variables: the plan, the values of player 0, those of player 1, and the smaller expected payoff.
  inequalities = _inequalities(constraints, free, payoffs, scale)
  costs = np.zeros(len(pairs) + num_values + 1)
  if objective == "fairness":
    costs[-1] = -1.0
  else:
    costs[: len(pairs)] = -(payoffs.sum(axis=0) if objective == "welfare" else payoffs[objective])
  other_variables = scipy.sparse.csr_matrix((equal.shape[0], num_values + 1))
  result: Any = interruptible(
    lambda: scipy.optimize.linprog(
      costs,
      A_ub=inequalities,
      b_ub=np.zeros(inequalities.shape[0]),
      A_eq=scipy.sparse.hstack([equal, other_variables]).tocsc(),
      b_eq=right_side,
      bounds=[(0, None)] * len(pairs) + [(None, None)] * num_values + [(None, 1.0)],
      method="highs-ds",
      options={
        "primal_feasibility_tolerance": _TOLERANCE,
        "dual_feasibility_tolerance": _TOLERANCE,
      },
    ),
    f"linear program of {len(costs):,} variables and {len(right_side) + inequalities.shape[0]:,} constraints",
  )
  if result.status != 0:
    raise errors.NoSolutionError(
      f"HiGHS did not solve the program: {result.message} Scale the payoffs, or use a smaller game."
    )
  # Rounding can make entries slightly negative.
  plan: Float64s = np.maximum(result.x[: len(pairs)], 0.0)
  return plan


def _inequalities(
  constraints: list[IncentiveConstraints], free: list[int], payoffs: Float64s, scale: float
) -> Any:
  """Returns the matrix A of the inequalities A (plan, values of player 0, values of player 1, smaller payoff) <= 0.

  Args:
    constraints: the incentive constraints of each player.
    free: the players whose constraints must hold.
    payoffs: shape (2, pairs). The payoffs of each player, divided by `scale`.
    scale: the divisor of payoffs.

  Returns:
    SciPy CSC (inequalities, variables).
  """
  rows: list[list[Any]] = []
  for player in free:
    incentives = constraints[player]
    for on_plan, on_values in (
      (incentives.immediate / scale, incentives.later - incentives.bounds),
      (-incentives.obedience / scale, incentives.leaving),
    ):
      num_other_values = constraints[1 - player].later.shape[1]
      on_other_values = scipy.sparse.csr_matrix((on_plan.shape[0], num_other_values))
      rows.append([on_plan, *[on_values, on_other_values][:: 1 - 2 * player], None])
  rows.append([-payoffs, None, None, np.ones((2, 1))])
  return scipy.sparse.block_array(rows, format="csc")


def _matrix(values: Float64s, rows: Int64s, columns: Int64s, shape: tuple[int, int]) -> Any:
  return scipy.sparse.coo_matrix((values, (rows, columns)), shape=shape).tocsr()
