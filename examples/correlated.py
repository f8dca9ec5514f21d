r"""Draws the value of a mediator in the sheriff's game: the best correlated equilibrium of each kind, and no mediator.

    python examples/correlated.py --picture=results/correlated.png

A smuggler fills a cargo and offers bribes; a sheriff inspects it or not (Farina, Ling, Fang and Sandholm, "Correlation
in Extensive-Form Games: Saddle-Point Formulation and Benchmarks", 2019). Play without a mediator is the average of
CFR+, with NashConv as its gap. In this game CFR+ finds a Nash equilibrium, although no theorem promises it. It need not
be the best Nash equilibrium.
"""

from results import draws, pyplot, save, start

import numpy as np
from absl import flags

import spiel_cfr
from spiel_cfr import correlated

_ITEMS = flags.DEFINE_integer("items", 10, "largest number of items in the cargo", lower_bound=1)
_BRIBE = flags.DEFINE_integer("bribe", 2, "the largest bribe", lower_bound=1)
_ROUNDS = flags.DEFINE_integer("rounds", 2, "rounds of bargaining", lower_bound=1)
_ITERATIONS = flags.DEFINE_integer("iterations", 20_000, "iterations of CFR+", lower_bound=1)
_PICTURE = flags.DEFINE_string("picture", "results/correlated.png", "file of the picture")


def main() -> None:
  game = spiel_cfr.compile_game(
    f"sheriff(item_penalty=1.0,item_value=5.0,sheriff_penalty=1.0,max_items={_ITEMS.value},max_bribe={_BRIBE.value},"
    f"num_rounds={_ROUNDS.value})"
  )
  solver = spiel_cfr.CFRPlusSolver(game)
  solver.run(_ITERATIONS.value)
  values = {"no mediator": spiel_cfr.expected_values(game, solver.average_policy())}
  gaps = [solver.nash_conv()]
  for concept in ("EFCE", "EFCCE", "NFCCE"):
    equilibrium = correlated.optimal_equilibrium(game, concept)
    values[concept] = equilibrium.expected_values
    gaps.append(float(equilibrium.gains.sum()))
  print(f"{game}")
  print("| | welfare | smuggler | sheriff | leaving gains |\n| --- | ---: | ---: | ---: | ---: |")
  for (name, (smuggler, sheriff)), gap in zip(values.items(), gaps, strict=True):
    print(f"| {name} | {smuggler + sheriff:z.4f} | {smuggler:z.4f} | {sheriff:z.4f} | {gap:z.0e} |")
  draw(values)


@draws
def draw(values: dict[str, np.ndarray]) -> None:
  """Draws one bar for each kind of equilibrium: the expected payoffs of both players."""
  figure, axes = pyplot().subplots(figsize=(6, 3.6), layout="constrained")
  bottom = np.zeros(len(values))
  for player, (name, color) in enumerate((("smuggler", "tab:blue"), ("sheriff", "0.6"))):
    heights = np.array([payoffs[player] for payoffs in values.values()])
    axes.bar(list(values), heights, bottom=bottom, color=color, label=name)
    bottom += heights
  axes.set(ylabel="expected utility", title="Sheriff's game: optimal equilibria")
  axes.legend()
  save(figure, _PICTURE.value, 100)


if __name__ == "__main__":
  start(main)
