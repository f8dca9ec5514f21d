"""Small games, one for each form in which solvers meet a game."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import executors
import numpy as np
import poker_games
import pyspiel
import random_games

import spiel_cfr
from spiel_cfr.abstraction import buckets
from spiel_cfr.abstraction.lossless_symmetries import lossless_buckets
from spiel_cfr.games.sequence_form.treeplex import COUNT, DEPTH

# Four cards of one suit, one bet per round, one public card: the smallest poker with a trunk and subtrees.
_POKER = (
  "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=1 2,firstPlayer=1 1,numSuits=1,"
  "numRanks=4,numHoleCards=1,numBoardCards=0 1,raiseSize=2 2,maxRaises=1 1)"
)


def never_fold_early(state: Any, actions: Sequence[int]) -> list[int]:
  """Action filter: a player who may raise does not fold."""
  return list(actions[-2:])


_listed = functools.partial(spiel_cfr.compile_game, vector_form=False)
_public = functools.partial(spiel_cfr.poker.compile_public_game, partitioned=False)
_public_in_parts = functools.partial(spiel_cfr.poker.compile_public_game, partitioned=True)
_merged_in_parts = functools.partial(_public_in_parts, merge_suits=True)


@dataclasses.dataclass(frozen=True)
class Form:
  """A form of game, and a game of that form.

  Attributes:
    name: the form's name.
    game: the game in words.
    load: loads the game.
    compile: returns the compiled game, given the game and the action filter. `_listed` lists histories; other functions
      compile to vector form or to private moves form.
    action_filter: returns the actions that the game keeps; None for all.
    payoff: the required `CompiledGame.payoff.form`.
    tolerance: largest difference from the enumerated game, as a fraction of the range of payoffs.
    buckets: returns the buckets of an abstraction of the compiled game; None without abstraction.
    is_large: whether the cells take so long that not all are checked every time.
    num_shards: number of processes that share the subtrees; 0 for none.
  """

  name: str
  game: str
  load: Callable[[], pyspiel.Game]
  compile: Callable[..., spiel_cfr.CompiledGame] = _listed
  action_filter: Callable[[Any, Sequence[int]], list[int]] | None = None
  payoff: str | None = None
  tolerance: float = 1e-9
  buckets: (
    Callable[[Any], spiel_cfr.abstraction.Buckets | spiel_cfr.abstraction.HandBuckets] | None
  ) = None
  is_large: bool = False
  num_shards: int = 0

  def __str__(self) -> str:
    return self.name

  def __hash__(self) -> int:
    return hash(self.name)

  @property
  def forgets(self) -> bool:
    """Whether the game is an abstraction with imperfect recall."""
    return self.buckets is _forgetful

  @property
  def loses(self) -> bool:
    """Whether the game is an abstraction with fewer strategies than the full game."""
    return self.buckets in (_forgetful, _some_hands)

  @property
  def is_abstraction(self) -> bool:
    """True for an abstraction: a game in which infosets of the full game are merged."""
    return self.buckets is not None or self.compile is _merged_in_parts

  @property
  def is_vector(self) -> bool:
    """Whether the form does not list histories."""
    return self.compile is not _listed

  @property
  def is_whole_in_float64(self) -> bool:
    """Whether solvers take the game as a whole, in float64."""
    return self.compiled.partition is None and self.compiled.dtype == np.float64

  @functools.cached_property
  def open_spiel_game(self) -> Any:
    """The solved game, in a form that OpenSpiel's Python algorithms can walk."""
    if hasattr(self.compiled, "view"):
      return self.compiled.view.open_spiel_game()
    if self.action_filter is None:
      return self.compiled.game
    return poker_games.WalkableGame(self.compiled.game, self.action_filter)

  @functools.cached_property
  def compiled(self) -> spiel_cfr.CompiledGame:
    """The game in this form."""
    result = self._full
    if self.buckets is not None:
      result = spiel_cfr.abstraction.abstract(result, self.buckets(result))
    if self.num_shards:
      result = spiel_cfr.games.shard(result, executors.Here(), self.num_shards)
    assert self.payoff in (None, result.payoff.form)
    return result

  @functools.cached_property
  def _full(self) -> spiel_cfr.CompiledGame:
    """The game in this form, without buckets and shards."""
    return self.compile(self.load(), action_filter=self.action_filter)

  @functools.cached_property
  def enumerated(self) -> spiel_cfr.CompiledGame:
    """The game with all its histories listed."""
    return _listed(self.load(), action_filter=self.action_filter) if self.is_vector else self._full

  @property
  def scale(self) -> float:
    """The range of payoffs, at least 1."""
    low, high = self.enumerated.payoff_range
    return max(1.0, high - low)


def _endgame() -> pyspiel.Game:
  return poker_games.random_endgame(1, 3, poker_games.TURN).load()


def _dice() -> pyspiel.Game:
  return pyspiel.load_game("liars_dice(dice_sides=3)")


