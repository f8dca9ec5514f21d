"""Optimal correlated equilibrium of a two-player game, by one linear program over correlation plans.

A mediator draws a pair of pure strategies, and recommends each player's actions at the infosets that it reaches. The
concepts differ in when a player may leave the mediator; after that it gets no recommendations.

- "EFCE", extensive-form correlated: at an infoset, after it sees the recommendation there.
- "EFCCE", extensive-form coarse correlated: at an infoset, before it sees the recommendation there.
- "NFCCE", normal-form coarse correlated: before the game.

(von Stengel and Forges 2008; Farina, Bianchi and Sandholm, "Coarse Correlation in Extensive-Form Games", 2020.) Every
EFCE is an EFCCE, and every EFCCE an NFCCE, so the optimal value grows down the list. Let s be the sequence last
recommended to a player who leaves at infoset I: an action of I, the sequence above I, or the empty sequence. Its best
value there is

    v_s(I) = max over actions a of I:  sum over t of U[Ia, t] xi[s, t]  +  sum over infosets K right below Ia of v_s(K)

and must not exceed the value of obeying. One inequality an action bounds each maximum; all are linear in xi and v.
"""

import dataclasses
from typing import Any, Literal, get_args

import numpy as np
import scipy  # its parts are imported when they are used

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, concatenated_ranges
from spiel_cfr._util import arguments
from spiel_cfr._util.interrupt import interruptible
from spiel_cfr.correlated.correlated_policy import CorrelatedPolicy, PlanPolicy
from spiel_cfr.correlated.correlation_plans import RelevantPairs
from spiel_cfr.evaluation.sequence_form_matrices import payoff_matrix
from spiel_cfr.games.compiling import AnyGame, compile_game

Concept = Literal["EFCE", "EFCCE", "NFCCE"]
Objective = Literal["welfare", "fairness"] | int
# HiGHS's smallest feasibility tolerance.
_TOLERANCE = 1e-10


