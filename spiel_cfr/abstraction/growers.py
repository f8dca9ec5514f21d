"""What grows: a smaller game that takes in actions, or splits buckets, where the whole game says that it matters.

Let C(ja) be what action a at infoset j is worth against the policy if its owner plays a best response below, and Z(j)
what j is worth to its owner, who plays the policy. In the whole game

    an action that was left out is worth      sum over the infosets of its unit of max(C(ja) - Z(j), 0),
    to split a bucket B is worth              sum over j in B of max_a C(ja)  -  max_a sum over j in B of C(ja).

If none of these is positive, no best response in the whole game gains anything that it can't gain in the smaller one
(by induction from the last infosets up), so the smaller one has solved the whole. Those that are worth most for each
payoff that they add come first, until they make up most of what all are worth.
"""

import abc
import itertools

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Int64s
from spiel_cfr.abstraction.abstract_game import AbstractGame
from spiel_cfr.abstraction.buckets import Buckets
from spiel_cfr.abstraction.fewer_actions import Choices, Spot
from spiel_cfr.abstraction.images import Images, nearest
from spiel_cfr.abstraction.translation import Translation
from spiel_cfr.evaluation.best_responses import take_best
from spiel_cfr.evaluation.identity import game_backward_pass, expect, gradients
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.openspiel.game_view import ActionFilter
from spiel_cfr.policies import forms

# Of the largest payoff.
_NOTHING = 1e-12
# Of all that growing is worth, how much is taken at once: less leads to smaller games in more time.
_SHARE = 0.8


class Grower(abc.ABC):
  """A whole game, and a smaller one that grows.

  Attributes:
    whole: the whole game.
    small: the smaller one.
  """

  whole: CompiledGame
  small: CompiledGame

  @abc.abstractmethod
  def in_whole(self, sequence_form: Float64s) -> Float64s:
    """Returns a sequence form, or a sum of them, of the smaller game as behavioural form of the whole game."""

  @abc.abstractmethod
  def in_small(self, probabilities: Float64s) -> Float64s:
    """Returns behavioural form of the whole game, in which the smaller game's is, as that of the smaller game."""

  @abc.abstractmethod
  def grow(self, probabilities: Float64s) -> bool:
    """Lets the smaller game grow where it matters to a policy of the whole game; returns whether it has grown."""

  def _best(self, gradient: Float64s) -> Float64s:
    """Returns C of each sequence."""
    result = gradient.copy()
    game_backward_pass(self.whole, take_best, result)
    return result

  @property
  def _nothing(self) -> float:
    """What is worth less is rounding."""
    return _NOTHING * max(map(abs, self.whole.payoff_range))

  def _chosen(self, worth: Float64s, payoffs: Float64s) -> Int64s:
    """Returns which of several ways to grow are taken."""
    candidates = np.flatnonzero(worth > self._nothing)
    rate = worth[candidates] / np.maximum(payoffs[candidates], 1.0)
    candidates = candidates[np.argsort(-rate, kind="stable")]
    taken = np.cumsum(worth[candidates])
    before = taken - worth[candidates]
    result: Int64s = candidates[before < _SHARE * taken[-1]] if len(taken) else candidates
    return result


class Whole(Grower):
  """A game from which nothing is missing."""

  def __init__(self, game: CompiledGame) -> None:
    """Begins and ends with the game."""
    self.whole = self.small = game

  def in_whole(self, sequence_form: Float64s) -> Float64s:
    """See the base class."""
    return forms.behavioral_form(self.whole, sequence_form)

  def in_small(self, probabilities: Float64s) -> Float64s:
    """See the base class."""
    return probabilities

  def grow(self, probabilities: Float64s) -> bool:
    """See the base class."""
    return False


