"""Reads compiled games from files, and checks all that kernels and others rely on.

A right checksum says that a file is as it was written, not by whom. Compiled code takes every index on trust, so types,
shapes, ranges of indices, counts and finiteness are looked at before any kernel sees an array.
"""

import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Uint8s, Uint32s, aligned, require, require_array
from spiel_cfr._util import files
from spiel_cfr.games.compiled.compiled_game import Infosets
from spiel_cfr.games.compiled.enumerated_game import (
  FORMAT,
  HEADER_FIELDS,
  KIND,
  OF_INFOSETS,
  OF_PLAYERS,
  OF_TREEPLEX,
  EnumeratedGame,
)
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.payoffs.build_payoff import FORMS
from spiel_cfr.games.payoffs.payoff import PayoffArrays
from spiel_cfr.games.sequence_form.treeplex import (
  ACTIONS,
  COUNT,
  DEPTH,
  FIRST_SEQUENCE,
  STRIDE,
  Treeplex,
  check_treeplexes,
)

# OpenSpiel's actions are numbers of this size.
_MOST_ACTIONS = 1 << 31


def load_compiled_game(
  path: str | os.PathLike[str], view: GameView | None = None
) -> EnumeratedGame:
  """Reads a game that `CompiledGame.save` has written.

  Args:
    path: the file.
    view: the game that it must be, if that is loaded already.

  Raises:
    FileFormatError: the file is not such a file, is damaged, is of a newer version, or is of another game than `view`.
    OSError: the file can't be read.
  """
  header, arrays = files.read(path, KIND, FORMAT)
  try:
    game = _from_arrays(header, arrays, view)
    _check_game(game)
  # A right checksum does not mean that we wrote the file.
  except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as error:
    raise errors.FileFormatError(
      f"{path} is not a {KIND}: {type(error).__name__}: {error}."
    ) from error
  if view is not None:
    game.check_view(view)
  return game


def _from_arrays(
  header: dict[str, Any], arrays: files.Arrays, view: GameView | None
) -> EnumeratedGame:
  _check_header(header)
  treeplexes, infosets = [], []
  for player, (root, end, first_infoset) in enumerate(header["roots"]):
    tree = {name: arrays[f"{player}.{name}"] for name in OF_TREEPLEX}
    treeplexes.append(Treeplex(root, end, first_infoset, **tree))
    lengths = arrays[f"{player}.infostate_lengths"]
    infostates = _infostates(arrays[f"{player}.infostates"], lengths)
    columns = {name: arrays[f"{player}.{name}"] for name in OF_INFOSETS}
    infosets.append(Infosets(infostates, **columns))
  payoff = {name: arrays[f"payoff.{name}"] for name in PayoffArrays._fields}
  require_array(payoff["patterns"], "patterns", np.float64, -1)
  payoff["patterns"] = aligned(payoff["patterns"])
  known = {f"{player}.{name}" for player in range(len(treeplexes)) for name in OF_PLAYERS}
  require(set(arrays) == known | {f"payoff.{name}" for name in payoff}, "these are its arrays")
  fields = {name: header[name] for name in HEADER_FIELDS}
  return EnumeratedGame(
    **fields | {"payoff_range": tuple(header["payoff_range"])},
    open_spiel_version=header["open_spiel_version"],
    treeplexes=tuple(treeplexes),
    infosets=tuple(infosets),
    payoff=FORMS[header["payoff_form"]](PayoffArrays(**payoff)),
    view=view,
  )


def _infostates(text: Uint8s, lengths: Uint32s) -> list[str]:
  """Returns the names of a player's infosets, of which a file has the text, in UTF-8, and the lengths."""
  require_array(text, "infostates", np.uint8, -1)
  require_array(lengths, "infostate_lengths", np.uint32, -1)
  require(lengths.sum(dtype=np.float64) == len(text), "infostates are end to end")
  whole = text.tobytes()
  ends = np.cumsum(lengths, dtype=np.int64).tolist()
  # Pieces of a string are made faster than strings of pieces.
  source: Any = whole.decode() if whole.isascii() else whole
  pieces = [source[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
  names: list[str] = pieces if whole.isascii() else [piece.decode() for piece in pieces]
  require(len(set(names)) == len(names), "infosets have different names")
  return names


def _check_header(header: Mapping[str, Any]) -> None:
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


def _check_game(game: EnumeratedGame) -> None:
  """Checks everything but the header.

  Raises:
    ValueError: the arrays are not those of a compiled game.
  """
  real = check_treeplexes(game.treeplexes)
  for tree, own in zip(game.treeplexes, game.infosets, strict=True):
    _check_infosets(tree, own)
    _check_actions(own, game.num_distinct_actions)
  game.payoff.check(game.treeplexes, real)
  require(game.num_leaves <= game.num_terminals, "leaves are terminals")


def _check_infosets(tree: Treeplex, own: Infosets) -> None:
  """Checks a player's infosets against its treeplex, which has been checked but for the parents."""
  total = tree.num_infosets
  require(len(own.infostates) == total, "infosets have names")
  require_array(tree.parent, "parent", np.uint32, total)
  for name in ("position", "first_sequence", "stride"):
    require_array(getattr(own, name), name, np.uint32, total)
  require_array(own.num_actions, "num_actions", np.int64, total)
  require(own.position < total, "infosets have a place")
  require(np.bincount(own.position, minlength=total) == 1, "infosets have different places")

  # From here on, in the order of the layout.
  groups = tree.groups.astype(np.int64)
  group = np.repeat(np.arange(len(groups)), groups[:, COUNT])
  within = np.arange(total) - (np.cumsum(groups[:, COUNT]) - groups[:, COUNT])[group]
  discovered = np.argsort(own.position)
  for found, wanted in (
    (own.first_sequence, groups[group, FIRST_SEQUENCE] + within),
    (own.stride, groups[group, STRIDE]),
    (own.num_actions, groups[group, ACTIONS]),
  ):
    require(found[discovered] == wanted, "infosets are in the layout")

  owner = np.full(tree.end - tree.root, -1)
  for sequences, infosets in tree.blocks():
    owner[sequences - tree.root] = np.arange(infosets.start, infosets.stop)
  parent = tree.parent.astype(np.int64) - tree.root
  require((parent >= 0) & (parent < len(owner)), "parents are one level up")
  above, depth = owner[parent], groups[group, DEPTH]
  require((above >= 0) | (parent == 0), "parents are one level up")
  require(depth == np.where(parent == 0, 0, depth[above] + 1), "parents are one level up")
  later = discovered > np.where(parent == 0, -1, discovered[above])
  require(later, "infosets are discovered after their parents")


def _check_actions(own: Infosets, num_distinct_actions: int) -> None:
  """Checks the actions of a player's infosets, of which the numbers have been checked."""
  actions = own.actions
  require_array(actions, "actions", np.int64, int(own.num_actions.sum()))
  require((actions >= 0) & (actions < num_distinct_actions), "actions are the game's")
  infoset = np.repeat(np.arange(len(own.num_actions)), own.num_actions)
  if not ((np.diff(actions) > 0) | (np.diff(infoset) > 0)).all():
    # Not in ascending order: they may be different all the same.
    order = np.lexsort((actions, infoset))
    actions, infoset = actions[order], infoset[order]
  require((np.diff(actions) > 0) | (np.diff(infoset) > 0), "infosets have different actions")
