"""The sequence-form linear program, solved by SciPy's HiGHS: the value against a best response.

Koller, Megiddo and von Stengel, "Efficient Computation of Equilibria for Extensive Two-Person Games" (1996).
"""

import numpy as np
import scipy.optimize
import scipy.sparse


def least_loss(game, player):
  """Returns the smallest value of the other's best response, above half the sum of all payoffs.

  With x the player's sequence form, A the other's payoffs by (other's sequence, x), and v one number per infoset of the
  other and one at its root: minimize v_root such that at each of the other's sequences
  v(its infoset) >= (A x) + sum of v of the infosets below.
  """
  own, other = game.treeplexes[player], game.treeplexes[1 - player]
  rows, columns, values = game.payoff.leaves(1 - player)
  num_x, num_v = own.end - own.root, 1 + other.num_infosets
  payoffs = scipy.sparse.coo_matrix(
    (values, (rows.astype(int) - other.root, columns[0].astype(int) - own.root)),
    (other.end - other.root, num_x),
  )
  real, below, infoset_of = _shape(other)
  flow = scipy.sparse.hstack([payoffs, below - infoset_of]).tocsr()[real]
  equalities, right = _flow(own)
  equalities = scipy.sparse.hstack([equalities, scipy.sparse.csr_matrix((len(right), num_v))])
  objective = np.zeros(num_x + num_v)
  objective[num_x] = 1.0
  result = scipy.optimize.linprog(
    objective,
    A_ub=flow,
    b_ub=np.zeros(flow.shape[0]),
    A_eq=equalities.tocsr(),
    b_eq=right,
    bounds=[(0, 1)] * num_x + [(None, None)] * num_v,
    method="highs",
  )
  assert result.status == 0, result.message
  return result.fun - game.constant_sum / 2


def _shape(tree):
  """Returns the real sequences, and which values each has below it and above it."""
  size, num_v = tree.end - tree.root, 1 + tree.num_infosets
  below, above = scipy.sparse.lil_matrix((size, num_v)), scipy.sparse.lil_matrix((size, num_v))
  above[0, 0] = 1.0
  real = [0]
  for sequences, infosets in tree.infoset_groups():
    numbers = 1 + np.arange(infosets.start, infosets.stop)
    for row in sequences - tree.root:
      above[row, numbers] = 1.0
      real += row.tolist()
    below[tree.parent[infosets].astype(int) - tree.root, numbers] = 1.0
  return real, below.tocsr(), above.tocsr()


def _flow(tree):
  """Returns the equations of a sequence form."""
  matrix = scipy.sparse.lil_matrix((1 + tree.num_infosets, tree.end - tree.root))
  matrix[0, 0] = 1.0
  for sequences, infosets in tree.infoset_groups():
    numbers = 1 + np.arange(infosets.start, infosets.stop)
    for row in sequences - tree.root:
      matrix[numbers, row] = 1.0
    matrix[numbers, tree.parent[infosets].astype(int) - tree.root] = -1.0
  return matrix.tocsr(), np.append(1.0, np.zeros(tree.num_infosets))