class GrowingActions(Grower):
  """A game without some actions.

  While an action is left out, others answer it as they answer what it is taken for.
  """

  def __init__(
    self, choices: Choices, action_filter: ActionFilter | None, translate: Translation | None
  ) -> None:
    """Leaves out what the filter leaves out.

    Raises:
      ArgumentError: the filter keeps no action of the game at some infoset, or one that is not legal.
      AbstractionError: the translation takes an action for something that is not kept.
    """
    self.whole = choices.game
    self._choices = choices
    self._kept = np.zeros(choices.num_units, bool)
    narrows = self.whole.view.action_filter is not None
    for spot in choices.spots:
      kept = _kept(action_filter, spot, narrows)
      for action, unit in zip(spot.actions, spot.units, strict=True):
        # What is kept anywhere in a public state is kept everywhere there.
        self._kept[unit] |= action in kept
    self._build()
    self._answers = _Answers(choices, self._kept, self._there, translate)

  def _build(self) -> None:
    self.small, self._places = self._choices.smaller(self._kept)
    self._real = self._places >= 0
    # Which sequences are of infosets that are there, whether their own action is or not.
    self._there = np.zeros(self.whole.end, bool)
    self._there[self._places[self._real]] = True
    for tree in self.whole.treeplexes:
      for sequences, _ in tree.blocks():
        self._there[sequences] = self._there[sequences].any(axis=0)

  def in_whole(self, sequence_form: Float64s) -> Float64s:
    """See the base class."""
    entries = np.zeros(self.whole.end)
    own = forms.behavioral_form(self.small, sequence_form)
    entries[self._places[self._real]] = own[self._real]
    return forms.behavioral_form(self.whole, np.where(self._there, entries, self._answers(entries)))

  def in_small(self, probabilities: Float64s) -> Float64s:
    """See the base class."""
    entries = np.zeros(self.small.end)
    entries[self._real] = probabilities[self._places[self._real]]
    return forms.behavioral_form(self.small, entries)

  def grow(self, probabilities: Float64s) -> bool:
    """See the base class."""
    if self._kept.all():
      return False
    gradient = gradients(self.whole, forms.sequence_form(self.whole, probabilities))
    best = self._best(gradient)
    game_backward_pass(self.whole, expect, gradient, strategy=probabilities)
    worth = np.zeros(self._choices.num_units)
    kept = self._choices.kept_sequences(self._kept)
    for tree in self.whole.treeplexes:
      for sequences, _ in tree.blocks():
        value = (probabilities[sequences] * gradient[sequences]).sum(axis=0)
        # At infosets that are there, of actions that are not.
        counts = self._there[sequences] & ~kept[sequences]
        gains = np.where(counts, np.maximum(best[sequences] - value, 0.0), 0.0)
        worth += np.bincount(
          self._choices.unit[sequences].ravel(), gains.ravel(), self._choices.num_units
        )
    payoffs = self._choices.new_payoffs(self._kept).astype(np.float64)
    chosen = self._chosen(worth, payoffs)
    if len(chosen):
      self._kept[chosen] = True
      self._build()
    return bool(len(chosen))


class _Answers:
  """What is played where only actions lead that were left out: the same as at the infoset that they are taken for.

  That is found once, among what is there at the beginning, which is there for ever.
  """

  def __init__(
    self,
    choices: Choices,
    kept: Bools,
    there: Bools,
    translate: Translation | None,
  ) -> None:
    self._end = choices.game.end
    places: list[Int64s] = [np.zeros(0, np.int64)]
    sources: list[Int64s] = [np.zeros(0, np.int64)]
    images = Images(choices, kept, translate)
    rows: dict[tuple[tuple[int, ...], tuple[int, ...]], list[int]] = {}
    first = np.array([spot.sequences[0, 0] for spot in choices.spots])
    for spot in itertools.compress(choices.spots, ~there[first]):
      found = images.find(spot)
      image = None if found is None else choices.spots[found]
      if image is None or image.player != spot.player:
        continue
      if image.sequences.shape[1] != spot.sequences.shape[1] or not there[image.sequences[0, 0]]:
        continue
      pair = tuple(image.actions), tuple(spot.actions)
      if pair not in rows:
        rows[pair] = [spot.actions.index(nearest(action, spot.actions)) for action in image.actions]
      places.append(spot.sequences[rows[pair]].ravel())
      sources.append(image.sequences.ravel())
    self._places, self._sources = np.concatenate(places), np.concatenate(sources)

  def __call__(self, entries: Float64s) -> Float64s:
    """Returns sums in behavioural form of what is played where nothing is known; 0 where it is taken for nothing."""
    return np.bincount(self._places, entries[self._sources], self._end).astype(np.float64)


def _kept(action_filter: ActionFilter | None, spot: Spot, narrows: bool) -> list[int]:
  """Asks a filter, which expects all legal actions, also where the whole game has fewer."""
  if action_filter is None:
    return spot.actions
  every = spot.state.legal_actions() if narrows else spot.actions
  kept = list(action_filter(spot.state, list(every)))
  here = [action for action in spot.actions if action in kept]
  if not here:
    raise errors.ArgumentError(
      f"After the history [{spot.state.history_str()}] the action filter keeps {kept}, none of the game's "
      f"{spot.actions}."
    )
  return here


