r"""Measures the exploitability of agents while they learn: a training loop, with the lines that call the referee.

    python examples/judge_agents.py --agents=q_learners   # OpenSpiel's tabular Q-learners
    python examples/judge_agents.py --agents=network      # a JAX network that learns by self-play

Exploitability is exact: the payoff of a best response against the agents, averaged over both seats.
"""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyspiel
from absl import app, flags

import spiel_cfr
from spiel_cfr.runs import Row

_GAME = flags.DEFINE_string("game", "kuhn_poker", "a two-player game that can be compiled")
_AGENTS = flags.DEFINE_enum("agents", "q_learners", ["q_learners", "network"], "learning agents")
_STEPS = flags.DEFINE_integer("steps", 1_000, "steps of training", lower_bound=1)
_PAGE = flags.DEFINE_string("page", None, "file of the explorer's page of the last agents")


def q_learners(name: str) -> Iterator[Any]:
  """Yields OpenSpiel's agents after each play."""
  from open_spiel.python import rl_environment
  from open_spiel.python.algorithms import tabular_qlearner

  environment = rl_environment.Environment(name)
  num_actions = environment.action_spec()["num_actions"]
  agents = [tabular_qlearner.QLearner(player, num_actions) for player in range(2)]
  while True:
    step = environment.reset()
    while not step.last():
      mover = step.observations["current_player"]
      step = environment.step([agents[mover].step(step).action])
    for agent in agents:
      agent.step(step)
    yield agents


def network(name: str, games: int = 64) -> Iterator[Any]:
  """Yields a network, from batches of tensors to logits, after each step of its policy gradient."""
  import jax
  import jax.numpy as jnp
  import optax

  game, rng = pyspiel.load_game(name), np.random.default_rng(0)
  sizes = [game.information_state_tensor_size(), 64, 64, game.num_distinct_actions()]
  keys = jax.random.split(jax.random.PRNGKey(0), len(sizes))
  layers = zip(keys, sizes, sizes[1:], strict=False)
  weights = [jax.random.normal(key, (n, m)) / np.sqrt(n) for key, n, m in layers]

  @jax.jit
  def logits(weights: Any, tensors: Any) -> Any:
    for matrix in weights[:-1]:
      tensors = jax.nn.relu(tensors @ matrix)
    return tensors @ weights[-1]

  def loss(weights: Any, tensors: Any, legal: Any, actions: Any, returns: Any) -> Any:
    chances = jax.nn.log_softmax(jnp.where(legal, logits(weights, tensors), -1e9))
    chosen = jnp.take_along_axis(chances, actions[:, None], axis=1)[:, 0]
    entropy = -(jnp.exp(chances) * jnp.where(legal, chances, 0)).sum(axis=1)
    return -(chosen * returns + 0.1 * entropy).mean()

  adam = optax.adam(3e-3)
  memory, gradient = adam.init(weights), jax.grad(loss)
  while True:
    samples: list[Any] = []
    for _ in range(games):
      state, moves = game.new_initial_state(), []
      while not state.is_terminal():
        if state.is_chance_node():
          outcomes, chances = zip(*state.chance_outcomes(), strict=True)
          state.apply_action(int(rng.choice(outcomes, p=chances)))
          continue
        tensor, legal = state.information_state_tensor(), np.array(state.legal_actions_mask()) > 0
        numbers = np.where(
          legal, np.array(logits(weights, np.array([tensor], np.float32))[0]), -np.inf
        )
        action = int((numbers + rng.gumbel(size=len(legal))).argmax())
        moves.append((state.current_player(), tensor, legal, action))
        state.apply_action(action)
      samples += [(tensor, legal, a, state.returns()[p]) for p, tensor, legal, a in moves]
    tensors, masks, actions, returns = map(np.array, zip(*samples, strict=True))
    change, memory = adam.update(
      gradient(weights, np.float32(tensors), masks, actions, np.float32(returns)), memory
    )
    weights = optax.apply_updates(weights, change)
    yield lambda tensors, legal_actions, now=weights: logits(now, tensors)


def main(arguments: list[str]) -> None:
  if len(arguments) > 1:
    raise app.UsageError(f"unknown arguments: {arguments[1:]}")
  learning = {"q_learners": q_learners, "network": network}[_AGENTS.value](_GAME.value)
  # The training loop's calls of this library: compile_game, and judge after some steps.
  game, rows, start = spiel_cfr.compile_game(_GAME.value), [], time.perf_counter()
  for step, agents in zip(range(1, _STEPS.value + 1), learning, strict=False):
    if step & (step - 1) == 0 or step == _STEPS.value:
      seconds = time.perf_counter() - start
      verdict = spiel_cfr.judge(game, agents, answers="logits")
      rows.append(Row(step, seconds, 0.0, 0, verdict.nash_conv, verdict.exploitability))
      print(f"after {step:,} steps: exploitability {verdict.exploitability:z.4f}", flush=True)
  print(f"\n{verdict}")
  if _PAGE.value:
    print(spiel_cfr.explore(verdict, _PAGE.value, traces={_AGENTS.value: rows}))


if __name__ == "__main__":
  app.run(main)
