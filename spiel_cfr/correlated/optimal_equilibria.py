"""The best correlated equilibrium of a two-player game, by one linear program over correlation plans.

A mediator draws a pair of pure strategies and tells the players their parts as they come to them. When a player who
means to leave it has to, makes the concept:

- "EFCE", extensive-form correlated: once it is told an action, it may take another, and is told no more;
- "EFCCE", extensive-form coarse correlated: at an infoset, before it is told what to do there;
- "NFCCE", normal-form coarse correlated: before the game.

(von Stengel and Forges 2008; Farina, Bianchi and Sandholm, "Coarse Correlation in Extensive-Form Games", 2020.) An
equilibrium of one kind is one of the kinds below it, so the best gets better from line to line. With s what the player
has been told when it leaves at infoset I (an action there; what is above I; nothing), the best that it can do is worth

    v_s(I) = max over actions a of I:  sum over t of U[Ia, t] xi[s, t]  +  sum over infosets K right below Ia of v_s(K)

there, and may not be worth more than to obey from there on. Maxima are bounded by an inequality an action, and all of
this is linear in xi and v.
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
# The smallest that HiGHS takes.
_FEASIBLE = 1e-10


class Deviations:
  """A player's ways to leave the mediator under one concept: triggers, and rows (trigger, own sequence after it).

  Attributes:
    obedience: SciPy CSR (triggers, pairs): its product with a plan is what the player gets if it obeys after a trigger.
    immediate: SciPy CSR (rows, pairs): likewise, what it gets by a sequence alone, having left.
    later: SciPy CSR (rows, values): 1 at the values of the infosets right below.
    value: int64 (rows,): the value that a row bounds, that of a trigger and an infoset; ascending.
    first: SciPy CSR (triggers, values): 1 at the infosets where the player is when it leaves.
    before: int64 (triggers,): the last trigger before each, -1 where there is none.
  """

  def __init__(self, pairs: RelevantPairs, player: int, concept: Concept) -> None:
    """Lists them."""
    own, payoffs = pairs.players[player], payoff_matrix(pairs.game, player)
    payoffs = payoffs if player == 0 else payoffs.T.tocsr()
    self._depth = pairs.game.treeplexes[player].depth
    earlier, sequences = own.lineage
    # Of each trigger, what the player has been told and what it has played; of each sequence, its triggers.
    if concept == "EFCE":
      told, played = np.arange(1, len(own.owner)), own.above[own.owner[1:]]
      self.before, obeyed = played - 1, earlier - 1
      # An infoset is left in as many ways as one can be told to act there.
      order, starts, sizes = own.by_infoset
      counts = sizes[own.owner[earlier]]
      trigger = order[concatenated_ranges(starts[own.owner[earlier]], counts)] - 1
      after = np.repeat(sequences, counts)
    elif concept == "EFCCE":
      told = played = own.above
      self.before, obeyed = own.owner[played], own.owner[earlier]
      trigger, after = obeyed, sequences
    else:
      told = played = np.zeros(1, np.int64)
      self.before, sequences = np.full(1, -1), np.arange(1, len(own.owner))
      trigger = obeyed = np.zeros(len(sequences), np.int64)
      after = sequences
    keys = np.stack([trigger, own.owner[after]])
    (of_trigger, of_infoset), value = np.unique(keys, axis=1, return_inverse=True)
    ordered = np.argsort(value.ravel(), kind="stable")
    self.value, trigger, after = value.ravel()[ordered], trigger[ordered], after[ordered]
    num_rows, num_values = len(after), len(of_trigger)

    def worth(told: Int64s, sequences: Int64s, rows: Int64s, count: int) -> Any:
      """Payoffs of own sequences where the other plays as if `told` had been obeyed, shape (count, pairs)."""
      counts = np.diff(payoffs.indptr)[sequences]
      entries = concatenated_ranges(payoffs.indptr[sequences].astype(np.int64), counts)
      others = payoffs.indices[entries].astype(np.int64)
      columns = pairs.index_of(player, np.repeat(told, counts), others)
      return _matrix(payoffs.data[entries], np.repeat(rows, counts), columns, (count, len(pairs)))

    self.obedience = worth(sequences, sequences, obeyed, len(told))
    self.immediate = worth(told[trigger], after, np.arange(num_rows), num_rows)
    begins = own.above[of_infoset] == played[of_trigger]
    places = np.flatnonzero(begins)
    self.first = _matrix(np.ones(len(places)), of_trigger[places], places, (len(told), num_values))
    # Other values come after the row of their trigger and the sequence above their infoset.
    places = np.flatnonzero(~begins)
    row_keys = trigger * len(own.owner) + after
    wanted = of_trigger[places] * len(own.owner) + own.above[of_infoset[places]]
    by_key = np.argsort(row_keys)
    above = by_key[np.searchsorted(row_keys, wanted, sorter=by_key)]
    self.later = _matrix(np.ones(len(places)), above, places, (num_rows, num_values))

  @property
  def bounds(self) -> Any:
    """SciPy CSR (rows, values): 1 at the value that each row bounds."""
    rows = np.arange(len(self.value))
    return _matrix(np.ones(len(rows)), rows, self.value, self.later.shape)

  def gain(self, plan: Float64s) -> float:
    """Returns what a best response to the mediator gains: obeying or leaving at each trigger, whichever is better."""
    if not len(self.value):
      return 0.0
    immediate, starts = self.immediate @ plan, np.flatnonzero(np.diff(self.value, prepend=-1))
    values = np.zeros(self.later.shape[1])
    for _ in range(self._depth):
      values = np.maximum.reduceat(immediate + self.later @ values, starts)
    leaving = (self.first @ values - self.obedience @ plan).tolist()
    # What later triggers gain, of each trigger and of the start.
    gains = [0.0] * (len(leaving) + 1)
    for trigger in reversed(range(len(leaving))):
      gains[self.before[trigger]] += max(leaving[trigger], gains[trigger])
    return gains[-1]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class OptimalEquilibrium:
  """An optimal equilibrium.

  Attributes:
    policy: the mediator.
    concept: of the equilibrium.
    objective: what was maximized.
    value: the best objective. Where `is_exact` is false, no equilibrium has more, and it may be that none has as much.
    expected_values: what each player expects if both obey, shape (players,).
    gains: what each would gain by its best way to leave the mediator, shape (players,): 0, but for rounding, and where
      a player is committed.
    is_exact: whether the game is triangle-free, so that the plan is a mixture of pure strategies. If not, what the
      mediator tells one player may depend on which infosets it has seen the other at; nobody gains by leaving it then
      either.
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
  """Returns the best correlated equilibrium of a game of two players.

  It is exact in triangle-free games, all without chance moves and all with public ones among them. In others what is
  found is an upper bound, and says so.

  Args:
    game: a compiled game, or what `compile_game` takes. The program has a variable for each relevant pair of sequences,
      and one for each trigger and infoset after it.
    concept: "EFCE", "EFCCE" or "NFCCE".
    objective: what is maximized: "welfare", the sum of both players' expected utilities; "fairness", the smaller of the
      two; or a player, whose own.
    committed: a player that obeys whatever it would gain by leaving, as a leader that has committed to the mediator's
      plan; None if both may leave. With "EFCE" and its own objective, the value is the Stackelberg extensive-form
      correlated equilibrium, which bounds that of commitment to a mixed strategy (`exploitation.commit`).
    max_histories: how many the game may have. Leduc poker, of 9,457, has 49,225 relevant pairs.

  Raises:
    UnsupportedGameError: the game has not two players, or no states.
    AbstractionError: infosets of the game are shared.
    GameTooLargeError: there are more histories than `max_histories`.
    ArgumentError: there is no such concept, objective or player.
    NoSolutionError: HiGHS gives up, as it does on payoffs of very different sizes.
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
  deviations = [Deviations(pairs, player, concept) for player in (0, 1)]
  free = [player for player in (0, 1) if player != committed]
  plan = _solve_program(pairs, deviations, objective, free)
  expected = np.array([payoffs @ plan for payoffs in pairs.payoffs])
  gains = np.zeros(2)
  gains[free] = [deviations[player].gain(plan) for player in free]
  values = {0: expected[0], 1: expected[1], "welfare": expected.sum(), "fairness": expected.min()}
  policy, value = PlanPolicy(pairs, plan), float(values[objective])
  return OptimalEquilibrium(policy, concept, objective, value, expected, gains, pairs.triangle_free)


def _solve_program(
  pairs: RelevantPairs, deviations: list[Deviations], objective: Objective, free: list[int]
) -> Float64s:
  """Returns the best plan that none of some players gains by leaving, shape (pairs,)."""
  # HiGHS measures feasibility in absolute numbers.
  scale = max(map(abs, pairs.game.payoff_range)) or 1.0
  payoffs = np.array(pairs.payoffs) / scale
  sizes = [each.later.shape[1] for each in deviations]
  equal, right = pairs.constraints
  # Variables: the plan, each player's values, and the smaller of what they expect.
  rows: list[list[Any]] = []
  for player in free:
    each = deviations[player]
    for on_plan, on_values in (
      (each.immediate / scale, each.later - each.bounds),
      (-each.obedience / scale, each.first),
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
      options={"primal_feasibility_tolerance": _FEASIBLE, "dual_feasibility_tolerance": _FEASIBLE},
    ),
    f"linear program of {len(costs):,} variables and {len(right) + inequalities.shape[0]:,} constraints",
  )
  if found.status != 0:
    raise errors.NoSolutionError(
      f"HiGHS has not solved the program: {found.message} Scale the payoffs, or take a smaller game."
    )
  # Rounding leaves negative numbers near 0.
  plan: Float64s = np.maximum(found.x[: len(pairs)], 0.0)
  return plan


def _matrix(values: Float64s, rows: Int64s, columns: Int64s, shape: tuple[int, int]) -> Any:
  return scipy.sparse.coo_matrix((values, (rows, columns)), shape=shape).tocsr()