class GrowingBuckets(Grower):
  """A game in which infosets of a bucket play alike.

  Where all players remember how they came to a bucket, they go on doing so: what is below a bucket splits with it.
  Where they forget, they do so until nothing that splits is worth anything, and remember from then on.
  """

  small: AbstractGame

  def __init__(self, game: CompiledGame, buckets: Buckets) -> None:
    """Begins with these buckets.

    Raises:
      ImperfectRecallError: see `abstract`, like the next.
      UnsupportedGameError: likewise.
    """
    self.whole = game
    self._buckets = buckets
    self.small = AbstractGame(game, buckets)
    self._forgets = self.small.shared_infosets is not None
    self._payoffs = _payoffs_below(game)

  def _become(self, buckets: Buckets) -> None:
    self.small = AbstractGame(self.whole, buckets)
    if not self._forgets and self.small.shared_infosets is not None:
      self.small = AbstractGame(self.whole, self.small.refined_buckets())
    self._buckets = self.small.buckets

  def in_whole(self, sequence_form: Float64s) -> Float64s:
    """See the base class."""
    return forms.behavioral_form(self.whole, self.small.to_original(sequence_form))

  def in_small(self, probabilities: Float64s) -> Float64s:
    """See the base class."""
    return forms.behavioral_form(
      self.small, self.small.from_actions(self.whole.to_actions(probabilities))
    )

  def grow(self, probabilities: Float64s) -> bool:
    """See the base class."""
    best = self._best(gradients(self.whole, forms.sequence_form(self.whole, probabilities)))
    labels, worths, payoffs = [], [], []
    begin = 0
    for own, old, slots in zip(
      self.whole.infosets, self._buckets.labels, self._buckets.slots, strict=True
    ):
      cells = self.whole.all_action_sequences[begin : begin + len(own.actions)]
      begin += len(cells)
      infoset = np.repeat(np.arange(len(old)), own.num_actions)
      table = np.full((len(old), 1 + int(slots.max(initial=0))), -np.inf)
      np.maximum.at(table, (infoset, slots), best[cells])
      below = np.bincount(infoset, self._payoffs[cells], len(old))
      count = 1 + int(old.max(initial=-1))
      together = np.zeros((count, table.shape[1]))
      np.add.at(together, old, table)
      # An infoset goes on with its bucket where it loses nothing by that, or else with those that want the same.
      leader = together.argmax(axis=1)[old] if count else old
      rows = np.arange(len(old))
      losing = table.max(axis=1, initial=-np.inf) - table[rows, leader]
      wanted = np.where(losing > self._nothing, table.argmax(axis=1), leader)
      worth = np.bincount(old, np.maximum(losing, 0.0), count)
      pairs, split = np.unique(old * table.shape[1] + wanted, return_inverse=True)
      pieces = np.bincount(pairs // table.shape[1], minlength=count) - 1.0
      members = np.maximum(np.bincount(old, minlength=count), 1)
      labels.append(split.reshape(-1))
      worths.append(worth)
      payoffs.append(np.bincount(old, below, count) / members * pieces)
    chosen = self._chosen(np.concatenate(worths), np.concatenate(payoffs))
    if not len(chosen):
      if not self._forgets:
        return False
      self._forgets = False
      self._become(self._buckets)
      return True
    first, made = 0, []
    for old, split, worth in zip(self._buckets.labels, labels, worths, strict=True):
      splits = np.zeros(len(worth), bool)
      splits[chosen[(chosen >= first) & (chosen < first + len(worth))] - first] = True
      first += len(worth)
      new = np.where(splits[old], len(worth) + split, old) if len(old) else old
      made.append(np.unique(new, return_inverse=True)[1].reshape(-1).astype(np.int64))
    self._become(Buckets(tuple(made), self._buckets.slots, self._buckets.is_lossless))
    return True


def _payoffs_below(game: CompiledGame) -> Float64s:
  """Counts the payoffs at and below each sequence, shape (sequences,)."""
  result = np.zeros(game.end)
  for player, tree in enumerate(game.treeplexes):
    own, _, _ = game.payoff.leaves(player)
    np.add.at(result, own.astype(np.int64), 1.0)
    for sequences, infosets in reversed(list(tree.blocks())):
      np.add.at(result, tree.parent[infosets], result[sequences].sum(axis=0))
  return result
