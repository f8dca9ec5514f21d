"""Lossless abstraction by colour refinement, from the arrays of any game.

Sequences and infosets have colours, which are split until nothing changes:

    colour(sequence) = (old colour, payoffs by colours of the others' sequences, colour of its own infoset,
                        multiset of the colours of the infosets below)
    colour(infoset)  = (old colour, colour of the sequence above, multiset of the colours of its actions)

If a strategy is constant on each colour, so are its gradients and counterfactual values. CFR therefore stays constant
on colours and can iterate on one representative of each. The same idea reduces linear programs by equitable partitions:
Grohe, Kersting, Mladenov and Selman, "Dimension Reduction via Colour Refinement" (2014). Here it serves n players and
any payoffs. It finds the suits of poker without knowledge of cards.

Payoffs by colours are compared by random numbers, one for each colour in place of strategies. Two sequences with the
same payoffs by colours have the same gradient. Others have different gradients, except by coincidence.
"""

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, Uint64s, aligned_zeros
from spiel_cfr._util.doors import typed
from spiel_cfr.abstraction.abstract_game import abstract
from spiel_cfr.abstraction.buckets import Buckets
from spiel_cfr.abstraction.hand_buckets import HandBuckets
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.poker.merged_hands import equal_hands
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.poker.suit_symmetries import number_in_order

# Gradients that differ by at most this share of themselves, plus this share of the largest, count as equal.
_RELATIVE, _ABSOLUTE = 1e-10, 1e-14
# Number of random draws for each colour; two make a coincidence all but impossible.
_DRAWS = 2


@typed
def lossless(game: AnyGame) -> Buckets | HandBuckets:
  """Finds infosets that may play alike without loss: their abstraction has the same equilibria.

      small = abstract(game, lossless(game))

  Actions of an infoset with the same colour become one, whose probability they share equally. In poker in vector form,
  public cards and hands that differ only by suits are found, see `poker.suit_symmetries`.

  Raises:
    UnsupportedGameError: the game is an abstraction itself.
    GameError: see `compile_game`.
  """
  game = compile_game(game)
  if game.original is not game:
    raise errors.UnsupportedGameError(
      f"Symmetries are found in games with all their infosets, not in {game}, which is an abstraction."
    )
  if isinstance(game, PublicGame):
    return HandBuckets(*equal_hands(game.tree), is_lossless=True)
  colours = _Colours(game)
  colours.refine()
  return colours.buckets()


@typed
def lossless_abstraction(game: AnyGame) -> EnumeratedGame | PublicGame:
  """Returns a smaller game with the same equilibria, in which equivalent infosets are one.

      >>> lossless_abstraction("leduc_poker").num_infosets
      288

  Raises:
    GameError: see `compile_game`; or the game is an abstraction itself.
  """
  compiled = compile_game(game)
  return abstract(compiled, lossless(compiled))


