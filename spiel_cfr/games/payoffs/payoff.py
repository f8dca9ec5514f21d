"""`Payoff`, the interface of payoff forms, which compute the gradient of a player's expected utility.

With x_q the sequence-form strategy of player q, the expected utility of player p is multilinear. Its gradient in x_p
is, at each sequence s of p,

    u_p(s) = sum over leaves with sequence s of p:  payoff_p(leaf) * product over q != p of x_q(sequence of q)

A leaf is a tuple of last sequences, one for each player. Its payoff is the sum, over the terminal histories with these
sequences, of chance's probability times the return. Solvers in sequence form need no other data on histories.
"""

import abc
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from spiel_cfr._numba.arrays import LINE, AnyFloats, Float64s
from spiel_cfr._numba.steps import Chain, Step
from spiel_cfr._util import files
from spiel_cfr.games.payoffs import utility_bounds
from spiel_cfr.games.payoffs.utility_bounds import Leaves
from spiel_cfr.games.sequence_form.treeplex import Treeplex


class Payoff(abc.ABC):
  """The payoffs of all players.

  A form of payoffs is a subclass with `form`, `gradient_step` and `leaves`. Bounds and scales are computed from the
  leaves; a form may compute them faster.

  Attributes:
    form: str. The name of the form.
    arrays: tuple of arrays. The payoffs, as the kernel of the form reads them.
  """

  form: ClassVar[str]
  arrays: tuple[Any, ...]

  def __init__(self, arrays: tuple[Any, ...]) -> None:
    """Takes the arrays that a builder of the form makes."""
    self.arrays = arrays

  @abc.abstractmethod
  def gradient_step(self, player: int, sequence_form: AnyFloats, utility: AnyFloats) -> Step:
    """Returns the step that computes a player's gradient, in the precision of `utility`.

    Args:
      player: the player.
      sequence_form: shape (sequences,). The other players' sequence forms.
      utility: shape (sequences,). The step writes the gradient to all of the player's sequences. Their padding may
        become 0.

    Raises:
      TypeError: `utility` is float32, and the form has float64 only.
    """

  @abc.abstractmethod
  def leaves(self, player: int) -> Leaves:
    """Lists the leaves where a player's payoff is not zero, sorted by its sequence; for analysis, not for speed."""

  @property
  def num_leaves(self) -> int:
    """Number of leaves with a payoff for player 0."""
    return len(self.leaves(0).values)

  @property
  def num_bytes(self) -> int:
    """Memory of the arrays, in bytes."""
    return sum(array.nbytes for array in self.arrays)

  def saved(self) -> files.Arrays:
    """Returns the arrays that identify the payoffs, for files and digests: by default, `arrays`."""
    return {str(number): array for number, array in enumerate(self.arrays)}

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
    """Returns bounds like `infoset_bounds` that may be looser and are faster to compute; see `summed_scales`."""
    return self.infoset_bounds(treeplexes, player)

  def sensitivity(self, treeplexes: Sequence[Treeplex], player: int) -> float:
    """Bounds the change of a player's gradient when each other player's sequence form moves by 1.

    Norms are Euclidean.
    """
    return utility_bounds.sensitivity(self.leaves(player))


def summed_scales(absolute: Payoff, treeplexes: Sequence[Treeplex], player: int) -> Float64s:
  """Returns a looser bound than `infoset_bounds` that takes only one gradient and one backward pass.

  It is the sum of the absolute payoffs over all leaves after the infoset and all actions of the other players.
  `infoset_bounds` takes the largest over the other players' actions instead of the sum.

  Args:
    absolute: the absolute payoffs.
    treeplexes: one for each player.
    player: the player.

  Returns:
    float64 (infosets,), in layout order.
  """
  totals = np.zeros(treeplexes[-1].end + LINE)
  absolute.gradient_into(player, np.ones(len(totals)), totals)
  return largest_sums(treeplexes[player], totals)


def largest_sums(tree: Treeplex, values: Float64s) -> Float64s:
  """Returns the largest sum of values at and below each infoset, over the player's pure strategies.

  Args:
    tree: the player's treeplex.
    values: shape (sequences,). The value of each sequence. The results at the infosets below are added to it.

  Returns:
    float64 (infosets,), in layout order.
  """
  result = np.zeros(tree.num_infosets)
  for sequences, infosets in reversed(list(tree.infoset_groups())):
    result[infosets] = values[sequences].max(axis=0)
    np.add.at(values, tree.parent[infosets], result[infosets])
  return result
