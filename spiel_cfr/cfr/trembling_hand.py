"""CFR+ with a hand that trembles, for play that makes sense where nobody means to go."""

import math

from spiel_cfr._util import arguments
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.regret_minimizers.schedules import Fading
from spiel_cfr.regret_minimizers.trembling_matching import TremblingMatching


class TremblingHandSolver(FullWidthSolver):
  """CFR+ in which every infoset plays at random with probability epsilon_t = trembles / t^power.

  As epsilon vanishes, the average tends to a Nash equilibrium that is sensible off the path too, an extensive-form
  perfect one; see `regret_minimizers.trembling_matching`. `off_path.largest_infoset_regret` measures by how much it
  is not.
  """

  def __init__(
    self, game: AnyGame, trembles: float = 0.1, power: float = 0.5, gamma: float = 2.0
  ) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      trembles: epsilon at first, below 1.
      power: how fast it falls, not negative; 0 keeps it.
      gamma: iteration t weighs t^gamma in the average.

    Raises:
      ArgumentError: a number is outside its range.
      GameError: see `compile_game`.
    """
    trembles = arguments.real_number(trembles, "trembles", 0.0, math.nextafter(1.0, 0.0))
    super().__init__(game, TremblingMatching(Fading(trembles, 1.0, power)), average_weights=gamma)
