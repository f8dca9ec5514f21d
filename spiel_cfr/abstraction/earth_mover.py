"""The earth mover's distance between histograms: the least cost of turning one into the other.

    min over P >= 0:  sum_ij P_ij ground_ij    so that  sum_j P_ij = first_i,  sum_i P_ij = second_j

If the columns lie on a line, as intervals of equities do, nothing need be searched for: it is the sum over neighbours
of their distance times the difference of cumulative histograms. Otherwise it is a linear program, solved by HiGHS,
many pairs of histograms at a time.
"""

import numpy as np
import numpy.typing as npt
import scipy  # its parts are imported when they are used

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s

_TOLERANCE = 1e-9
# So many numbers P are looked for at a time.
_AT_ONCE = 100_000


def earth_movers_distances(
  first: npt.ArrayLike, second: npt.ArrayLike, ground: npt.ArrayLike
) -> Float64s:
  """Returns the distance of each of some histograms to each of others.

      earth_movers_distances(histograms, histograms, abs(x[:, None] - x))

  Args:
    first: shape (histograms, columns); rows are not negative, and all have the same sum.
    second: others, with the same columns and sums.
    ground: the distance between each two columns, symmetric: shape (columns, columns).

  Returns:
    Shape (rows of `first`, rows of `second`).

  Raises:
    ArgumentError: they are not that.
  """
  a, b, costs = (np.asarray(given, np.float64) for given in (first, second, ground))
  if a.ndim != 2 or b.ndim != 2 or not len(a) or not len(b) or a.shape[1] != b.shape[1]:
    raise errors.ArgumentError(
      f"Histograms are rows of tables with the same columns, not of shapes {a.shape} and {b.shape}."
    )
  columns = a.shape[1]
  if costs.shape != (columns, columns) or not (
    np.isfinite(costs).all()
    and (costs >= 0).all()
    and np.array_equal(costs, costs.T)
    and not np.diag(costs).any()
  ):
    raise errors.ArgumentError(
      f"ground must be a symmetric table of {columns} x {columns} distances, not of shape {costs.shape}."
    )
  both = np.vstack([a, b])
  sums = both.sum(axis=1)
  if not np.isfinite(both).all() or (both < 0).any() or np.ptp(sums) > _TOLERANCE * sums.max():
    raise errors.ArgumentError("Histograms must not be negative, and have the same sum.")
  # From an end of the line, if it is one.
  place = costs[np.argmax(costs[0])] if columns else np.zeros(0)
  if np.allclose(np.abs(place[:, None] - place), costs, rtol=0, atol=_TOLERANCE * costs.max()):
    order = np.argsort(place, kind="stable")
    steps = np.diff(place[order])
    above, below = (np.cumsum(rows[:, order], axis=1)[:, :-1] * steps for rows in (a, b))
    moved: Float64s = scipy.spatial.distance.cdist(above, below, "cityblock")
    return moved
  return _transported(a, b, costs)


def _transported(first: Float64s, second: Float64s, costs: Float64s) -> Float64s:
  columns = len(costs)
  result = np.zeros(len(first) * len(second))
  rows, others = np.divmod(np.arange(len(result)), len(second))
  eye, ones = scipy.sparse.eye_array(columns), np.ones((1, columns))
  # The last sum follows from the others, but for rounding.
  one = scipy.sparse.vstack(
    [scipy.sparse.kron(eye, ones), scipy.sparse.kron(ones, eye).tocsr()[:-1]], format="csr"
  )
  at_once = max(1, _AT_ONCE // columns**2)
  for begin in range(0, len(result), at_once):
    pairs = slice(begin, begin + at_once)
    a, b = first[rows[pairs]], second[others[pairs]]
    found = scipy.optimize.linprog(
      np.tile(costs.ravel(), len(a)),
      A_eq=scipy.sparse.kron(scipy.sparse.eye_array(len(a)), one, format="csr"),
      b_eq=np.hstack([a, b[:, :-1] * (a.sum(axis=1) / b.sum(axis=1))[:, None]]).ravel(),
      method="highs",
    )
    if found.x is None:
      raise errors.NoSolutionError(f"HiGHS does not find how to move histograms: {found.message}")
    result[pairs] = found.x.reshape(len(a), -1) @ costs.ravel()
  return result.reshape(len(first), len(second))
