"""Lossless abstraction of any game, by color refinement of its sequences and infosets.

Sequences and infosets of a player begin with the same color. Colors are split until no split is left:

    color(sequence) = (old color, payoffs by colors of the others' sequences, color of its infoset,
                       multiset of the colors of the infosets below)
    color(infoset)  = (old color, color of the sequence above, multiset of the colors of its actions)

If a strategy is constant on each color, so are its gradients and counterfactual values. CFR therefore stays constant
on colors and can iterate on one representative of each. The same idea reduces linear programs by equitable partitions:
Grohe, Kersting, Mladenov and Selman, "Dimension Reduction via Colour Refinement" (2014). Here it serves any number of
players and any payoffs. It finds the suits of poker without knowledge of cards.

Payoffs by colors are compared by gradients against random numbers, one for each color. Two sequences with the same
payoffs by colors have the same gradient. Other sequences have different gradients, except by coincidence.
"""

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s, Uint64s, aligned_zeros, range_starts
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.abstraction.abstract_game import ADVICE, merge_infosets
from spiel_cfr.abstraction.buckets import Buckets
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame, listed_game
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.poker.suit_symmetries import number_in_order

# Gradients count as equal if they differ by at most these shares of their size and of the largest gradient.
_RELATIVE, _ABSOLUTE = 1e-10, 1e-14
# The number of random numbers for each color. With two, a coincidence is all but impossible.
_DRAWS = 2


@typed
def lossless_abstraction(game: AnyGame) -> EnumeratedGame:
  """Returns a smaller game with the same equilibria, in which equivalent infosets are merged.

      >>> lossless_abstraction("leduc_poker").num_infosets
      288

  Args:
    game: a compiled game that lists its leaves, or an argument of `compile_game`. In poker in vector form,
      `compile_public_game` merges hands that differ only by suits, with `merge_suits=True`.

  Raises:
    UnsupportedGameError: the game is in vector form, or is an abstraction.
    GameError: see `compile_game`.
  """
  listed = listed_game(compile_game(game), ADVICE)
  return merge_infosets(listed, lossless_buckets(listed))


def lossless_buckets(game: EnumeratedGame) -> Buckets:
  """Returns buckets of infosets that can share a strategy without loss: the abstraction has the same equilibria.

  Actions of an infoset with the same color become one action, and share its probability equally.
  """
  colors = _Colors(game)
  colors.refine()
  return colors.buckets()


