"""What chosen infosets do over time: a record every so many iterations, in memory and in a file."""

import json
import os
import pathlib
import re
from collections.abc import Iterable

from spiel_cfr import errors
from spiel_cfr._util.arguments import positive_integer
from spiel_cfr.mccfr.sampled_policy import Snapshot
from spiel_cfr.mccfr.sampling_solver import SamplingSolver


class Tracker:
  """Runs a Monte Carlo solver and takes notes.

      tracker = Tracker(solver, "Private: 5.*Round 1", every=1000, path="leduc.jsonl")
      tracker.run(100_000)
      tracker.snapshots

  Attributes:
    snapshots: all notes so far, oldest first; those of one iteration player by player.
  """

  def __init__(
    self,
    solver: SamplingSolver,
    infosets: str | re.Pattern[str] | Iterable[str] | None = None,
    *,
    every: int = 1000,
    path: str | os.PathLike[str] | None = None,
  ) -> None:
    """Takes the first notes.

    Args:
      solver: what to run.
      infosets: information state strings; or one regular expression, to be found anywhere in them; or None for all. On
        the state engine, infosets are noted from when they are met.
      every: how many iterations lie between two notes.
      path: a file to write, one JSON object per line with the fields of `Snapshot`. What it held before is lost.

    Raises:
      ArgumentError: `every` is not a positive integer, the regular expression is malformed, or the game has no such
        infoset.
      OSError: the file can't be written.
    """
    self.snapshots: list[Snapshot] = []
    self._solver = solver
    self._every = positive_integer(every, "every")
    self._path = None if path is None else pathlib.Path(path)
    self._names: frozenset[str] | None = None
    self._pattern = re.compile("")
    if isinstance(infosets, str | re.Pattern):
      try:
        self._pattern = re.compile(infosets)
      except re.error as error:
        raise errors.ArgumentError(
          f"infosets is not a regular expression: {error}, in {infosets!r}."
        ) from error
    elif infosets is not None:
      self._names = frozenset(infosets)
    self._check_names()
    if self._path is not None:
      self._path.write_text("")
    self._note()

  def run(self, iterations: int) -> None:
    """Runs the solver, and takes notes after every multiple of `every` iterations.

    Raises:
      ArgumentError: `iterations` is not a positive integer.
      OSError: the file can't be written.
    """
    end = self._solver.iteration + positive_integer(iterations, "iterations")
    while (done := self._solver.iteration) < end:
      self._solver.run(min(self._every - done % self._every, end - done))
      if self._solver.iteration % self._every == 0:
        self._note()

  def _check_names(self) -> None:
    if self._solver.engine == "states":
      return
    known = set().union(*self._solver.infostates())
    missing = sorted((self._names or frozenset()) - known)
    if missing:
      raise errors.ArgumentError(
        f"{self._solver.game} has no infoset {missing[0]!r}; its names look like {min(known)!r}."
      )
    if not any(map(self._pattern.search, known)):
      raise errors.ArgumentError(
        f"{self._pattern.pattern!r} is found in no infostate of {self._solver.game}; they look like "
        f"{min(known)!r}."
      )

  def _note(self) -> None:
    new = [
      self._solver.snapshot(player, infostate)
      for player, infostates in enumerate(self._solver.infostates())
      for infostate in infostates
      if self._pattern.search(infostate) and (self._names is None or infostate in self._names)
    ]
    self.snapshots += new
    if self._path is not None:
      with self._path.open("a") as file:
        file.writelines(json.dumps(snapshot._asdict()) + "\n" for snapshot in new)
