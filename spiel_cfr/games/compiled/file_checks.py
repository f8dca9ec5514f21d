"""What is checked of a compiled game that comes from a file, before any kernel sees it.

A right checksum says that a file is as it was written, not by whom. Compiled code takes every index on trust, so all
that it and the rest of the library rely on is looked at here: types, shapes, ranges of indices, counts, finiteness.
Everything is compiled or vectorised, and takes less time than reading the file.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import types

from spiel_cfr import errors
from spiel_cfr._numba.arrays import (
  BYTES,
  COUNT_TABLE,
  COUNTS,
  INDICES,
  INTEGERS,
  LINE,
  Int64s,
  Uint8s,
  Uint32s,
  Uint64s,
  require,
  require_array,
)
from spiel_cfr._numba.kernels import kernel
from spiel_cfr.games.compiled.compiled_game import CompiledGame, Infosets
from spiel_cfr.games.sequence_form.treeplex import (
  ACTIONS,
  COUNT,
  DEPTH,
  FIRST_INFOSET,
  FIRST_SEQUENCE,
  STRIDE,
  Treeplex,
  check_treeplexes,
)

# OpenSpiel's actions are numbers of this size.
_MOST_ACTIONS = 1 << 31
# Differences of 1e-12 of the payoffs are squared.
_SMALLEST_PAYOFF, _LARGEST_PAYOFF = 1e-140, 1e140

# What kernels and others rely on of infosets.
_RULES = (
  "infosets have a place",
  "infosets have different places",
  "infosets are in the layout",
  "parents are one level up",
  "infosets are discovered after their parents",
  "actions are the game's",
  "infosets have different actions",
)
(
  _PLACED,
  _DIFFERENT_PLACES,
  _LAID_OUT,
  _ONE_LEVEL_UP,
  _PARENTS_FIRST,
  _OF_THE_GAME,
  _DIFFERENT_ACTIONS,
  _ALL_KEPT,
) = range(len(_RULES) + 1)
_ONE, _LINE = np.uint64(1), np.uint64(LINE)
_FNV_OFFSET, _FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_NOWHERE = np.uint32(np.iinfo(np.uint32).max)


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


@kernel(types.void(BYTES, INDICES, COUNTS))
def _hash_names(text: Uint8s, lengths: Uint32s, hashes: Uint64s) -> None:
  """Hashes pieces of a text by FNV-1a (Fowler, Noll and Vo)."""
  place = np.uint64(0)
  for name in range(len(lengths)):
    value = _FNV_OFFSET
    for _ in range(lengths[name]):
      value = (value ^ np.uint64(text[place])) * _FNV_PRIME
      place += _ONE
    hashes[name] = value


def check_infostates(text: Uint8s, lengths: Uint32s) -> None:
  """Checks the names of a player's infosets.

  Args:
    text: all of them, end to end, in UTF-8.
    lengths: of each.

  Raises:
    ValueError: they are not what fills the text, or two are the same.
  """
  require_array(text, "infostates", np.uint8, -1)
  require_array(lengths, "infostate_lengths", np.uint32, -1)
  require(lengths.sum(dtype=np.float64) == len(text), "infostates are end to end")
  hashes = np.empty(len(lengths), np.uint64)
  _hash_names(text, lengths, hashes)
  hashes.sort()
  if (hashes[1:] == hashes[:-1]).any():
    # Equal hashes need not mean equal names; a set of long strings takes as long as all else.
    ends = np.cumsum(lengths, dtype=np.int64)
    names = {text[end - length : end].tobytes() for end, length in zip(ends, lengths, strict=True)}
    require(len(names) == len(lengths), "infosets have different names")


@kernel(
  types.uint64(
    *(types.uint64, types.uint64, types.int64, COUNT_TABLE, INDICES, INDICES, INDICES, INDICES),
    *(INTEGERS, INTEGERS, INDICES, INDICES),
  )
)
def _broken_rule(
  root: int,
  first_infoset: int,
  num_distinct_actions: int,
  groups: Uint64s,
  parent: Uint32s,
  position: Uint32s,
  first_sequence: Uint32s,
  stride: Uint32s,
  num_actions: Int64s,
  actions: Int64s,
  group_of_line: Uint32s,
  discovery: Uint32s,
) -> int:
  """Goes through a player's infosets once; returns the first of `_RULES` that is broken, or how many there are.

  Args:
    root: see `Treeplex`.
    first_infoset: see `Treeplex`.
    num_distinct_actions: of the game.
    groups: see `Treeplex`; checked.
    parent: see `Treeplex`.
    position: see `Infosets`.
    first_sequence: see `Infosets`.
    stride: see `Infosets`.
    num_actions: see `Infosets`.
    actions: see `Infosets`.
    group_of_line: the group of each vector of sequences from that of the first group on.
    discovery: shape (infosets,), `_NOWHERE`; becomes the infoset at each place of the layout.
  """
  for number in range(len(position)):
    if position[number] >= len(position):
      return _PLACED
    if discovery[position[number]] != _NOWHERE:
      return _DIFFERENT_PLACES
    discovery[position[number]] = number
  for group in range(np.uint64(len(groups))):
    place = groups[group, FIRST_INFOSET] - first_infoset
    depth = groups[group, DEPTH]
    for sequence in range(
      groups[group, FIRST_SEQUENCE], groups[group, FIRST_SEQUENCE] + groups[group, COUNT]
    ):
      infoset = np.uint64(discovery[place])
      if (
        np.uint64(first_sequence[infoset]) != sequence
        or np.uint64(stride[infoset]) != groups[group, STRIDE]
        or np.uint64(num_actions[infoset]) != groups[group, ACTIONS]
      ):
        return _LAID_OUT
      above = np.uint64(parent[place])
      if depth == 0:
        if above != root:
          return _ONE_LEVEL_UP
      else:
        if above < groups[0, FIRST_SEQUENCE]:
          return _ONE_LEVEL_UP
        line = (above - groups[0, FIRST_SEQUENCE]) // _LINE
        if line >= np.uint64(len(group_of_line)):
          return _ONE_LEVEL_UP
        owners = np.uint64(group_of_line[line])
        owner = (above - groups[owners, FIRST_SEQUENCE]) % groups[owners, STRIDE]
        if owner >= groups[owners, COUNT] or groups[owners, DEPTH] + _ONE != depth:
          return _ONE_LEVEL_UP
        if discovery[groups[owners, FIRST_INFOSET] - first_infoset + owner] >= infoset:
          return _PARENTS_FIRST
      place += _ONE
  rising = True
  entry = np.uint64(0)
  for number in range(len(num_actions)):
    last = np.int64(-1)
    for _ in range(num_actions[number]):
      action = actions[entry]
      if not 0 <= action < num_distinct_actions:
        return _OF_THE_GAME
      rising &= action > last
      last = action
      entry += _ONE
  return _ALL_KEPT if rising else _DIFFERENT_ACTIONS


def _check_infosets(tree: Treeplex, own: Infosets, num_distinct_actions: int) -> None:
  total = tree.num_infosets
  require(len(own.infostates) == total, "infosets have names")
  require_array(tree.parent, "parent", np.uint32, total)
  for name in ("position", "first_sequence", "stride"):
    require_array(getattr(own, name), name, np.uint32, total)
  require_array(own.num_actions, "num_actions", np.int64, total)
  require_array(own.actions, "actions", np.int64, int(own.num_actions.sum()))
  lines = (tree.groups[:, STRIDE] * tree.groups[:, ACTIONS] // _LINE).astype(np.int64)
  rule = _broken_rule(
    np.uint64(tree.root),
    np.uint64(tree.first_infoset),
    num_distinct_actions,
    tree.groups,
    tree.parent,
    own.position,
    own.first_sequence,
    own.stride,
    own.num_actions,
    own.actions,
    np.repeat(np.arange(len(lines), dtype=np.uint32), lines),
    np.full(total, _NOWHERE),
  )
  if rule == _DIFFERENT_ACTIONS:
    # In another order they may be different all the same.
    infoset = np.repeat(np.arange(total), own.num_actions)
    order = np.lexsort((own.actions, infoset))
    same = (np.diff(own.actions[order]) == 0) & (np.diff(infoset[order]) == 0)
    require(~same, _RULES[_DIFFERENT_ACTIONS])
  else:
    require(rule == _ALL_KEPT, _RULES[min(rule, _DIFFERENT_ACTIONS)])