class _Colors:
  """Colors of sequences and infosets. Different players have different colors.

  Infosets are numbered over all players, in layout order.

  Attributes:
    game: `EnumeratedGame`. The game.
    rng: `Generator` of NumPy. The source of the random numbers.
    sequences: int64 (n,). All sequences of the game, without padding, in ascending order.
    infoset: int64 (sequences with padding,). The infoset of each sequence; -1 if it has none.
    parent: int64 (infosets,). The sequence above each infoset.
    color: int64 (sequences with padding,). The color of each sequence.
    infoset_color: int64 (infosets + 1,). The color of each infoset; last, 0 for sequences without an infoset.
  """

  def __init__(self, game: EnumeratedGame) -> None:
    self.game = game
    self.rng = np.random.default_rng(0)
    self.sequences = np.sort(
      np.concatenate([game.all_action_sequences, [tree.root for tree in game.treeplexes]])
    )
    numbers = np.arange(1, 1 + game.num_infosets).astype(np.float64)
    self.infoset = game.per_sequence(numbers).astype(np.int64) - 1
    player_of_sequence = np.zeros(game.end, np.uint64)
    player_of_infoset = np.zeros(game.num_infosets, np.uint64)
    for player, tree in enumerate(game.treeplexes):
      player_of_sequence[tree.root : tree.end] = player
      player_of_infoset[tree.first_infoset : tree.first_infoset + tree.num_infosets] = player
    self.parent = game.parent.astype(np.int64)
    self.color = _numbered(player_of_sequence)
    self.infoset_color = np.append(_numbered(player_of_infoset), 0)

  def refine(self) -> None:
    """Splits colors until no split is left."""
    previous = 0
    while self._num_colors() > previous:
      previous = self._num_colors()
      self._split()

  def _num_colors(self) -> int:
    return int(self.color.max()) + int(self.infoset_color.max())

  def _split(self) -> None:
    """Splits all colors once. A new color is the number of a hash of the terms in the module's formulas.

    Every color has a random 64-bit number, so a multiset of colors is hashed by the sum of the numbers.
    """
    numbers = self.rng.integers(1, 1 << 63, (2, len(self.color) + len(self.infoset_color) + 1))
    sequence_hash, infoset_hash = numbers.astype(np.uint64)
    infosets_below = np.zeros(len(self.color), np.uint64)
    np.add.at(infosets_below, self.parent, infoset_hash[self.infoset_color[:-1]])
    signature = _mixed(sequence_hash[self.color] ^ _mixed(infosets_below))
    signature = _mixed(signature ^ infoset_hash[self.infoset_color[self.infoset]])
    for gradient in self._gradients():
      signature = _mixed(signature ^ (_classes(gradient) + np.uint64(1)))
    self.color = _numbered(signature)
    actions = np.zeros(len(self.infoset_color), np.uint64)
    np.add.at(actions, self.infoset[self.sequences], sequence_hash[self.color[self.sequences]])
    above = np.append(sequence_hash[self.color[self.parent]], np.uint64(0))
    old = infoset_hash[self.infoset_color]
    self.infoset_color = _numbered(_mixed(old ^ _mixed(actions) ^ _mixed(above + old)))

  def _gradients(self) -> list[Float64s]:
    """Returns gradients, shape (sequences with padding,), against random numbers in place of a strategy."""
    game, result = self.game, []
    for _ in range(_DRAWS):
      weights, utility = aligned_zeros(game.end), aligned_zeros(game.end)
      draws = 0.5 + self.rng.random(len(self.color))
      weights[self.sequences] = draws[self.color[self.sequences]]
      for player in range(game.num_players):
        game.payoff.gradient_into(player, weights, utility)
      result.append(utility)
    return result

  def buckets(self) -> Buckets:
    """Returns the buckets: infosets by their color, with labels of actions in the order of their colors."""
    labels, action_labels = [], []
    for tree, infosets in zip(self.game.treeplexes, self.game.infosets, strict=True):
      numbers = infosets.position.astype(np.int64) + tree.first_infoset
      labels.append(number_in_order(self.infoset_color[numbers]))
      sequences = infosets.action_sequences
      infoset_of_action = np.repeat(np.arange(len(numbers)), infosets.num_actions)
      color = self.color[sequences]
      by_color = np.lexsort((color, infoset_of_action))
      # True at an action whose color differs from that of the action before it at the infoset.
      is_new_label = np.diff(color[by_color], prepend=-1) != 0
      starts = range_starts(infosets.num_actions)
      is_new_label[starts] = False
      rank = np.cumsum(is_new_label)
      label = np.empty(len(sequences), np.int64)
      label[by_color] = rank - rank[starts][infoset_of_action[by_color]]
      action_labels.append(label)
    return Buckets(tuple(labels), tuple(action_labels), True)


def _numbered(signature: Uint64s) -> Int64s:
  """Returns the numbers of distinct values, from 0 without gaps."""
  return np.unique(signature, return_inverse=True)[1].astype(np.int64)


def _classes(values: Float64s) -> Uint64s:
  """Returns a number for each value. Values that differ only by rounding have the same number."""
  order = np.argsort(values)
  ascending = values[order]
  step = np.diff(ascending)
  size = np.maximum(np.abs(ascending[1:]), np.abs(ascending[:-1]))
  apart = step > _RELATIVE * size + _ABSOLUTE * np.abs(values).max(initial=0.0)
  result = np.empty(len(values), np.uint64)
  result[order] = np.append(0, np.cumsum(apart))[: len(values)]
  return result


def _mixed(words: Uint64s) -> Uint64s:
  """Returns hashes of 64-bit words, by the finalizer of splitmix64."""
  words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
  words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
  return words ^ (words >> np.uint64(31))
