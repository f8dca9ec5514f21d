r"""Lower bounds on NashConv from learned responses, with the exact number for games that can be compiled.

python examples/lower_bound.py --picture=results/lower_bound.png
"""

from results import NAMED_GAMES, draws, pyplot, save, start, writable

import pathlib
import time
from typing import Any

from absl import flags
from open_spiel.python import policy as open_spiel_policy

import spiel_cfr
from spiel_cfr.referee import NashConvBound, nash_conv_lower_bound

_GAMES = NAMED_GAMES | {
  "kuhn, 3 players": "kuhn_poker(players=3)",
  "phantom tic-tac-toe": "phantom_ttt",
  "liars_dice_2x6": "liars_dice(numdice=2,dice_sides=6)",
}
# The last three games are too large to compile.
_POLICIES = [
  ("kuhn, 3 players", "uniform"),
  ("leduc", "uniform"),
  ("leduc", "first action"),
  ("leduc", "CFR+ 3"),
  ("leduc", "CFR+ 10"),
  ("leduc", "CFR+ 30"),
  ("liars_dice_6", "uniform"),
  ("liars_dice_6", "CFR+ 3"),
  ("liars_dice_6", "CFR+ 10"),
  ("goofspiel_5", "CFR+ 3"),
  ("liars_dice_2x6", "uniform"),
  ("phantom tic-tac-toe", "uniform"),
  ("phantom tic-tac-toe", "sampled 20000"),
]
_CHOSEN = flags.DEFINE_multi_integer(
  "policies", list(range(len(_POLICIES))), f"policies to evaluate, by number from 0: {_POLICIES}"
)
_EPISODES = flags.DEFINE_integer("episodes", 100_000, "games from which a response learns", 0)
_FRESH = flags.DEFINE_integer("evaluation_episodes", 20_000, "fresh games of a response", 2)
_SEED = flags.DEFINE_integer("seed", 0, "seed of all random numbers", 0)
_PICTURE = flags.DEFINE_string("picture", "results/lower_bound.png", "file of the picture")


def main() -> None:
  picture = writable(_PICTURE.value)
  print("| game | policy | NashConv | at least | responses gain | states | seconds |")
  print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
  results = []
  for number in _CHOSEN.value:
    name, label = _POLICIES[number]
    policy, exact = make_policy(_GAMES[name], label)
    start = time.perf_counter()
    result = nash_conv_lower_bound(
      _GAMES[name],
      policy,
      episodes=_EPISODES.value,
      evaluation_episodes=_FRESH.value,
      seed=_SEED.value,
    )
    seconds = time.perf_counter() - start
    results.append((f"{name}\n{label}", exact, result))
    print(
      f"| {name} | {label} | {'' if exact is None else f'{exact:z.3f}'} | {result.bound:z.3f} | "
      f"{result.estimate:z.3f} | {result.states:,} | {seconds:z.0f} |",
      flush=True,
    )
  draw(results, picture)


def make_policy(game: str, label: str) -> tuple[Any, float | None]:
  """Returns a policy by its name, and its NashConv; None if the game is too large to compile."""
  name, _, iterations = label.partition(" ")
  if name == "sampled":
    sampler = spiel_cfr.OutcomeSamplingSolver(game, engine="states", seed=0)
    sampler.run(int(iterations))
    return sampler.average_policy(), None
  if game in (_GAMES["phantom tic-tac-toe"], _GAMES["liars_dice_2x6"]):
    return open_spiel_policy.UniformRandomPolicy(spiel_cfr.games.load_game(game)), None
  compiled = spiel_cfr.compile_game(game)
  policy: Any = open_spiel_policy.UniformRandomPolicy(compiled.game)
  if name == "first":
    policy = open_spiel_policy.FirstActionPolicy(compiled.game)
  elif name == "CFR+":
    solver = spiel_cfr.CFRPlusSolver(compiled)
    solver.run(int(iterations))
    policy = solver.average_policy()
  return policy, spiel_cfr.nash_conv(compiled, policy)


@draws
def draw(results: list[tuple[str, float | None, NashConvBound]], path: pathlib.Path) -> None:
  """Draws exact numbers, confidence intervals of the responses' gains, and lower bounds."""
  figure, axes = pyplot().subplots(figsize=(8, 0.45 * len(results) + 1.2), layout="constrained")
  for row, (_, exact, result) in enumerate(results):
    low, high = result.interval
    axes.plot(
      [max(low, 1e-3), max(high, 1e-3)], [row, row], color="tab:blue", linewidth=5, alpha=0.4
    )
    if result.bound:
      axes.plot(result.bound, row, ">", color="tab:blue")
    if exact is not None:
      axes.plot(exact, row, "|", color="black", markersize=14, markeredgewidth=2)
  axes.plot([], [], "|", color="black", markersize=12, markeredgewidth=2, label="exact")
  axes.plot([], [], ">", color="tab:blue", label="lower bound, 95%")
  axes.plot([], [], color="tab:blue", linewidth=5, alpha=0.4, label="gain of the responses, 95%")
  axes.set(xscale="log", xlabel="NashConv", yticks=range(len(results)))
  axes.set_yticklabels([label.replace("\n", ": ") for label, _, _ in results])
  axes.invert_yaxis()
  axes.grid(axis="x", color="0.9")
  axes.legend()
  save(figure, path, 150)


if __name__ == "__main__":
  start(main)
