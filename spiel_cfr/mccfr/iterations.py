"""A number of iterations that can be called."""

from collections.abc import Callable


class Iterations(int):
  """How many iterations a solver has done. Called, it does one more: OpenSpiel has a method of that name.

  Attributes:
    one_more: does one iteration.
  """

  one_more: Callable[[], None]

  def __call__(self) -> None:
    """Does one iteration: a traversal for each player, and an update of what it has estimated."""
    self.one_more()
