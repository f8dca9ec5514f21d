"""Policy objects that a solver hands out: the same object at every call, as OpenSpiel's solvers do."""

import weakref

from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.policies.tabular_policy import CompiledTabularPolicy, LivePolicy


class PolicyObjects:
  """The policy objects that callers still hold, by name. Weak references let unused ones go."""

  def __init__(self) -> None:
    """Begins without objects."""
    self._policies = weakref.WeakValueDictionary[str, CompiledTabularPolicy]()

  def up_to_date(self, name: str, game: CompiledGame, source: LivePolicy) -> CompiledTabularPolicy:
    """Returns the object of a name after refreshing it, or a new object that reads its numbers from `source`."""
    policy = self._policies.get(name)
    if policy is None:
      policy = self._policies[name] = CompiledTabularPolicy(game, source)
    else:
      policy.refresh()
    return policy
