"""Infosets over time: snapshots of some of them, and histograms of the regrets of all."""

import re

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._util import arguments
from spiel_cfr._util.doors import typed
from spiel_cfr.cfr.snapshot import Snapshot
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.runs.trace import Row, Trace

# Bins of regrets per iteration: these on either side of 0, as parts of the range of payoffs, and one between them.
_MAGNITUDES = np.geomspace(1e-8, 1.0, 33)


class Tracker(Trace):
  """A trace that takes snapshots of infosets at each evaluation of a run, for every solver.

      tracker = runs.Tracker("^2")  # Kuhn's king
      run(CFRSolver("kuhn_poker"), 10_000, evaluate_at=runs.Powers(1.1), traces=[tracker])
      tracker.infosets[0, "2pb"][-1].regrets

  A solver that goes on from where the tracker has seen it last goes on in the tracker, too.

  Attributes:
    infosets: player and infostate -> what the infoset has done, evaluation by evaluation.
    histograms: iteration -> how many actions of all infosets have a cumulative regret divided by the number of
      iterations in each bin, shape (bins,); empty where a solver keeps no regrets. What is beyond the outer bins is in
      these.
    edges: of the bins, in the game's units, shape (bins + 1,): logarithmic on either side of 0.
  """

  infosets: dict[tuple[int, str], list[Snapshot]]
  histograms: dict[int, Int64s]
  edges: Float64s

  @typed
  def __init__(self, pattern: str | re.Pattern[str]) -> None:
    """Takes a regular expression: which infosets to note, by their information state strings.

    Raises:
      ArgumentError: it is none.
    """
    self._pattern = arguments.pattern(pattern, "pattern")
    self.infosets, self.histograms = {}, {}

  def start(self, solver: Solver) -> None:
    """Forgets what is later than the solver.

    Raises:
      ArgumentError: the game has no infoset that the regular expression finds.
    """
    game, now = solver.compiled_game, int(solver.iteration)
    if not any(self._pattern.search(name) for own in game.infostates for name in own):
      raise errors.ArgumentError(
        f"{game} has no infoset that {self._pattern.pattern!r} finds; solver.infostates() lists them."
      )
    known = {key: [n for n in notes if n.iteration <= now] for key, notes in self.infosets.items()}
    self.infosets = {key: notes for key, notes in known.items() if notes}
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
      inside = np.clip(regrets / max(1, row.iteration), self.edges[0], self.edges[-1])
      self.histograms[row.iteration] = np.histogram(inside, self.edges)[0]

  def close(self) -> None:
    self.__dict__.pop("_solver", None)
