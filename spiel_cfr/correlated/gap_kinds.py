"""Kinds of correlated equilibria, and the sets of deviations whose regrets determine the gap from each of them."""

import enum
from collections.abc import Mapping

from spiel_cfr._util.copying import FrozenMapping


class Start(enum.Enum):
  """Point at which deviations begin.

  Attributes:
    BEFORE_GAME: int. Before the game.
    BEFORE_RECOMMENDATION: int. At any infoset, before the deviator sees the recommendation there.
    AFTER_RECOMMENDATION: int. At any infoset, after the deviator sees the recommendation there.
  """

  BEFORE_GAME = 0
  BEFORE_RECOMMENDATION = 1
  AFTER_RECOMMENDATION = 2


class End(enum.Enum):
  """Point at which deviations end, so that the deviator follows recommendations again.

  Attributes:
    NEVER: int. Never.
    AFTER_EXTERNAL: int. After an external deviation.
    AFTER_ANY: int. After an external or internal deviation.
    AFTER_FIRST_ACTION: int. After the first action.
    ANY_TIME: int. At any time, because the deviator sees all recommendations.
  """

  NEVER = 0
  AFTER_EXTERNAL = 1
  AFTER_ANY = 2
  AFTER_FIRST_ACTION = 3
  ANY_TIME = 4


# For each kind of gap, the points at which its deviations begin and end.
GAP_KINDS: Mapping[str, tuple[Start, End]] = FrozenMapping(
  {
    "coarse": (Start.BEFORE_GAME, End.NEVER),
    "extensive-form coarse": (Start.BEFORE_RECOMMENDATION, End.NEVER),
    "extensive-form": (Start.AFTER_RECOMMENDATION, End.NEVER),
    "agent-form coarse": (Start.BEFORE_RECOMMENDATION, End.AFTER_FIRST_ACTION),
    "agent-form": (Start.AFTER_RECOMMENDATION, End.AFTER_FIRST_ACTION),
    "blind counterfactual": (Start.BEFORE_GAME, End.AFTER_EXTERNAL),
    "informed counterfactual": (Start.BEFORE_GAME, End.AFTER_ANY),
    "blind partial sequence": (Start.BEFORE_RECOMMENDATION, End.AFTER_EXTERNAL),
    "counterfactual partial sequence": (Start.BEFORE_RECOMMENDATION, End.AFTER_ANY),
    "causal partial sequence": (Start.AFTER_RECOMMENDATION, End.AFTER_EXTERNAL),
    "twice informed partial sequence": (Start.AFTER_RECOMMENDATION, End.AFTER_ANY),
    "behavioral": (Start.AFTER_RECOMMENDATION, End.ANY_TIME),
  }
)
# The kinds of gaps that are computed from the profiles, not from regrets.
MIXED_NORMAL_FORM = "mixed normal-form"
NORMAL_FORMS = ("normal-form", MIXED_NORMAL_FORM)
# For each set of deviations, the kinds of gap that its regrets determine; the first is the default. If no regret is
# positive, these gaps are 0.
MEASURABLE_GAPS: Mapping[str, tuple[str, ...]] = FrozenMapping(
  {
    "blind action": ("agent-form coarse",),
    "informed action": ("agent-form", "agent-form coarse"),
    "blind counterfactual": ("coarse", "blind counterfactual"),
    "informed counterfactual": ("coarse", "blind counterfactual", "informed counterfactual"),
    "blind partial sequence": (
      "extensive-form coarse",
      "coarse",
      "agent-form coarse",
      "blind counterfactual",
      "blind partial sequence",
    ),
    "counterfactual partial sequence": (
      "extensive-form coarse",
      "coarse",
      "agent-form coarse",
      "blind counterfactual",
      "agent-form",
      "informed counterfactual",
      "blind partial sequence",
      "counterfactual partial sequence",
    ),
    "causal partial sequence": (
      "extensive-form",
      "extensive-form coarse",
      "coarse",
      "agent-form coarse",
      "blind counterfactual",
      "agent-form",
      "blind partial sequence",
      "causal partial sequence",
    ),
    "twice informed partial sequence": (
      "extensive-form",
      "coarse",
      "extensive-form coarse",
      "agent-form coarse",
      "agent-form",
      "blind counterfactual",
      "informed counterfactual",
      "blind partial sequence",
      "counterfactual partial sequence",
      "causal partial sequence",
      "twice informed partial sequence",
    ),
    "behavioral": ("behavioral",),
  }
)
