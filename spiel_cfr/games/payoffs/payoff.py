"""What a payoff is to solvers: a gradient.

With x_q the sequence-form strategy of player q, the expected utility of player p is multilinear, and its gradient in
x_p is, at each sequence s of p,

    u_p(s) = sum over leaves with sequence s of p:  payoff_p(leaf) * product over q != p of x_q(sequence of q)

where a leaf is one tuple of last sequences, and its payoff the sum over the histories that end with it of chance's
probability times the return. A solver needs nothing else of the game's histories.
"""

import abc
import functools
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from spiel_cfr._numba.arrays import LINE, AnyFloats, Float64s, Int64s, unpickled
from spiel_cfr._numba.records import Count, CountTable, IndexTable, Indices, Line
from spiel_cfr._numba.steps import Chain, Step, StepKernel
from spiel_cfr._util import files
from spiel_cfr.games.payoffs import payoff_columns as column
from spiel_cfr.games.payoffs import utility_bounds
from spiel_cfr.games.payoffs.utility_bounds import Leaves
from spiel_cfr.games.sequence_form.treeplex import Treeplex

# For forms that keep these in a place of their own.
NO_PLAYERS = np.zeros((0, column.OF_PLAYERS), np.uint64)


class PayoffArrays(NamedTuple):
  """What a form's kernel works on.

  A row is a sequence of a player, or several next to each other, with a list of entries whose sum is its utility. Rows
  with equally long lists that are computed one after the other are a run. The entries of a run are end to end, and so
  are those of all runs, the runs of a player, and the players.

  Attributes:
    players: uint64 of shape (players, columns), see `payoff_columns`: `ROOT` and `END` of the player's treeplex,
      `FIRST_RUN` and `END_RUN` of its runs, and `LEAVES`, how many leaves have a payoff for it.
    runs: uint64 of shape (runs, columns): `FIRST_ROW`, `END_ROW`, `FIRST_ENTRY`, `LENGTH` (entries of each row), and
      what a form adds. In vector form, see `poker.hand_payoff`.
    rows: uint32 of shape (rows,): the first sequence of each row.
    others: uint32, two-dimensional: the other players' sequences of each entry.
    values: float64, float32 where gradients are, of shape (entries,): the payoff or the factor of each entry.
    patterns: float64, float32 where gradients are: see `typed_patterns`.
    squares: uint32: see `typed_patterns`.
  """

  players: CountTable
  runs: CountTable
  rows: Indices
  others: IndexTable
  values: Line
  patterns: Line = np.zeros(0)
  squares: Indices = np.zeros(0, np.uint32)

  def __reduce__(self) -> tuple[Any, ...]:
    return unpickled, (PayoffArrays, *self)


class Gradient(NamedTuple):
  """The arguments of a gradient kernel, which writes a player's gradient at all of its sequences.

  Attributes:
    player: the player.
    arrays: the payoffs.
    sequence_form: shape (sequences,). The strategies of the other players.
    utility: shape (sequences,). The gradient; padding may become 0.
  """

  player: Count
  arrays: PayoffArrays
  sequence_form: Line
  utility: Line