class _Colours:
  """Colours of sequences and infosets; different players have different colours."""

  def __init__(self, game: CompiledGame) -> None:
    self.game = game
    self.rng = np.random.default_rng(0)
    count = sum(treeplex.num_infosets for treeplex in game.treeplexes)
    # All sequences, ascending. `owner` has the infoset of each, `parent` the sequence above each infoset in layout
    # order.
    self.sequences = np.sort(
      np.concatenate([game.all_action_sequences, [tree.root for tree in game.treeplexes]])
    )
    self.owner = np.full(game.end, count)
    self.player = np.zeros(game.end, np.int64)
    self.infoset_player = np.zeros(count, np.int64)
    for player, tree in enumerate(game.treeplexes):
      self.player[tree.root : tree.end] = player
      for sequences, infosets in tree.infoset_groups():
        own = np.arange(infosets.start, infosets.stop) + tree.first_infoset
        self.owner[sequences] = own
        self.infoset_player[own] = player
    self.parent = game.parent.astype(np.int64)
    self.colour = _numbered(self.player.astype(np.uint64))
    self.infoset_colour = np.append(_numbered(self.infoset_player.astype(np.uint64)), 0)

  def refine(self) -> None:
    """Splits colours until a round splits none."""
    before = 0
    while self._count() > before:
      before = self._count()
      self._split()

  def _count(self) -> int:
    return int(self.colour.max()) + int(self.infoset_colour.max())

  def _split(self) -> None:
    numbers = self.rng.integers(1, 1 << 63, (2, len(self.colour) + len(self.infoset_colour) + 1))
    of_colour, of_infoset = numbers.astype(np.uint64)
    below = np.zeros(len(self.colour), np.uint64)
    np.add.at(below, self.parent, of_infoset[self.infoset_colour[:-1]])
    signature = _mixed(of_colour[self.colour] ^ _mixed(below))
    signature = _mixed(signature ^ of_infoset[self.infoset_colour[self.owner]])
    for gradient in self._gradients():
      signature = _mixed(signature ^ (_classes(gradient) + np.uint64(1)))
    self.colour = _numbered(signature)
    inside = np.zeros(len(self.infoset_colour), np.uint64)
    np.add.at(inside, self.owner[self.sequences], of_colour[self.colour[self.sequences]])
    above = np.append(of_colour[self.colour[self.parent]], np.uint64(0))
    old = of_infoset[self.infoset_colour]
    self.infoset_colour = _numbered(_mixed(old ^ _mixed(inside) ^ _mixed(above + old)))

  def _gradients(self) -> list[Float64s]:
    """Returns gradients with a random number for each colour in place of a strategy."""
    game, result = self.game, []
    for _ in range(_DRAWS):
      weights, utility = aligned_zeros(game.end), aligned_zeros(game.end)
      draws = 0.5 + self.rng.random(len(self.colour))
      weights[self.sequences] = draws[self.colour[self.sequences]]
      for player in range(game.num_players):
        game.payoff.gradient_into(player, weights, utility)
      result.append(utility)
    return result

  def buckets(self) -> Buckets:
    """Returns the infosets by colour, with their actions in the order of colours."""
    labels, slots, begin = [], [], 0
    for tree, own in zip(self.game.treeplexes, self.game.infosets, strict=True):
      place = own.position.astype(np.int64) + tree.first_infoset
      labels.append(number_in_order(self.infoset_colour[place]))
      cells = self.game.all_action_sequences[begin : begin + len(own.actions)]
      begin += len(cells)
      infoset = np.repeat(np.arange(len(place)), own.num_actions)
      colour = self.colour[cells]
      by_colour = np.lexsort((colour, infoset))
      changed = np.diff(colour[by_colour], prepend=-1) != 0
      starts = np.cumsum(own.num_actions) - own.num_actions
      changed[starts] = False
      rank = np.cumsum(changed)
      slot = np.empty(len(cells), np.int64)
      slot[by_colour] = rank - rank[starts][infoset[by_colour]]
      slots.append(slot)
    return Buckets(tuple(labels), tuple(slots), True)


def _numbered(signature: Uint64s) -> Int64s:
  return np.unique(signature, return_inverse=True)[1].astype(np.int64)


def _classes(values: Float64s) -> Uint64s:
  """Numbers values; values that differ only by rounding have the same number."""
  order = np.argsort(values)
  ascending = values[order]
  step = np.diff(ascending)
  size = np.maximum(np.abs(ascending[1:]), np.abs(ascending[:-1]))
  apart = step > _RELATIVE * size + _ABSOLUTE * np.abs(values).max(initial=0.0)
  result = np.empty(len(values), np.uint64)
  result[order] = np.append(0, np.cumsum(apart))[: len(values)]
  return result


def _mixed(words: Uint64s) -> Uint64s:
  """Returns words each of whose bits depends on all bits of the given one: the finalizer of splitmix64."""
  words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
  words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
  return words ^ (words >> np.uint64(31))
