"""Files of enumerated games.

A file contains the arrays in order of discovery. Loading computes the layout again, bit for bit. A valid checksum shows
that a file is unchanged, not that `save` wrote it, and kernels do not check indices. Types, shapes and ranges are
therefore checked when a file is read.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import Uint32s, range_starts, require, require_array
from spiel_cfr._util import files
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.compiled.game_facts import GameFacts
from spiel_cfr.games.compiled.infosets import Infosets
from spiel_cfr.games.openspiel.walk import DiscoveredInfosets
from spiel_cfr.games.payoffs.build_payoff import FORMS
from spiel_cfr.games.sequence_form.treeplex import build_treeplexes

# OpenSpiel's actions are below this number.
_MOST_ACTIONS = 1 << 31


def from_file(header: dict[str, Any], arrays: files.Arrays) -> EnumeratedGame:
  """Returns the game of a file's header and arrays.

  Raises:
    ArithmeticError, LookupError, MemoryError, TypeError, ValueError: `save` does not write such a file.
  """
  facts = facts_of(header)
  discovered, positions = zip(
    *(_read_infosets(_with_prefix(arrays, player)) for player in range(header["num_players"])),
    strict=True,
  )
  placements = build_treeplexes(
    [of_player.parents for of_player in discovered],
    [of_player.num_actions for of_player in discovered],
    ranks=positions,
  )
  for of_player, position, placement in zip(discovered, positions, placements, strict=True):
    require(of_player.actions < header["num_distinct_actions"], "actions are the game's")
    require(placement.position == position, "infosets are in the layout")
  infosets = tuple(
    Infosets(names, actions, num_actions, placement.sequences, placement.position)
    for (names, actions, num_actions, _), placement in zip(discovered, placements, strict=True)
  )
  treeplexes = tuple(placement.treeplex for placement in placements)
  payoff = FORMS[header["payoff_form"]].restored(_with_prefix(arrays, "payoff"), treeplexes)
  require(payoff.num_leaves <= header["num_terminals"], "leaves are terminals")
  return EnumeratedGame(facts, treeplexes, infosets, payoff)


def _with_prefix(arrays: Mapping[str, Any], prefix: object) -> dict[str, Any]:
  """Returns the arrays whose names begin with `prefix` and a dot; keys are the names without both."""
  start = f"{prefix}."
  return {
    name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)
  }


def facts_of(header: Mapping[str, Any]) -> GameFacts:
  """Returns the facts of a file's header, after checks of their types.

  Raises:
    ValueError: a fact is missing, or has another type.
  """
  for name, kinds in (
    ("game_string", str),
    ("payoff_form", str),
    ("open_spiel_version", str | None),
  ):
    require(isinstance(header[name], kinds), f"{name} is a string")
  for name in ("num_players", "num_distinct_actions", "num_states", "num_terminals"):
    require(type(header[name]) is int and header[name] > 0, f"{name} is a positive integer")
  require(header["num_players"] > 1, "there are players")
  require(header["num_distinct_actions"] < _MOST_ACTIONS, "actions have 31 bits")
  require(header["num_terminals"] <= header["num_states"] < 1 << 62, "terminals are states")
  sums = [] if header["constant_sum"] is None else [header["constant_sum"]]
  for number in [*header["payoff_range"], *sums]:
    require(type(number) in (int, float) and abs(number) < math.inf, "payoffs are finite numbers")
  low, high = header["payoff_range"]
  require(low <= high, "the payoffs' range is one")
  facts = {field.name: header[field.name] for field in dataclasses.fields(GameFacts)}
  return GameFacts(**facts | {"payoff_range": (low, high)})


def _read_infosets(arrays: Mapping[str, Any]) -> tuple[DiscoveredInfosets, Uint32s]:
  """Returns a player's infosets from the arrays of a file, and their `Infosets.position`, after checks."""
  infostates = _infostates(arrays["infostates"], arrays["infostate_lengths"])
  total = len(infostates)
  actions, num_actions, parents, position = (
    arrays[name] for name in ("actions", "num_actions", "parents", "position")
  )
  require_array(actions, "actions", np.int64, -1)
  require_array(num_actions, "num_actions", np.int64, total)
  require_array(parents, "parents", np.uint32, total)
  require_array(position, "position", np.uint32, total)
  require((num_actions > 0) & (num_actions <= len(actions)), "infosets have actions")
  require(num_actions.sum() == len(actions), "actions are those of infosets")
  require(parents <= range_starts(num_actions), "infosets are discovered after their parents")
  infoset = np.repeat(np.arange(total), num_actions)
  order = np.lexsort((actions, infoset))
  different = (np.diff(actions[order]) > 0) | (np.diff(infoset) > 0)
  require(different & (actions.min(initial=0) >= 0), "infosets have different actions")
  return DiscoveredInfosets(infostates, actions, num_actions, parents.astype(np.int64)), position


def _infostates(text: Any, lengths: Any) -> list[str]:
  """Returns a player's infostates, given their text in UTF-8, end to end, and their lengths in bytes."""
  require_array(text, "infostates", np.uint8, -1)
  require_array(lengths, "infostate_lengths", np.uint32, -1)
  require(lengths.sum(dtype=np.float64) == len(text), "infostates are end to end")
  whole = text.tobytes()
  ends = np.cumsum(lengths, dtype=np.int64).tolist()
  names = [whole[begin:end].decode() for begin, end in zip([0, *ends], ends, strict=False)]
  require(len(set(names)) == len(names), "infosets have different names")
  return names
