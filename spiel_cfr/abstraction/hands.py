"""Hands in buckets, for poker in vector form on the last board: hands of a bucket play alike after any betting.

In vector form no hand goes away: hands of a bucket are tied, see `game.ties`, so that an iteration takes a little
longer than without buckets. What is smaller is the number of strategies, and what is learned is how much that costs.

Features say which hands are alike, given the hands that the other player may hold:

- equity: the probability to win the showdown, a tie counting as half;
- equities against clusters of the other's hands (opponent cluster hand strength, OCHS: Johanson, Burch, Valenzano and
  Bowling, "Evaluating State-Space Abstractions in Extensive-Form Games", 2013).
"""

import functools
import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spiel_cfr import arguments, errors
from spiel_cfr.abstraction.abstract_game import shared_entries
from spiel_cfr.abstraction.buckets import Buckets, identity
from spiel_cfr.compiled.base import CompiledGame
from spiel_cfr.game.ties import Ties, build_ties
from spiel_cfr.kernels.arrays import Float64s, Int64s
from spiel_cfr.poker.hand_pairs import hand_pairs
from spiel_cfr.poker.public_game import PublicGame


class BucketedHands(PublicGame):
  """A poker game in vector form in which hands of a bucket play alike. Make one with `bucket_hands`.

  Solvers hand out policies of the full game.

  Attributes:
    full: the game in which all hands are told apart.
    labels: each player's bucket of each hand, in the order of `Board.hands`.
  """

  def __init__(self, full: PublicGame, labels: tuple[Int64s, Int64s]) -> None:
    """Ties the hands."""
    self.__dict__.update(full.__getstate__())
    self.full, self.labels = full, labels
    tied = np.full(full.end, -1)
    number = 0
    for player, own in enumerate(labels):
      for node in full.layout.decisions(player, 0):
        for sequences in full.layout.sequences(0, node):
          tied[sequences] = number + own
          number += 1 + int(own.max(initial=0))
    self._tied = tied
    groups = [treeplex.groups for treeplex in full.treeplexes]
    self._ties = build_ties(groups, tied, full.num_infosets, full.end - 1)

  @property
  def ties(self) -> Ties:
    """See the base class."""
    return self._ties

  @property
  def original(self) -> CompiledGame:
    """See the base class."""
    return self.full

  @property
  def is_exact(self) -> bool:
    """See the base class."""
    return False

  @property
  def num_buckets(self) -> int:
    """How many strategies there are to choose."""
    layout = self.layout
    return sum(
      len(layout.decisions(player, 0)) * len(np.unique(own))
      for player, own in enumerate(self.labels)
    )

  @property
  def size(self) -> str:
    """See the base class."""
    return f"{self.num_buckets:,} buckets for {self.full.size}"

  @functools.cached_property
  def shared_entries(self) -> Int64s:
    """See the base class."""
    same = tuple(self._tied[own.first_sequence] for own in self.infosets)
    return shared_entries(self.infosets, Buckets(same, identity(self).slots))

  @functools.cached_property
  def digest(self) -> str:
    """See the base class."""
    digest = hashlib.sha256(self.full.digest.encode())
    for own in self.labels:
      digest.update(own.tobytes())
    return digest.hexdigest()


def bucket_hands(game: PublicGame, labels: Sequence[npt.ArrayLike]) -> BucketedHands:
  """Returns the game in which hands of a bucket play alike.

      game = compile_public_game(endgame.load(), few_bets)
      equity = hand_equities(game, 0), hand_equities(game, 1)
      small = bucket_hands(game, [k_means(own, 20) for own in equity])

  Args:
    game: poker in vector form, in which no public cards are dealt any more.
    labels: per player, an integer for each hand that the player may hold, in the order of `Board.hands`.

  Raises:
    UnsupportedGameError: the game is not in vector form, or public cards are dealt.
    ArgumentError: the labels are not integers, one for each hand.
  """
  _check_last_board(game)
  if len(labels) != len(game.treeplexes):
    raise errors.ArgumentError(f"labels must be of two players, not of {len(labels)}.")
  made = []
  for own, hands in zip(labels, game.layout.boards[0].hands, strict=True):
    array = np.asarray(own)
    if array.shape != hands.shape or array.dtype.kind not in "iu":
      raise errors.ArgumentError(
        f"labels must be {len(hands)} integers for a player, not {array.dtype} of shape {array.shape}."
      )
    made.append(np.unique(array, return_inverse=True)[1].astype(np.int64))
  return BucketedHands(game, (made[0], made[1]))


def hand_equities(game: PublicGame, player: int, clusters: npt.ArrayLike | None = None) -> Float64s:
  """Returns the equity of each of a player's hands, against the other's hands weighted by their reach.

  Args:
    game: poker in vector form, in which no public cards are dealt any more.
    player: whose hands.
    clusters: a label for each of the other's hands: then the equity against each cluster (OCHS); that against hands
      all of which share a card with one's own is 1/2.

  Returns:
    Shape (hands, 1), or (hands, clusters); hands in the order of `Board.hands`.

  Raises:
    UnsupportedGameError: the game is not in vector form, or public cards are dealt.
    ArgumentError: there is no such player, or there is not a label for each hand.
  """
  _check_last_board(game)
  player = arguments.integer(player, "player", 0, 1)
  board, deal = game.layout.boards[0], game.layout.deal
  others = board.hands[1 - player]
  which = np.zeros(len(others), np.int64) if clusters is None else np.asarray(clusters)
  if which.shape != others.shape or which.dtype.kind not in "iu":
    raise errors.ArgumentError(f"clusters must be {len(others)} integers, one for each hand.")
  which = np.unique(which, return_inverse=True)[1]
  pairs = hand_pairs(game.layout, 0, player)
  weight = pairs.apart * deal.reaches[1 - player][others]
  groups = np.eye(int(which.max(initial=0)) + 1)[which]
  mass = weight @ groups
  won = (weight * (1 + pairs.ahead) / 2) @ groups
  result: Float64s = np.divide(won, mass, out=np.full(mass.shape, 0.5), where=mass > 0)
  return result


def _check_last_board(game: CompiledGame) -> None:
  if not isinstance(game, PublicGame) or game.original is not game:
    raise errors.UnsupportedGameError(f"{game} is not what compile_public_game returns.")
  if len(game.layout.boards) > 1:
    raise errors.UnsupportedGameError(
      f"In {game} public cards are dealt; hands are put into buckets after the last of them. Begin at the river, or "
      "compile it with vector_form=False and call abstract."
    )
