"""`Payoff`, the interface of payoff forms, which compute the gradient of a player's expected utility.

With x_q the sequence-form strategy of player q, the expected utility of player p is multilinear. Its gradient in x_p
is, at each sequence s of p,

    u_p(s) = sum over leaves with sequence s of p:  payoff_p(leaf) * product over q != p of x_q(sequence of q)

A leaf is a tuple of last sequences, one for each player. Its payoff is the sum, over the terminal histories with these
sequences, of chance's probability times the return. Solvers in sequence form need no other data on histories.
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

# `PayoffArrays.players` of forms without runs.
NO_PLAYERS = np.zeros((0, column.OF_PLAYERS), np.uint64)


class PayoffArrays(NamedTuple):
  """The arrays that a gradient kernel reads. Their meaning depends on the form of payoffs.

  In leaf rows and typed patterns, a *row* is one sequence of a player, or up to `LANES` neighboring ones, with a list
  of *terms*. The utility of a row is the sum of its terms. A *run* is a range of consecutive rows with equally long
  lists. Terms are stored run by run, and runs player by player:

      players   player p -> its runs, from FIRST_RUN to END_RUN
      runs      run      -> its rows, from FIRST_ROW to END_ROW, and their terms: LENGTH a row, from FIRST_TERM on
      rows      row      -> its first sequence
      others    term     -> sequences of the other players
      values    term     -> the number that the other players' probabilities are multiplied by

  The meaning of the other columns and arrays:

  - leaf rows: a term is a leaf. `runs` has the column SIDE_BY_SIDE, `others` has shape (players - 1, terms).
  - typed patterns: a term is a multiple of a small matrix. `runs` has the columns TYPES and WIDTH; for `others`,
    `patterns` and `squares` see `TypedPatterns`.
  - poker terminals: a table of boards and one of terminals, see `PokerTerminals`.
  - rectangles: `values` only, the payoff of each pair of rows, see `Rectangles`.

  `payoff_columns` has the names of the columns. A new form may give the arrays any meaning that fits their types.

  Attributes:
    players: uint64 (players, columns). One line for each player.
    runs: uint64 (runs, columns). One line for each run.
    rows: uint32 (rows,). The first sequence of each row.
    others: uint32, two-dimensional. The other players' sequences at each term.
    values: float64 or float32 (terms,). The payoff or factor of each term.
    patterns: float64 or float32 (elements,). The matrices of typed patterns.
    squares: uint32 (elements,). The squares of each pattern, for three players or more.
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
    player: int. The player.
    arrays: PayoffArrays. The payoffs.
    sequence_form: float array (sequences,). The other players' sequence forms.
    utility: float array (sequences,). The gradient, which the kernel writes; padding may become 0.
  """

  player: Count
  arrays: PayoffArrays
  sequence_form: Line
  utility: Line


def gradient_kernel(function: Any) -> StepKernel:
  """Decorator that compiles a function of a `Gradient`, for float64 and for float32."""
  return StepKernel(function, Gradient)


class Payoff(abc.ABC):
  """The payoffs of all players.

  A form of payoffs is a subclass with `form`, `gradient` and `leaves`. Bounds and scales are computed from the leaves;
  a form may compute them faster.

  Attributes:
    form: str. The name of the form.
    gradient: StepKernel. The kernel that computes gradients, made by `gradient_kernel`.
    arrays: PayoffArrays. The arrays of that kernel.
  """

  form: ClassVar[str]
  gradient: StepKernel

  def __init__(self, arrays: PayoffArrays) -> None:
    """Takes the arrays that a builder of the form makes."""
    self.arrays = arrays

  @abc.abstractmethod
  def leaves(self, player: int) -> Leaves:
    """Lists the leaves where a player's payoff is not zero, sorted by its sequence; for analysis, not for speed."""

  def saved(self) -> files.Arrays:
    """Returns the arrays of the payoffs for a file, for forms that are saved."""
    raise NotImplementedError(f"{self.form} are not kept in files")

  @classmethod
  def restored(cls, arrays: Mapping[str, Any], treeplexes: Sequence[Treeplex]) -> Self:
    """Returns the payoffs, bit for bit, from the `saved` arrays of a file. Kernels do not check indices.

    Raises:
      KeyError: an array is missing.
      ValueError: an array is not one that `saved` returns for such treeplexes.
    """
    raise NotImplementedError(f"{cls.form} are not kept in files")

  @property
  def num_leaves(self) -> int:
    """Number of leaves with a payoff for player 0."""
    return len(self.leaves(0).values)

  @property
  def num_bytes(self) -> int:
    """Memory of the arrays, in bytes."""
    return sum(array.nbytes for array in self.arrays)

  @functools.cached_property
  def _single_arrays(self) -> PayoffArrays:
    values, patterns = self.arrays.values, self.arrays.patterns
    return self.arrays._replace(
      values=values.astype(np.float32), patterns=patterns.astype(np.float32)
    )

  def arrays_of(self, dtype: npt.DTypeLike) -> PayoffArrays:
    """Returns the arrays that `gradient.of(dtype)` reads."""
    return self.arrays if dtype == np.float64 else self._single_arrays

  def gradient_step(
    self,
    player: int,
    sequence_form: AnyFloats,
    utility: AnyFloats,
    arrays: PayoffArrays | None = None,
  ) -> Step:
    """Returns the step that computes a `Gradient`, in the precision of `utility`.

    `arrays` replaces the payoff's own arrays.
    """
    dtype = utility.dtype
    arrays = self.arrays_of(dtype) if arrays is None else arrays
    return self.gradient.on(Gradient(player, arrays, sequence_form, utility), dtype)

  def gradient_into(self, player: int, sequence_form: AnyFloats, utility: AnyFloats) -> None:
    """Computes the gradient of `player` at once; see `gradient_step`."""
    Chain([self.gradient_step(player, sequence_form, utility)]).run()

  def infoset_bounds(self, treeplexes: Sequence[Treeplex], player: int) -> Float64s:
    """Returns an upper bound on the absolute counterfactual utilities at each of a player's infosets.

    Returns:
      float64 (infosets,), in layout order.
    """
    bounds = utility_bounds.counterfactual_bounds(self.leaves(player), treeplexes, player)
    tree = treeplexes[player]
    result = np.zeros(tree.num_infosets)
    for sequences, infosets in tree.infoset_groups():
      result[infosets] = bounds[sequences - tree.root].max(axis=0)
    return result

  def infoset_scales(self, treeplexes: Sequence[Treeplex], player: int) -> Float64s:
    """Returns a looser bound than `infoset_bounds` that takes only one gradient and one backward pass.

    It is the sum of the absolute payoffs over all leaves after the infoset and all actions of the other players.
    `infoset_bounds` takes the largest over the other players' actions instead of the sum.

    Returns:
      float64 (infosets,), in layout order.
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
    """Bounds the change of a player's gradient when each other player's sequence form moves by 1.

    Norms are Euclidean.
    """
    return utility_bounds.sensitivity(self.leaves(player))


def rows_of(arrays: PayoffArrays, player: int) -> tuple[Int64s, Int64s, int]:
  """Returns a player's rows.

  Returns:
    int64 (rows,), the first sequence of each row; int64 (rows,), the number of terms of each row; and the first term
    of the first row.
  """
  first, end = arrays.players[player, [column.FIRST_RUN, column.END_RUN]].tolist()
  runs = arrays.runs[first:end].astype(np.int64)
  if not len(runs):
    return np.zeros(0, np.int64), np.zeros(0, np.int64), 0
  lengths = np.repeat(runs[:, column.LENGTH], runs[:, column.END_ROW] - runs[:, column.FIRST_ROW])
  rows = arrays.rows[runs[0, column.FIRST_ROW] : runs[-1, column.END_ROW]].astype(np.int64)
  return rows, lengths, int(runs[0, column.FIRST_TERM])
