"""Connected components: things numbered by the keys that they share."""

import numpy as np
import scipy  # its `sparse` is imported when it is used

from spiel_cfr._numba.arrays import Int64s


def connected(count: int, things: Int64s, keys: Int64s) -> Int64s:
  """Numbers things from 0 on so that those have one number that share a key, or that a chain of such pairs joins.

  Things and keys are int64 (pairs,): a thing, and a key that it has.
  """
  _, columns = np.unique(keys, return_inverse=True)
  size = count + int(columns.max(initial=-1)) + 1
  graph = scipy.sparse.coo_matrix((np.ones(len(things)), (things, count + columns)), (size, size))
  labels = scipy.sparse.csgraph.connected_components(graph, directed=False)[1][:count]
  numbers: Int64s = np.unique(labels, return_inverse=True)[1]
  return numbers