class Payoff(abc.ABC):
  """The payoffs of all players.

  Attributes:
    form: the name of the form.
    gradient: the kernel that computes gradients, of a `Gradient`.
    arrays: the arrays of that kernel.
  """

  form: ClassVar[str]
  gradient: StepKernel

  def __init__(self, arrays: PayoffArrays) -> None:
    """Takes arrays that one of the form's builders has made."""
    self.arrays = arrays

  @abc.abstractmethod
  def leaves(self, player: int) -> Leaves:
    """Lists the leaves where a player's payoff is not zero, by the player's sequence; for analysis, not for speed."""

  def saved(self) -> files.Arrays:
    """Returns what a file keeps of the payoffs, in forms of which there are files."""
    raise NotImplementedError(f"{self.form} are not kept in files")

  @classmethod
  def restored(cls, arrays: Mapping[str, Any], treeplexes: Sequence[Treeplex]) -> Self:
    """Returns the payoffs, with the same bits, of which a file has `saved` arrays.

    Raises:
      KeyError: an array is missing.
      ValueError: an array is not what `saved` returns for such treeplexes; kernels take every index on trust.
    """
    raise NotImplementedError(f"{cls.form} are not kept in files")

  @property
  def num_leaves(self) -> int:
    """How many tuples of last sequences have a payoff for player 0."""
    return int(self.arrays.players[0, column.LEAVES])

  @property
  def num_bytes(self) -> int:
    """Memory of the arrays."""
    return sum(array.nbytes for array in self.arrays)

  @functools.cached_property
  def _single_arrays(self) -> PayoffArrays:
    values, patterns = self.arrays.values, self.arrays.patterns
    return self.arrays._replace(
      values=values.astype(np.float32), patterns=patterns.astype(np.float32)
    )

  def arrays_of(self, dtype: npt.DTypeLike) -> PayoffArrays:
    """Returns what `gradient.of(dtype)` works on."""
    return self.arrays if dtype == np.float64 else self._single_arrays

  def gradient_step(
    self,
    player: int,
    sequence_form: AnyFloats,
    utility: AnyFloats,
    arrays: PayoffArrays | None = None,
  ) -> Step:
    """Returns the step that computes a gradient, see `Gradient`, in the precision of `utility`.

    `arrays` stand in for the payoff's own.
    """
    dtype = utility.dtype
    arrays = self.arrays_of(dtype) if arrays is None else arrays
    return self.gradient.on(Gradient(player, arrays, sequence_form, utility), dtype)

  def gradient_into(self, player: int, sequence_form: AnyFloats, utility: AnyFloats) -> None:
    """Computes the gradient of `player` now: see `gradient_step`."""
    Chain([self.gradient_step(player, sequence_form, utility)]).run()

  def infoset_bounds(self, treeplexes: Sequence[Treeplex], player: int) -> Float64s:
    """Bounds the counterfactual utilities of all actions at each of a player's infosets.

    Returns:
      Shape (infosets,), in layout order.
    """
    bounds = utility_bounds.counterfactual_bounds(self.leaves(player), treeplexes, player)
    tree = treeplexes[player]
    result = np.zeros(tree.num_infosets)
    for sequences, infosets in tree.infoset_groups():
      result[infosets] = bounds[sequences - tree.root].max(axis=0)
    return result

  def infoset_scales(self, treeplexes: Sequence[Treeplex], player: int) -> Float64s:
    """Returns, quickly, how large counterfactual utilities can be at each of a player's infosets, or more.

    That is the sum of all payoffs, taken as positive, that can follow: `infoset_bounds` takes the best of the others'
    actions, this the sum over them.

    Returns:
      Shape (infosets,), in layout order.
    """
    arrays = self.arrays
    positive = arrays._replace(values=np.abs(arrays.values), patterns=np.abs(arrays.patterns))
    totals = np.zeros(treeplexes[-1].end + LINE)
    Chain([self.gradient_step(player, np.ones(len(totals)), totals, positive)]).run()
    tree = treeplexes[player]
    result = np.zeros(tree.num_infosets)
    for sequences, infosets in reversed(list(tree.infoset_groups())):
      result[infosets] = totals[sequences].max(axis=0)
      np.add.at(totals, tree.parent[infosets], result[infosets])
    return result

  def sensitivity(self, treeplexes: Sequence[Treeplex], player: int) -> float:
    """Bounds by how much the norm of a player's gradient changes when each other's sequence form moves by 1.

    Norms are Euclidean.
    """
    return utility_bounds.sensitivity(self.leaves(player))


def rows_of(arrays: PayoffArrays, player: int) -> tuple[Int64s, Int64s, int]:
  """Returns a player's rows: the first sequence of each, how many entries it has, and the first entry of all."""
  first, end = arrays.players[player, [column.FIRST_RUN, column.END_RUN]].tolist()
  runs = arrays.runs[first:end].astype(np.int64)
  if not len(runs):
    return np.zeros(0, np.int64), np.zeros(0, np.int64), 0
  lengths = np.repeat(runs[:, column.LENGTH], runs[:, column.END_ROW] - runs[:, column.FIRST_ROW])
  rows = arrays.rows[runs[0, column.FIRST_ROW] : runs[-1, column.END_ROW]].astype(np.int64)
  return rows, lengths, int(runs[0, column.FIRST_ENTRY])
