"""Tracker of infosets during a run: snapshots of chosen infosets, and histograms of all cumulative regrets."""

import re

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.cfr.snapshot import Snapshot
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.runs.trace import Row, Trace

# The edges of bins above 0, as shares of the range of payoffs. Bins below 0 mirror them, and one bin includes 0.
_MAGNITUDES = np.geomspace(1e-8, 1.0, 33)


class Tracker(Trace):
  """Trace that takes snapshots of infosets at every evaluation of a run. It works with all solvers.

      tracker = runs.Tracker("^2")  # Kuhn's king
      run(CFRSolver("kuhn_poker"), 10_000, evaluate_at=runs.Powers(1.1), traces=[tracker])
      tracker.infosets[0, "2pb"][-1].regrets

  If a solver is resumed, its tracker continues too.

  Attributes:
    infosets: dictionary. (player, infostate) -> list of `Snapshot`, one for each evaluation.
    histograms: dictionary. Iteration -> int64 (bins,), the number of actions in each bin. An action of any infoset
      counts in the bin of its cumulative regret, divided by the number of iterations. The outer bins include all values
      beyond them. The dictionary is empty for solvers without regrets.
    edges: float64 (bins + 1,). The edges of the bins in the game's units, logarithmic on either side of 0.
  """

  infosets: dict[tuple[int, str], list[Snapshot]]
  histograms: dict[int, Int64s]
  edges: Float64s

  @typed
  def __init__(self, pattern: str | re.Pattern[str]) -> None:
    """Makes the tracker.

    Args:
      pattern: a regular expression. Infosets with a match in their information state string are tracked.

    Raises:
      ArgumentError: `pattern` is not a regular expression.
    """
    self._pattern = arguments.pattern(pattern, "pattern")
    self.infosets, self.histograms = {}, {}

  def start(self, solver: Solver) -> None:
    """Begins at the solver's iteration: removes snapshots and histograms of later iterations.

    Raises:
      ArgumentError: the regular expression finds no infoset of the game.
    """
    game, now = solver.compiled_game, int(solver.iteration)
    if not any(self._pattern.search(name) for names in game.infostates for name in names):
      raise errors.ArgumentError(
        f"{game} has no infoset that {self._pattern.pattern!r} finds; solver.infostates() lists them."
      )
    kept = {
      key: [snapshot for snapshot in snapshots if snapshot.iteration <= now]
      for key, snapshots in self.infosets.items()
    }
    self.infosets = {key: snapshots for key, snapshots in kept.items() if snapshots}
    self.histograms = {t: counts for t, counts in self.histograms.items() if t <= now}
    bins = _MAGNITUDES * ((game.payoff_range[1] - game.payoff_range[0]) or 1.0)
    self.edges = np.concatenate([-bins[::-1], bins])
    self._solver, self._last = solver, now if self.infosets else -1

  def write(self, row: Row) -> None:
    if row.iteration <= self._last:
      return
    for snapshot in self._solver.snapshots(self._pattern):
      self.infosets.setdefault((snapshot.player, snapshot.infostate), []).append(snapshot)
    regrets = self._solver.cumulative_regrets()
    if regrets is not None:
      clipped = np.clip(regrets / max(1, row.iteration), self.edges[0], self.edges[-1])
      self.histograms[row.iteration] = np.histogram(clipped, self.edges)[0]

  def close(self) -> None:
    self.__dict__.pop("_solver", None)
