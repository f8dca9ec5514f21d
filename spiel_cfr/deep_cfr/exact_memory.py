"""Deep CFR's memories of a compiled game, without a sample in them.

A reservoir of samples r_j with weights w_j at infosets I(j) is there to be fitted:

    sum_j w_j |f(x_I(j)) - r_j|^2  =  sum_I W_I |f(x_I) - mean_I|^2  +  what does not depend on f

with W_I the sum of the weights at I, and mean_I the weighted mean of its samples. So sums at each infoset replace all
samples that there ever were, without loss; no sample is forgotten, and none is drawn.
"""

import numpy as np

from spiel_cfr._numba.arrays import Bools, Float64s, Int64s
from spiel_cfr.deep_cfr.features import Encoder, Float32s, all_features
from spiel_cfr.deep_cfr.network import Rows
from spiel_cfr.mccfr.engines.compiled_engine import CompiledEngine
from spiel_cfr.mccfr.infoset_table import Entries


class InfosetTable:
  """Infosets as rows, actions as columns, and back to the entries of a solver's table.

  Attributes:
    features: float32, shape (infosets, features), all players' end to end.
    mask: shape (infosets, actions of the game): which are legal.
    num_actions: int64, shape (infosets,): how many.
    players: a slice of the infosets per player.
  """

  features: Float32s
  mask: Bools
  num_actions: Int64s
  players: list[slice]

  def __init__(self, engine: CompiledEngine, encoder: Encoder) -> None:
    """Walks the game for the features of its infosets.

    Raises:
      FeaturesError: they do not tell infosets apart.
    """
    compiled = engine.compiled_game
    self.features = all_features(compiled, encoder)
    self.mask = compiled.legal_actions_mask.astype(bool)
    self.num_actions = np.concatenate(compiled.num_actions)
    ends = np.cumsum([len(own) for own in compiled.infostates]).tolist()
    self.players = [slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]
    self._num_players = compiled.num_players
    self._rows, self._columns = compiled.action_cells
    self._ends = np.concatenate([[0], np.cumsum(self.num_actions)])

  @property
  def num_outputs(self) -> int:
    """How many actions the game has."""
    return int(self.mask.shape[1])

  def entries_of(self, player: int) -> slice:
    """Returns where a player's actions are in the arrays of a table."""
    own = self.players[player]
    begin, end = self._ends[[own.start, own.stop]]
    return slice(self._num_players + int(begin), self._num_players + int(end))

  def as_rows(self, numbers: Float64s, own: slice) -> Float64s:
    """Returns what an array over a table's entries holds of some infosets, shape (infosets, actions), 0 elsewhere."""
    begin, end = self._ends[[own.start, own.stop]]
    result = np.zeros((own.stop - own.start, self.num_outputs))
    place = slice(begin, end)
    result[self._rows[place] - own.start, self._columns[place]] = numbers[self._num_players :][
      place
    ]
    return result

  def as_entries(self, rows: Float64s, own: slice) -> Float64s:
    """Returns the entries of some infosets, action by action, from their rows."""
    begin, end = self._ends[[own.start, own.stop]]
    place = slice(begin, end)
    result: Float64s = rows[self._rows[place] - own.start, self._columns[place]]
    return result

  def samples(self, sums: Float64s, visits: Float64s, entries: Entries, player: int) -> Rows:
    """Returns weighted means of samples, and the weights.

    Args:
      sums: over a table's entries: of weight times sample.
      visits: likewise, of weights, at action 0.
      entries: the table's.
      player: whose infosets.
    """
    own = self.players[player]
    weights = visits[entries.first[own]]
    means = self.as_rows(sums, own) / np.where(weights > 0, weights, 1.0)[:, None]
    return Rows(self.features[own], means, self.mask[own], weights)

  def strategies(self, sums: Float64s, player: int) -> Rows:
    """Returns weighted means of strategies, and the weights, from sums of weight times strategy."""
    own = self.players[player]
    rows = self.as_rows(sums, own)
    weights = rows.sum(axis=1)
    means = rows / np.where(weights > 0, weights, 1.0)[:, None]
    return Rows(self.features[own], means, self.mask[own], weights)


def matched(advantages: Float64s, mask: Bools, tie: float, greedy: bool) -> Float64s:
  """Regret matching: max(advantage, 0), normalized.

  Args:
    advantages: shape (..., actions).
    mask: which are legal, of a shape that goes with it.
    tie: advantages up to this count as 0.
    greedy: whether actions of the largest advantage are played where none is positive; otherwise all are, alike.

  Returns:
    Probabilities, of the same shape.
  """
  positive = np.where(mask & (advantages > tie), advantages, 0.0)
  totals = positive.sum(axis=-1, keepdims=True)
  if greedy:
    legal = np.where(mask, advantages, -np.inf)
    mask = legal >= legal.max(axis=-1, keepdims=True) - tie
  otherwise = mask / mask.sum(axis=-1, keepdims=True)
  result: Float64s = np.where(totals > 0, positive / np.where(totals > 0, totals, 1.0), otherwise)
  return result


def softmax(logits: Float64s, mask: Bools) -> Float64s:
  """Returns probabilities of legal actions, shape (infosets, actions)."""
  masked = np.where(mask, logits, -np.inf)
  result = np.exp(masked - masked.max(axis=1, keepdims=True))
  normalized: Float64s = result / result.sum(axis=1, keepdims=True)
  return normalized
