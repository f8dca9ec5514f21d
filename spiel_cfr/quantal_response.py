"""Logit quantal response equilibria in agent form: all players make errors, and costlier errors are rarer.

Let sigma be the players' behavioral strategies, and Q(I, a) the expected payoff to the owner of infoset I of action a,
given that I is reached, with sigma everywhere else (also in the owner's later moves). Then

    sigma(I, a)  is proportional to  exp(rationality Q(I, a))

at every infoset (McKelvey and Palfrey, "Quantal Response Equilibria for Extensive Form Games", 1998). At rationality 0
play is uniform. The principal branch, a curve of such equilibria, starts there. In almost all games its limit is a
single sequential equilibrium. The solver follows the branch like Turocy, "Computing sequential equilibria using agent
quantal response equilibria" (2010): by predictor and corrector in y = log sigma and rationality, along the length of
the curve, since rationality may fall along it.

Let w(l | I a) be the probability of terminal history l given action a at I. Its logarithm is a sum of entries of y, so
that nothing underflows. Then

    Q(I, a) = sum over l of w(l | I a) u(l)
    dQ(I, a) / dy(J, b) = sum over l through both of w(l | I a) (u(l) - Q(I, a))

Newton's method solves B (y - rationality Q(y)) = 0, where B subtracts from each entry the mean of its infoset under
sigma. Where Q is almost linear, so is this equation, for any rationality. Its matrix I - rationality B dQ/dy has ones
on the diagonal, and an entry for two actions only if a history passes through both infosets. Factored from the last
moves of the game to the first, it has little fill-in.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np
import scipy  # its `sparse` is imported when it is used
import tqdm

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, concatenated_ranges
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.history_walk import HistoryWalk
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.openspiel.checked_calls import CHANCE, TERMINAL
from spiel_cfr.policies import forms
from spiel_cfr.policies.solved_policy import PolicyResult

# The largest residual of an accepted point, and the residual at which the corrector stops.
_ACCEPTED_RESIDUAL, _SMALL_RESIDUAL = 1e-8, 1e-10
_MOST_CORRECTIONS = 12
# The shortest step, in units of y and of rationality times the range of payoffs.
_SHORTEST_STEP = 1e-6
# Pivots off the diagonal cause fill-in. Small pivots make factors inexact, which costs only more corrections.
_PIVOTS: dict[str, Any] = {
  "permc_spec": "NATURAL",
  "diag_pivot_thresh": 0.01,
  "options": {"SymmetricMode": True},
}


class BranchPoint(NamedTuple):
  """A point of the principal branch.

  Attributes:
    rationality: the rationality per unit of payoff.
    probabilities: float64 (sequences,). The strategies in behavioral form.
  """

  rationality: float
  probabilities: Float64s


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class QuantalResponse(PolicyResult):
  """The result of `solve_qre`.

  Attributes:
    compiled_game: the game as arrays.
    rationality: the rationality per unit of payoff.
    log_probabilities: float64 (sequences,). The logarithms of the strategies, 0 in padding. They tell how likely
      histories are at infosets that are hardly ever reached, where probabilities underflow.
    residual: the largest |sigma(I, a) - exp(rationality Q(I, a)) / sum over b of exp(rationality Q(I, b))|.
    path: points of the principal branch, from rationality 0 to `rationality`.
  """

  compiled_game: CompiledGame
  rationality: float
  log_probabilities: Float64s
  residual: float
  path: tuple[BranchPoint, ...]

  @functools.cached_property
  def probabilities(self) -> Float64s:  # type: ignore[override]
    """The strategies in behavioral form, shape (sequences,)."""
    return self.path[-1].probabilities

  @functools.cached_property
  def sequence_form(self) -> Float64s:
    """The strategies in sequence form, shape (sequences,)."""
    return forms.sequence_form(self.compiled_game, self.probabilities)

  def __repr__(self) -> str:
    return (
      f"<QuantalResponse of {self.compiled_game.name}: rationality {self.rationality:z.6g}, residual "
      f"{self.residual:z.1e}, {len(self.path)} points>"
    )


def solve_qre(
  game: AnyGame, rationality: float, *, step: float = 0.25, max_nodes: int = 100_000
) -> QuantalResponse:
  """Returns the logit quantal response equilibrium in agent form, on the principal branch, to 1e-8.

      solve_qre("kuhn_poker", 10.0).policy

  If the principal branch turns back, several of its points have the same rationality; the result is the first.

  Args:
    game: a game with states of OpenSpiel, with any number of players.
    rationality: lambda, the logarithm of how much likelier the better of two actions is, per unit of payoff; 0 is
      uniform play. Rounding errors at infosets that are hardly ever reached grow with its square: for Kuhn poker it can
      be up to 28,000.
    step: the largest change of a probability from one point of the path to the next. Smaller steps make a smoother
      curve.
    max_nodes: the largest number of histories that the game may have.

  Raises:
    ArgumentError: a number is invalid.
    NoSolutionError: the branch can't be followed to this rationality in float64.
    AbstractionError: the game is an abstraction.
    GameTooLargeError: the game has more histories.
    GameError: see `compile_game`; `NoStatesError` if it was made of arrays.
  """
  rationality = arguments.real_number(rationality, "rationality", 0.0, 1e150)
  step = arguments.real_number(step, "step", 1e-3, 1.0)
  max_nodes = arguments.positive_integer(max_nodes, "max_nodes")
  compiled = compile_game(game, max_nodes=max_nodes, vector_form=False)
  if compiled.original is not compiled:
    raise errors.AbstractionError(
      f"{compiled} is an abstraction. The frequency of errors depends on the number of actions, so an abstraction has "
      "another equilibrium: use the game itself, `.original`."
    )
  agents = _AgentForm(compiled, max_nodes)
  points, residual = _follow_branch(agents, rationality, step)
  path = [
    BranchPoint(float(point[-1] / agents.unit), agents.sequences(np.exp(point[:-1])))
    for point in points
  ]
  log_probabilities = agents.sequences(points[-1][:-1])
  return QuantalResponse(compiled, rationality, log_probabilities, residual, tuple(path))


def _follow_branch(
  agents: "_AgentForm", rationality: float, step: float
) -> tuple[list[Float64s], float]:
  """Follows the principal branch from rationality 0, and returns its points and the residual of the last one.

  Each step predicts a point along the tangent and corrects it. The length of steps adapts, such that probabilities
  change by at most `step`.

  Raises:
    NoSolutionError: the branch can't be followed to this rationality in float64.
  """
  target = rationality * agents.unit
  point, residual = agents.normalized(np.zeros(agents.size + 1)), 0.0
  points = [point]
  _, _, tangent = agents.linearized(point)
  length = step
  with tqdm.tqdm(
    desc=f"following the branch of {agents.size:,} actions, rationality",
    total=round(rationality, 3),
    bar_format="{desc} {n:.3f} of {total}, {elapsed}",
    delay=1.0,
    leave=False,
    disable=None,
  ) as bar:
    while point[-1] < target:
      is_last = point[-1] + length * tangent[-1] >= target
      if is_last:
        length = (target - point[-1]) / tangent[-1]
      predicted = agents.normalized(point + length * tangent)
      if is_last:
        predicted[-1] = target
      corrected, next_tangent, residual = agents.corrected(predicted, None if is_last else tangent)
      # The change of probabilities relative to the largest allowed one. The error of a prediction grows with the square
      # of the step.
      change = max(
        1e-3,
        _distance(corrected, point) / step,
        (4.0 * _distance(corrected, predicted) / step) ** 0.5,
      )
      if residual <= _ACCEPTED_RESIDUAL and change <= 1.0:
        point = corrected
        points.append(point)
        bar.update(float(point[-1]) / agents.unit - bar.n)
        # Where the branch has turned back, rationality falls along it.
        tangent = next_tangent * np.sign(next_tangent @ tangent)
        length *= min(4.0, 0.7 / change)
        continue
      is_too_long = residual <= _ACCEPTED_RESIDUAL and change > 1.0
      length *= max(0.1, 0.7 / change) if is_too_long else 0.25
      if length < _SHORTEST_STEP * (1.0 + point[-1]):
        raise errors.NoSolutionError(
          f"The principal branch of {agents.compiled} can't be followed beyond rationality "
          f"{point[-1] / agents.unit:z.6g}, on the way to {rationality:z.6g}: float64 can't distinguish its points "
          "there. Use a smaller rationality."
        )
  return points, residual


def _distance(first: Float64s, second: Float64s) -> float:
  """Returns the largest difference of probabilities between two points."""
  return float(np.abs(np.exp(first[:-1]) - np.exp(second[:-1])).max(initial=0.0))


class _AgentForm:
  """The agent form of a game: the terminal histories that pass through each action.

  Actions of all infosets are numbered from the last moves of the game to the first, infoset by infoset. Payoffs are
  divided by their range. A point of the branch is y and rationality times that range, shape (actions + 1,).

  Attributes:
    compiled: the game.
    size: the number of actions.
    unit: float. The range of payoffs.
  """

  def __init__(self, compiled: CompiledGame, max_nodes: int) -> None:
    """Walks the histories of the game, at most `max_nodes`."""
    self.compiled = compiled
    walk = HistoryWalk(compiled, max_nodes)
    self._number_actions(walk)
    self._list_terminals(walk)

  def _number_actions(self, walk: HistoryWalk) -> None:
    """Numbers the actions, and makes the matrix of actions of the same infoset."""
    counts = np.concatenate(self.compiled.num_actions)
    first = np.cumsum(counts) - counts
    self.size = int(counts.sum())
    depth = np.zeros(self.size, np.int64)
    for level, nodes in enumerate(walk.levels):
      depth[walk.entry[nodes[walk.mover[nodes] >= 0]]] = level
    order = np.argsort(-depth[first], kind="stable")
    # The entry of `CompiledGame.actions` of each action, all players' entries one after the other.
    self._entries, counts = concatenated_ranges(first[order], counts[order]), counts[order]
    # The first action of each infoset, and the infoset of each action.
    self._starts = np.cumsum(counts) - counts
    self._infoset = np.repeat(np.arange(len(counts)), counts)
    # Row by row, a 1 for each action of the same infoset.
    rows, widths = np.repeat(self._starts, counts), np.repeat(counts, counts)
    ends = np.concatenate([[0], np.cumsum(widths)])
    self._same_infoset = scipy.sparse.csr_matrix(
      (np.ones(ends[-1]), concatenated_ranges(rows, widths), ends), (self.size, self.size)
    )
    self._identity = scipy.sparse.identity(self.size, format="csr")

  def _list_terminals(self, walk: HistoryWalk) -> None:
    """Lists the terminal histories after each action, with their payoffs and the probabilities of chance."""
    compiled = self.compiled
    moves = walk.probabilities(forms.uniform(compiled))
    chance = walk.reach(np.where(walk.mover[walk.parent] == CHANCE, moves, 1.0))
    terminals = np.flatnonzero((walk.mover == TERMINAL) & (chance > 0))
    self._log_chance = np.log(chance[terminals])
    actions, leaves = self._actions_before(walk, terminals)
    # A sparse matrix, shape (actions, terminals): a 1 if the history passes through the action. And its transpose.
    through = scipy.sparse.csr_matrix(
      (np.ones(len(actions)), (actions, leaves)), shape=(self.size, len(terminals))
    )
    self._through, self._along = through, through.T.tocsr()
    lengths = np.diff(through.indptr)
    # Infosets that chance never reaches have no histories; their actions have the value 0.
    self._reached = np.flatnonzero(lengths)
    # The action of each element of `_through`, and the payoff of its terminal history to the action's owner.
    self._row = np.repeat(np.arange(self.size), lengths)
    owners = np.repeat(np.arange(compiled.num_players), list(map(len, compiled.actions)))
    returns = walk.returns[walk.index[terminals]]
    self.unit = float(np.ptp(returns)) or 1.0
    owner = owners[self._entries][self._row]
    self._payoffs = returns[through.indices, owner] / self.unit

  def _actions_before(self, walk: HistoryWalk, terminals: Int64s) -> tuple[Int64s, Int64s]:
    """Returns all pairs of an action and the index of a terminal history after it, as two arrays."""
    number = np.argsort(self._entries)
    nodes, leaves = terminals, np.arange(len(terminals))
    actions, leaves_after = [], []
    while len(nodes):
      parents = walk.parent[nodes]
      is_decision = walk.mover[parents] >= 0
      entry = walk.entry[parents] + nodes - walk.first_child[parents]
      actions.append(number[entry[is_decision]])
      leaves_after.append(leaves[is_decision])
      nodes, leaves = parents[parents > 0], leaves[parents > 0]
    return np.concatenate(actions), np.concatenate(leaves_after)

  def sequences(self, numbers: Float64s) -> Float64s:
    """Returns an array of actions in the order of sequences, shape (sequences,)."""
    entries = np.zeros(self.size)
    entries[self._entries] = numbers
    return self.compiled.from_actions(entries)

  def normalized(self, point: Float64s) -> Float64s:
    """Returns a point whose probabilities sum to 1 at each infoset."""
    logs = point[:-1]
    top = np.maximum.reduceat(logs, self._starts)
    total = np.add.reduceat(np.exp(logs - top[self._infoset]), self._starts)
    return np.append(logs - (top + np.log(total))[self._infoset], point[-1])

  def values(self, log_play: Float64s) -> tuple[Float64s, Any]:
    """Returns Q, shape (actions,), and dQ/dy, a sparse matrix; `log_play` is y."""
    through, reached = self._through, self._reached
    logs = (self._log_chance + self._along @ log_play)[through.indices]
    starts, top, total = through.indptr[reached], np.zeros(self.size), np.ones(self.size)
    top[reached] = np.maximum.reduceat(logs, starts)
    weights = np.exp(logs - top[self._row])
    total[reached] = np.add.reduceat(weights, starts)
    weights /= total[self._row]
    values = np.zeros(self.size)
    values[reached] = np.add.reduceat(weights * self._payoffs, starts)
    weights *= self._payoffs - values[self._row]
    deviations = scipy.sparse.csr_matrix((weights, through.indices, through.indptr), through.shape)
    return values, deviations @ self._along

  def linearized(self, point: Float64s) -> tuple[float, Float64s, Float64s]:
    """Returns the distance of a point from the branch, the Newton step towards the branch, and the step along it.

    Returns:
      The residual, see `QuantalResponse`; the step of Newton's method at this rationality; and a step of length 1 along
      the branch, in which rationality grows. Steps are not finite where the branch turns or meets another one.
    """
    log_play, rationality = point[:-1], point[-1]
    values, derivative = self.values(log_play)
    play = np.exp(log_play)
    logit = self.normalized(np.append(rationality * values, rationality))
    mean = self._same_infoset.copy()
    mean.data = play[mean.indices]
    matrix = self._identity - rationality * (derivative - mean @ derivative)
    sides = np.stack([rationality * values - log_play, values], axis=1)
    try:
      factors = scipy.sparse.linalg.splu(matrix.tocsc(), **_PIVOTS)
      newton, slope = factors.solve(sides - mean @ sides).T
    except RuntimeError:  # SciPy raises it for a singular matrix.
      newton = slope = np.full(self.size, np.nan)
    along = np.append(slope, 1.0)
    return _distance(logit, point), np.append(newton, 0.0), along / np.linalg.norm(along)

  def corrected(
    self, predicted: Float64s, tangent: Float64s | None
  ) -> tuple[Float64s, Float64s, float]:
    """Corrects a predicted point by Newton's method.

    Args:
      predicted: the predicted point.
      tangent: the direction to which corrections are perpendicular; None to keep the rationality.

    Returns:
      The point of the branch, the step along the branch there, and the residual, which is infinite if Newton's method
      finds no point.
    """
    point, last_residual = predicted, np.inf
    for number in range(_MOST_CORRECTIONS):
      residual, newton, along = self.linearized(point)
      if residual <= _SMALL_RESIDUAL or (number > 2 and residual > last_residual / 2):
        break
      if tangent is not None:
        newton = newton - (tangent @ newton) / (tangent @ along) * along
      point, last_residual = self.normalized(point + newton), residual
      if not np.isfinite(point).all():
        return predicted, along, np.inf
    # After the last point of the path, no step along the branch follows.
    is_found = tangent is None or np.isfinite(along).all()
    return point, along, residual if is_found else np.inf