class IncentiveConstraints:
  """Incentive constraints of a player under one concept.

  A trigger is a point at which the player may leave the mediator: a recommended action ("EFCE"), an infoset ("EFCCE")
  or the start of the game ("NFCCE"). There is a row for each trigger and each of the player's sequences after it, and a
  value v_s(I) for each trigger and each infoset after it.

  Attributes:
    obedience: SciPy CSR (triggers, pairs). Its product with a plan is the payoff after a trigger if the player obeys.
    immediate: SciPy CSR (rows, pairs). Its product with a plan is the payoff at a sequence of a player who has left.
    later: SciPy CSR (rows, values). 1 at the values of the infosets right below a row's sequence.
    value: int64 (rows,). The value that a row bounds, in ascending order.
    first: SciPy CSR (triggers, values). 1 at the values of the infosets where the player leaves.
    before: int64 (triggers,). The last trigger before each; -1 if there is none.
  """

  def __init__(self, pairs: RelevantPairs, player: int, concept: Concept) -> None:
    """Lists triggers, rows and values."""
    own, payoffs = pairs.players[player], payoff_matrix(pairs.game, player)
    payoffs = payoffs if player == 0 else payoffs.T.tocsr()
    self._depth = pairs.game.treeplexes[player].depth
    earlier, sequences = own.lineage
    # For each trigger, the last recommended sequence and the sequence played before it. For each pair of the lineage,
    # `obeyed` is the trigger at its earlier sequence; `trigger` and `after` are the rows.
    if concept == "EFCE":
      recommended, played = np.arange(1, len(own.owner)), own.above[own.owner[1:]]
      self.before, obeyed = played - 1, earlier - 1
      # An infoset has a trigger for each action that may be recommended.
      order, starts, sizes = own.by_infoset
      counts = sizes[own.owner[earlier]]
      trigger = order[concatenated_ranges(starts[own.owner[earlier]], counts)] - 1
      after = np.repeat(sequences, counts)
    elif concept == "EFCCE":
      recommended = played = own.above
      self.before, obeyed = own.owner[played], own.owner[earlier]
      trigger, after = obeyed, sequences
    else:
      recommended = played = np.zeros(1, np.int64)
      self.before, sequences = np.full(1, -1), np.arange(1, len(own.owner))
      trigger = obeyed = np.zeros(len(sequences), np.int64)
      after = sequences
    keys = np.stack([trigger, own.owner[after]])
    (of_trigger, of_infoset), value = np.unique(keys, axis=1, return_inverse=True)
    ordered = np.argsort(value.ravel(), kind="stable")
    self.value, trigger, after = value.ravel()[ordered], trigger[ordered], after[ordered]
    num_rows, num_values = len(after), len(of_trigger)

    def payoffs_of(recommended: Int64s, sequences: Int64s, rows: Int64s, count: int) -> Any:
      """Returns payoffs of `sequences` after the recommendation of `recommended`, shape (count, pairs)."""
      counts = np.diff(payoffs.indptr)[sequences]
      entries = concatenated_ranges(payoffs.indptr[sequences].astype(np.int64), counts)
      others = payoffs.indices[entries].astype(np.int64)
      columns = pairs.index_of(player, np.repeat(recommended, counts), others)
      return _matrix(payoffs.data[entries], np.repeat(rows, counts), columns, (count, len(pairs)))

    self.obedience = payoffs_of(sequences, sequences, obeyed, len(recommended))
    self.immediate = payoffs_of(recommended[trigger], after, np.arange(num_rows), num_rows)
    is_first = own.above[of_infoset] == played[of_trigger]
    values = np.flatnonzero(is_first)
    shape = len(recommended), num_values
    self.first = _matrix(np.ones(len(values)), of_trigger[values], values, shape)
    # The row above any other value has the same trigger, and the sequence above the value's infoset.
    values = np.flatnonzero(~is_first)
    row_keys = trigger * len(own.owner) + after
    keys_above = of_trigger[values] * len(own.owner) + own.above[of_infoset[values]]
    by_key = np.argsort(row_keys)
    above = by_key[np.searchsorted(row_keys, keys_above, sorter=by_key)]
    self.later = _matrix(np.ones(len(values)), above, values, (num_rows, num_values))

  @property
  def bounds(self) -> Any:
    """SciPy CSR (rows, values). 1 at the value that each row bounds."""
    rows = np.arange(len(self.value))
    return _matrix(np.ones(len(rows)), rows, self.value, self.later.shape)

  def gain(self, plan: Float64s) -> float:
    """Returns the gain of a best response to the mediator, which obeys or leaves at each trigger."""
    if not len(self.value):
      return 0.0
    immediate, starts = self.immediate @ plan, np.flatnonzero(np.diff(self.value, prepend=-1))
    values = np.zeros(self.later.shape[1])
    for _ in range(self._depth):
      values = np.maximum.reduceat(immediate + self.later @ values, starts)
    leaving = (self.first @ values - self.obedience @ plan).tolist()
    # The best gain after each trigger, and last after the start of the game.
    gains = [0.0] * (len(leaving) + 1)
    for trigger in reversed(range(len(leaving))):
      gains[self.before[trigger]] += max(leaving[trigger], gains[trigger])
    return gains[-1]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class OptimalEquilibrium:
  """An optimal equilibrium.

  Attributes:
    policy: `CorrelatedPolicy`. The recommendations.
    concept: "EFCE", "EFCCE" or "NFCCE".
    objective: "welfare", "fairness" or a player. The maximized objective.
    value: float. The objective's value; if `is_exact` is False, an upper bound on that of any equilibrium.
    expected_values: float64 (players,). The expected payoff of each player if both obey.
    gains: float64 (players,). The gain of each player's best way to leave the mediator: 0 up to rounding, and 0 for a
      committed player.
    is_exact: bool. True if the game is triangle-free, so that the plan is a mixture of pure strategies. If False,
      recommendations to one player may depend on the infosets of the other; no player gains by leaving even then.
  """

  policy: CorrelatedPolicy
  concept: Concept
  objective: Objective
  value: float
  expected_values: Float64s
  gains: Float64s
  is_exact: bool

  def __repr__(self) -> str:
    """Returns one line."""
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
  other games its value is an upper bound, see `OptimalEquilibrium.is_exact`.

  Args:
    game: a compiled game, or an argument of `compile_game`. The program has a variable for each relevant pair of
      sequences, and one for each trigger and infoset after it.
    concept: "EFCE", "EFCCE" or "NFCCE".
    objective: "welfare" maximizes the sum of the players' expected payoffs, "fairness" the smaller one, and 0 or 1 that
      of the player.
    committed: a player without incentive constraints, as a Stackelberg leader; None if both may leave. With "EFCE" and
      the leader's objective, the value is that of the Stackelberg extensive-form correlated equilibrium: a bound on
      commitment to a mixed strategy (`exploitation.commit`).
    max_histories: the most histories of the game. Leduc poker has 9,457, and 49,225 relevant pairs.

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
  sizes = [each.later.shape[1] for each in constraints]
  equal, right = pairs.constraints
  # Variables: the plan, each player's values, and the smaller expected payoff.
  rows: list[list[Any]] = []
  for player in free:
    incentives = constraints[player]
    for on_plan, on_values in (
      (incentives.immediate / scale, incentives.later - incentives.bounds),
      (-incentives.obedience / scale, incentives.first),
    ):
      other = scipy.sparse.csr_matrix((on_plan.shape[0], sizes[1 - player]))
      rows.append([on_plan, *[on_values, other][:: 1 - 2 * player], None])
  rows.append([-payoffs, None, None, np.ones((2, 1))])
  costs = np.zeros(len(pairs) + sum(sizes) + 1)
  if objective == "fairness":
    costs[-1] = -1.0
  else:
    costs[: len(pairs)] = -(payoffs.sum(axis=0) if objective == "welfare" else payoffs[objective])
  inequalities = scipy.sparse.block_array(rows, format="csc")
  found: Any = interruptible(
    lambda: scipy.optimize.linprog(
      costs,
      A_ub=inequalities,
      b_ub=np.zeros(inequalities.shape[0]),
      A_eq=scipy.sparse.hstack(
        [equal, scipy.sparse.csr_matrix((equal.shape[0], sum(sizes) + 1))]
      ).tocsc(),
      b_eq=right,
      bounds=[(0, None)] * len(pairs) + [(None, None)] * sum(sizes) + [(None, 1.0)],
      method="highs-ds",
      options={
        "primal_feasibility_tolerance": _TOLERANCE,
        "dual_feasibility_tolerance": _TOLERANCE,
      },
    ),
    f"linear program of {len(costs):,} variables and {len(right) + inequalities.shape[0]:,} constraints",
  )
  if found.status != 0:
    raise errors.NoSolutionError(
      f"HiGHS did not solve the program: {found.message} Scale the payoffs, or use a smaller game."
    )
  # Rounding leaves negative numbers near 0.
  plan: Float64s = np.maximum(found.x[: len(pairs)], 0.0)
  return plan


def _matrix(values: Float64s, rows: Int64s, columns: Int64s, shape: tuple[int, int]) -> Any:
  return scipy.sparse.coo_matrix((values, (rows, columns)), shape=shape).tocsr()