def _hex() -> pyspiel.Game:
  return pyspiel.load_game("dark_hex(num_rows=2,num_cols=2,gameversion=adh)")


def _poker() -> pyspiel.Game:
  return pyspiel.load_game(_POKER)


def _suits() -> pyspiel.Game:
  """Four cards of two suits, one bet per round, one public card."""
  return pyspiel.load_game(_POKER.replace("numSuits=1,numRanks=4", "numSuits=2,numRanks=2"))


def _forgetful(game: spiel_cfr.CompiledGame) -> spiel_cfr.abstraction.Buckets:
  """Imperfect recall: players know only their legal actions and the number of their past actions."""
  labels = []
  for tree, own in zip(game.treeplexes, game.infosets, strict=True):
    groups = tree.groups.astype(np.int64)
    depths = np.repeat(groups[:, DEPTH], groups[:, COUNT])[own.position].tolist()
    actions = np.split(own.actions, np.cumsum(own.num_actions)[:-1])
    known: dict[tuple[int, ...], int] = {}
    keys = [(depth, *legal.tolist()) for depth, legal in zip(depths, actions, strict=True)]
    labels.append(np.array([known.setdefault(key, len(known)) for key in keys]))
  return dataclasses.replace(buckets.identity(game), labels=tuple(labels), is_lossless=False)


def _some_hands(game: spiel_cfr.poker.PublicGame) -> spiel_cfr.abstraction.HandBuckets:
  """Two buckets on every board: even hands and odd hands."""
  labels = [
    [np.arange(len(board.hands[player])) % 2 for board in game.tree.boards] for player in (0, 1)
  ]
  return spiel_cfr.abstraction.hand_buckets(game, labels)


_DICE = "liar's dice, 1 die of 3 sides"
_FOUR_CARDS = "poker of four cards, one of them public"
FORMS = (
  Form(
    "leaf rows",
    "random, zero-sum, several first infosets per player, up to 4 actions",
    lambda: random_games.random_game(2, max_histories=100),
    payoff="leaf rows",
  ),
  Form(
    "typed patterns",
    _DICE,
    _dice,
    payoff="typed patterns",
  ),
  Form(
    "action filter",
    f"{_FOUR_CARDS}; a player who may raise does not fold",
    _poker,
    action_filter=never_fold_early,
  ),
  Form(
    "three players",
    "random, zero-sum",
    lambda: random_games.random_game(1, num_players=3, max_histories=100),
  ),
  Form(
    "general-sum",
    "random",
    lambda: random_games.random_game(3, zero_sum=False, max_histories=100),
  ),
  Form(
    "symmetries",
    "poker of four cards of two suits, one of them public, without suits",
    _suits,
    buckets=lossless_buckets,
  ),
  Form(
    "imperfect recall",
    "poker of four cards of two suits; players know only their legal actions and the number of their past actions",
    _suits,
    buckets=_forgetful,
  ),
  Form("vector form", _FOUR_CARDS, _poker, _public),
  Form("parts, 1 thread", _FOUR_CARDS, _poker, _public_in_parts),
  Form(
    "parts, 2 threads",
    _FOUR_CARDS,
    _poker,
    functools.partial(_public_in_parts, num_threads=2),
  ),
  Form(
    "parts, symmetries",
    "poker of four cards of two suits, one of them public, without suits",
    _suits,
    _merged_in_parts,
    is_large=True,
  ),
  Form(
    "vector form, buckets",
    f"{_FOUR_CARDS}; two buckets of hands",
    _poker,
    _public,
    buckets=_some_hands,
    is_large=True,
  ),
  Form("shards", _FOUR_CARDS, _poker, _public_in_parts, is_large=True, num_shards=2),
  Form(
    "vector form, float32",
    _FOUR_CARDS,
    _poker,
    functools.partial(_public, dtype="float32"),
    tolerance=1e-5,
  ),
  Form(
    "parts, float32",
    _FOUR_CARDS,
    _poker,
    functools.partial(_public_in_parts, dtype="float32"),
    tolerance=1e-5,
  ),
  Form(
    "public tree",
    _DICE,
    _dice,
    functools.partial(spiel_cfr.games.compile_vector_game, partitioned=False),
    payoff="typed patterns",
  ),
  Form(
    "public tree, parts, float32",
    _DICE,
    _dice,
    functools.partial(
      spiel_cfr.games.compile_vector_game, partitioned=True, dtype="float32", num_threads=2
    ),
    tolerance=1e-5,
  ),
  Form(
    "private moves",
    "abrupt dark hex, 2x2 cells",
    _hex,
    spiel_cfr.games.compile_private_moves_game,
    payoff="rectangles",
  ),
  Form(
    "parts, endgame",
    "turn endgame of 3 hands a side, with an action filter",
    _endgame,
    functools.partial(_public_in_parts, num_threads=2),
    poker_games.check_or_pot,
    is_large=True,
  ),
)
