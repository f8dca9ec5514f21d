"""Arguments that all deep solvers take: what is learned, from how much, and how long."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal, TypedDict

import numpy as np

from spiel_cfr import errors
from spiel_cfr._util import arguments
from spiel_cfr.deep_cfr.features import Features
from spiel_cfr.deep_cfr.network import MLP, Approximator, Training, layer_sizes
from spiel_cfr.mccfr.options import EngineName
from spiel_cfr.mccfr.sampling_rules import Rule, Sampler

SamplerName = Literal["external", "outcome"]
# Hidden layers and their units.
_LAYERS = (64, 64, 64)
_MOST_STEPS = (1 << 31) - 1


class Learning(TypedDict, total=False):
  """See `Hyperparameters`."""

  policy_network_layers: Sequence[int]
  advantage_network_layers: Sequence[int]
  num_traversals: int
  learning_rate: float
  batch_size_advantage: int | None
  batch_size_strategy: int | None
  memory_capacity: int
  policy_network_train_steps: int
  advantage_network_train_steps: int
  sampler: SamplerName
  epsilon: float
  network: Approximator | None
  features: Features
  greedy: bool


class Options(Learning, total=False):
  """See `Hyperparameters`, and `SamplingSolver` for the others."""

  seed: int | np.random.Generator | None
  engine: EngineName | None
  max_nodes: int


@dataclasses.dataclass(frozen=True)
class Hyperparameters:
  """Arguments that all deep solvers take; those that OpenSpiel's have are called as there.

  Attributes:
    policy_network_layers: how many units each hidden layer of the network has that is distilled from the average.
    advantage_network_layers: likewise, of the networks that learn advantages.
    num_traversals: how many an iteration makes for each player.
    learning_rate: of Adam, at its highest.
    batch_size_advantage: how many samples are drawn for a step; None takes all.
    batch_size_strategy: likewise, for the policy network.
    memory_capacity: how many samples a reservoir holds; on compiled games memory is exact, and needs none.
    policy_network_train_steps: how many steps are made to distil the average.
    advantage_network_train_steps: how many are made for each fit.
    sampler: "external" explores all actions of the player who learns, "outcome" one, which takes far fewer nodes a
      traversal where games are large.
    epsilon: with "outcome", the probability that the player who learns plays uniformly.
    network: what learns advantages; an `MLP` of `advantage_network_layers` if None.
    features: what it sees of an infoset: OpenSpiel's information state tensor, "one_hot", or what a function of a
      state and the player to move returns.
    greedy: what is played where no advantage is positive: the action of the largest, as in the paper, or all alike.
  """

  policy_network_layers: Sequence[int] = _LAYERS
  advantage_network_layers: Sequence[int] = _LAYERS
  num_traversals: int = 1500
  learning_rate: float = 3e-3
  batch_size_advantage: int | None = None
  batch_size_strategy: int | None = None
  memory_capacity: int = 1_000_000
  policy_network_train_steps: int = 1000
  advantage_network_train_steps: int = 100
  sampler: SamplerName = "external"
  epsilon: float = 0.6
  network: Approximator | None = None
  features: Features = "tensor"
  greedy: bool = True

  def __post_init__(self) -> None:
    """Raises ArgumentError where an argument makes no sense."""
    epsilon = arguments.positive_number(self.epsilon, "epsilon")
    checked: dict[str, Any] = {
      "learning_rate": arguments.positive_number(self.learning_rate, "learning_rate"),
      "epsilon": arguments.real_number(epsilon, "epsilon", 0.0, 1.0),
      "greedy": bool(self.greedy),
    }
    for name in ("num_traversals", "memory_capacity"):
      checked[name] = arguments.positive_integer(getattr(self, name), name)
    for name in ("batch_size_advantage", "batch_size_strategy"):
      size = getattr(self, name)
      checked[name] = None if size is None else arguments.positive_integer(size, name)
    for name in ("advantage_network_train_steps", "policy_network_train_steps"):
      checked[name] = arguments.integer(getattr(self, name), name, 1, _MOST_STEPS)
    for name in ("policy_network_layers", "advantage_network_layers"):
      checked[name] = layer_sizes(getattr(self, name), name)
    for name, value in checked.items():
      object.__setattr__(self, name, value)
    arguments.one_of(self.sampler, "sampler", ("external", "outcome"))
    if not isinstance(self.network, Approximator | None):
      raise errors.ArgumentError(
        f"network must be derived from spiel_cfr.deep_cfr.network.Approximator, not {self.network!r}."
      )

  @property
  def approximator(self) -> Approximator:
    """What learns advantages."""
    return MLP(tuple(self.advantage_network_layers)) if self.network is None else self.network

  @property
  def policy_network(self) -> Approximator:
    """What learns the average policy."""
    return MLP(tuple(self.policy_network_layers))

  @property
  def training(self) -> Training:
    """How advantages are learned, but for the seed."""
    steps, batch_size = self.advantage_network_train_steps, self.batch_size_advantage
    return Training(steps, self.learning_rate, batch_size, (0, 0))

  @property
  def policy_training(self) -> Training:
    """How the average policy is learned, but for the seed."""
    steps, batch_size = self.policy_network_train_steps, self.batch_size_strategy
    return Training(steps, self.learning_rate, batch_size, (0, 0), policy=True)

  @property
  def sampled(self) -> Sampler:
    """What traversals explore."""
    if self.sampler == "outcome":
      return Sampler(Rule.BY_EXPLORING_STRATEGY, Rule.BY_STRATEGY, (self.epsilon,))
    return Sampler(Rule.EVERY_ACTION, Rule.BY_STRATEGY)
