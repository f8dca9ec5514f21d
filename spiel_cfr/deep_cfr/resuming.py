"""What a solver on states remembers, as arrays by name: checkpoints and copies are made of them.

Unlike those of other solvers these arrays grow, so that only what follows their first axis must fit.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import require
from spiel_cfr.cfr.solver import MOST_ITERATIONS
from spiel_cfr.cfr.solver_state import check_kind
from spiel_cfr.deep_cfr.past_policies import Past, check_past, joined
from spiel_cfr.deep_cfr.reservoir import Reservoir
from spiel_cfr.mccfr.random_draws import ITERATIONS

Reservoirs = Mapping[str, Reservoir]
State = Mapping[str, Any]


def memories(past: Sequence[Sequence[Past]], reservoirs: Reservoirs) -> dict[str, Any]:
  """Returns copies of all arrays, called "past.0.weights" or "advantages.1.seen"."""
  places = {f"past.{player}": joined(own)._asdict() for player, own in enumerate(past)}
  places |= {place: reservoir.state() for place, reservoir in reservoirs.items()}
  return {
    f"{place}.{name}": value for place, memory in places.items() for name, value in memory.items()
  }


def part(state: State, place: str) -> dict[str, Any]:
  """Returns what is called "place.name", by its name."""
  start = f"{place}."
  return {name.removeprefix(start): state[name] for name in state if name.startswith(start)}


def check_kinds(solver: str, state: State, new: State, fixed: Sequence[str]) -> None:
  """Checks that another state has arrays of the same kinds, and those that are fixed of the same shapes.

  Raises:
    CheckpointMismatchError: it has not.
  """
  if set(new) != set(state):
    raise errors.CheckpointMismatchError(
      f"{solver} consists of {sorted(state)}, not of {sorted(new)}."
    )
  for name, value in state.items():
    found = new[name]
    if name not in fixed and isinstance(found, np.ndarray) and found.ndim:
      value, found = value[:0], found[:0]
    check_kind(f"{name} of {solver}", value, found)


def check_values(state: State, num_players: int, reservoirs: Reservoirs) -> None:
  """Checks arrays of the right kinds.

  Raises:
    ValueError: they are nothing that iterations lead to.
  """
  done = int(state["_counters"][ITERATIONS])
  require(done <= MOST_ITERATIONS, "the iteration is possible")
  require(state["_logarithms"][0] == done, "discounts are up to date")
  for name in ("_logarithms", "_parameters", "_scales"):
    require(np.isfinite(state[name]), f"{name} is finite")
  require(state["_scales"] >= 0, "_scales is not negative")
  for player in range(num_players):
    check_past(part(state, f"past.{player}"), done)
  for place, reservoir in reservoirs.items():
    reservoir.check(part(state, place))
