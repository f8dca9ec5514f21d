"""What is checked of a compiled game that comes from a file, before any kernel sees it.

A right checksum says that a file is as it was written, not by whom. Compiled code takes every index on trust, so all
that it and the rest of the library rely on is looked at here: types, shapes, ranges of indices, counts, finiteness.
Everything is vectorised, and takes less time than reading the file.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr.compiled.base import CompiledGame, Infosets
from spiel_cfr.game.treeplex import (
  ACTIONS,
  COUNT,
  FIRST_INFOSET,
  FIRST_SEQUENCE,
  STRIDE,
  Treeplex,
  check_treeplexes,
  find_groups,
)
from spiel_cfr.kernels.arrays import require, require_array

# OpenSpiel's actions are numbers of this size.
_MOST_ACTIONS = 1 << 31
# Differences of 1e-12 of the payoffs are squared.
_SMALLEST_PAYOFF, _LARGEST_PAYOFF = 1e-140, 1e140


def check_payoffs(name: str, payoff_range: tuple[float, float]) -> None:
  """Checks that solvers can compute with payoffs, their squares and many sums of these.

  Args:
    name: of the game.
    payoff_range: the smallest and the largest return of any player.

  Raises:
    InvalidPayoffError: the largest is too large, or too small.
  """
  largest = max(map(abs, payoff_range))
  if largest and not _SMALLEST_PAYOFF <= largest <= _LARGEST_PAYOFF:
    raise errors.InvalidPayoffError(
      f"The payoffs of {name[:200]} go up to {largest:g}; solvers compute with {_SMALLEST_PAYOFF:g} to "
      f"{_LARGEST_PAYOFF:g}. Multiply them by a number: equilibria do not change."
    )


def check_header(header: Mapping[str, Any]) -> None:
  """Checks the types of what a file's header says.

  Raises:
    ValueError: something is missing, or of another type.
  """
  for name in ("game_string", "open_spiel_version", "payoff_form"):
    require(isinstance(header[name], str), f"{name} is a string")
  for name in ("num_distinct_actions", "num_states", "num_terminals"):
    require(type(header[name]) is int and header[name] > 0, f"{name} is a positive integer")
  require(header["num_distinct_actions"] < _MOST_ACTIONS, "actions have 31 bits")
  require(header["num_terminals"] <= header["num_states"] < 1 << 62, "terminals are states")
  sums = [] if header["constant_sum"] is None else [header["constant_sum"]]
  for number in [*header["payoff_range"], *sums]:
    require(type(number) in (int, float) and abs(number) < math.inf, "payoffs are finite numbers")
  low, high = header["payoff_range"]
  require(low <= high, "the payoffs' range is one")
  require(len(header["roots"]) > 1, "there are players")


def check_game(game: CompiledGame) -> None:
  """Checks everything but the header.

  Raises:
    ValueError: the arrays are not those of a compiled game.
  """
  real = check_treeplexes(game.treeplexes)
  for treeplex, own in zip(game.treeplexes, game.infosets, strict=True):
    _check_infosets(treeplex, own, game.num_distinct_actions)
  game.payoff.check(game.treeplexes, real)
  require(game.num_leaves <= game.num_terminals, "leaves are terminals")


def _check_infosets(tree: Treeplex, own: Infosets, num_distinct_actions: int) -> None:
  total = tree.num_infosets
  require(len(own.infostates) == total == len(set(own.infostates)), "infosets have different names")
  for name in ("position", "first_sequence", "stride"):
    require_array(getattr(own, name), name, np.uint32, total)
  require_array(own.num_actions, "num_actions", np.int64, total)
  place = own.position.astype(np.int64)
  require(place < total, "infosets have a place")
  discovery = np.full(total, -1)
  discovery[place] = np.arange(total)
  require(discovery >= 0, "infosets have different places")
  # All else follows from the layout.
  groups = tree.groups.astype(np.int64)
  group = np.repeat(np.arange(len(groups)), groups[:, COUNT])[place]
  within = place + tree.first_infoset - groups[group, FIRST_INFOSET]
  require(
    own.first_sequence == groups[group, FIRST_SEQUENCE] + within, "infosets are in the layout"
  )
  require(own.stride == groups[group, STRIDE], "infosets are in the layout")
  require(own.num_actions == groups[group, ACTIONS], "infosets are in the layout")
  parent_group, parent_place = find_groups(tree, tree.parent)
  inner = parent_group >= 0
  owner = parent_place[inner] + groups[parent_group[inner], FIRST_INFOSET] - tree.first_infoset
  require(discovery[owner] < discovery[inner], "infosets are discovered after their parents")
  require_array(own.actions, "actions", np.int64, int(own.num_actions.sum()))
  require((own.actions >= 0) & (own.actions < num_distinct_actions), "actions are the game's")
  rising = np.diff(own.actions) > 0
  rising[np.cumsum(own.num_actions)[:-1] - 1] = True
  if not rising.all():
    infoset = np.repeat(np.arange(total), own.num_actions)
    order = np.lexsort((own.actions, infoset))
    same = (np.diff(own.actions[order]) == 0) & (np.diff(infoset[order]) == 0)
    require(~same, "infosets have different actions")
