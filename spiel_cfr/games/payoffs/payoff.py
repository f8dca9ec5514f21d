"""What a payoff is to solvers: a gradient.

With x_q the sequence-form strategy of player q, the expected utility of player p is multilinear, and its gradient in
x_p is, at each sequence s of p,

    u_p(s) = sum over leaves with sequence s of p:  payoff_p(leaf) * product over q != p of x_q(sequence of q)

where a leaf is one tuple of last sequences, and its payoff the sum over the histories that end with it of chance's
probability times the return. A solver needs nothing else of the game's histories.

Each form of payoffs is a class with its kernel, what builds it, its leaves and its bounds.
"""

import abc
import functools
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from spiel_cfr._numba.arrays import (
  COUNT,
  COUNT_TABLE,
  INDEX_TABLE,
  INDICES,
  LINE,
  AnyFloats,
  Bools,
  Float64s,
  Uint32s,
  Uint64s,
  floats,
  require,
  tuple_type,
  unpickled,
)
from spiel_cfr._numba.kernels import Kernel
from spiel_cfr.games.payoffs import utility_bounds
from spiel_cfr.games.sequence_form.treeplex import Treeplex


class PayoffArrays(NamedTuple):
  """What a form's kernel works on; what the arrays hold is the form's own business.

  Attributes:
    table: uint64 of shape (players, columns), or longer.
    rows: uint32, one-dimensional.
    others: uint32, two-dimensional.
    values: float64, one-dimensional; float32 where gradients are.
  """

  table: Uint64s
  rows: Uint32s
  others: Uint32s
  values: AnyFloats

  def __reduce__(self) -> tuple[Any, ...]:
    """Pickles as a call, see `arrays.unpickled`."""
    return unpickled, (PayoffArrays, *self)


def payoff_arrays_type(number: Any) -> Any:
  """Returns the numba type of a payoff's arrays in a precision."""
  return tuple_type(PayoffArrays, COUNT_TABLE, INDICES, INDEX_TABLE, floats(number))


def gradient_signature(number: Any) -> Any:
  """Returns the signature of gradients in a precision.

  (player, arrays, sequence_form, utility): writes the gradient of `player` into `utility` at all of that player's
  sequences, given everybody's sequence-form strategies; padding may become zero.
  """
  return types.void(COUNT, payoff_arrays_type(number), floats(number), floats(number))


class Payoff(abc.ABC):
  """The payoffs of all players.

  Attributes:
    form: the name of the form.
    gradient: its kernel, with the `gradient_signature`.
    arrays: what the kernel works on.
  """

  form: ClassVar[str]
  gradient: ClassVar[Kernel]

  def __init__(self, arrays: PayoffArrays) -> None:
    """Takes arrays that one of the form's builders has made."""
    self.arrays = arrays

  @abc.abstractmethod
  def leaves(self, player: int) -> tuple[Uint32s, Uint32s, Float64s]:
    """Lists the leaves where a player's payoff is not zero, for analysis rather than speed.

    Returns:
      The player's last sequence, shape (leaves,); those of the other players, from the next one on, shape
      (players - 1, leaves); and the payoffs weighted by chance, shape (leaves,).
    """

  def check(self, treeplexes: Sequence[Treeplex], real: Bools) -> None:
    """Checks everything in the arrays that the kernel relies on, as for arrays from a file.

    Args:
      treeplexes: one a player, checked.
      real: which sequences are not padding, shape (sequences,).

    Raises:
      ValueError: the arrays are not what this form's builder makes, or the form is one that no file has.
    """
    raise ValueError(f"{self.form} are not kept in files")

  @property
  def num_leaves(self) -> int:
    """How many tuples of last sequences have a payoff for player 0."""
    return int(self.arrays.table[0, -1])

  @property
  def num_bytes(self) -> int:
    """Memory of the arrays."""
    return sum(array.nbytes for array in self.arrays)

  @functools.cached_property
  def _single_arrays(self) -> PayoffArrays:
    return self.arrays._replace(values=self.arrays.values.astype(np.float32))

  def arrays_of(self, dtype: npt.DTypeLike) -> PayoffArrays:
    """Returns what `gradient.of(dtype)` works on."""
    return self.arrays if dtype == np.float64 else self._single_arrays

  def gradient_into(self, player: int, sequence_form: AnyFloats, utility: AnyFloats) -> None:
    """Writes the gradient of `player` into `utility`, both of shape (sequences,), at that player's sequences.

    It computes in the precision of these, float64 or, in a vector form, float32.
    """
    dtype = utility.dtype
    self.gradient.of(dtype)(np.uint64(player), self.arrays_of(dtype), sequence_form, utility)

  def counterfactual_bounds(self, treeplexes: Sequence[Treeplex], player: int) -> Float64s:
    """Bounds the counterfactual utility of each of a player's sequences, whatever anybody plays.

    Returns:
      Shape (end - root,), from the empty sequence on.
    """
    return utility_bounds.counterfactual_bounds(self.leaves(player), treeplexes, player)

  def infoset_bounds(self, treeplexes: Sequence[Treeplex], player: int) -> Float64s:
    """Bounds the counterfactual utilities of all actions at each of a player's infosets.

    Returns:
      Shape (infosets,), in layout order.
    """
    bounds = self.counterfactual_bounds(treeplexes, player)
    tree = treeplexes[player]
    result = np.zeros(tree.num_infosets)
    for sequences, infosets in tree.blocks():
      result[infosets] = bounds[sequences - tree.root].max(axis=0)
    return result

  def infoset_scales(self, treeplexes: Sequence[Treeplex], player: int) -> Float64s:
    """Returns, quickly, how large counterfactual utilities can be at each of a player's infosets, or more.

    That is the sum of all payoffs, taken as positive, that can follow: `infoset_bounds` takes the best of the others'
    actions, this the sum over them.

    Returns:
      Shape (infosets,), in layout order.
    """
    positive = self.arrays._replace(values=np.abs(self.arrays.values))
    totals = np.zeros(treeplexes[-1].end + LINE)
    self.gradient(np.uint64(player), positive, np.ones(len(totals)), totals)
    tree = treeplexes[player]
    result = np.zeros(tree.num_infosets)
    for sequences, infosets in reversed(list(tree.blocks())):
      result[infosets] = totals[sequences].max(axis=0)
      np.add.at(totals, tree.parent[infosets], result[infosets])
    return result

  def sensitivity(self, treeplexes: Sequence[Treeplex], player: int) -> float:
    """Bounds by how much the norm of a player's gradient changes when each other's sequence form moves by 1.

    Norms are Euclidean.
    """
    return utility_bounds.sensitivity(self.leaves(player))


def check_sequences(sequences: Uint32s, tree: Treeplex, real: Bools) -> None:
  """Raises ValueError unless all are sequences of a player's treeplex; `real` says which are not padding."""
  if len(sequences):
    require((sequences.min() >= tree.root, sequences.max() < tree.end), "leaves are in treeplexes")
    require(real[sequences], "leaves are not in padding")
