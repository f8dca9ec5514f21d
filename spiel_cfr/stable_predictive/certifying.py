"""Checks on a run of stable-predictive CFR of everything that its theory promises.

The run is repeated from its first iteration in single steps, which gives the same strategies bit for bit, so that a
solver pays nothing for a certificate that nobody asks for. `regret_decomposition` does the book-keeping,
`paper_certificate` and `local_certificate` check what each theory says of an infoset and of a player; here is what
follows for the gap.
"""

from collections.abc import Sequence

from spiel_cfr.evaluation import evaluate
from spiel_cfr.stable_predictive.adaptive_steps import AdaptiveSteps, ConstantSteps
from spiel_cfr.stable_predictive.certificate_report import Certificate, WorstCases
from spiel_cfr.stable_predictive.infoset_trees import largest_sum
from spiel_cfr.stable_predictive.local_certificate import LocalPlayer
from spiel_cfr.stable_predictive.paper_certificate import PaperPlayer, paper_guarantee
from spiel_cfr.stable_predictive.paper_steps import PaperSteps
from spiel_cfr.stable_predictive.regret_decomposition import Iteration, StablePredictiveRun

# What rounding may add to sums of many numbers, relative to the bound and to the sum of the payoffs so far; at least so
# many times the rounding error of a single number that is remembered.
_ROUNDING, _ROUNDING_ERRORS = 1e-12, 100


def certify(run: StablePredictiveRun) -> Certificate:
  """Repeats a run and checks it; see `stable_predictive_cfr.certificate`."""
  worst = WorstCases(max(_ROUNDING, _ROUNDING_ERRORS * run.solver.precision))
  make = PaperPlayer if isinstance(run.constants, PaperSteps) else LocalPlayer
  players = [make(run, player) for player in range(run.compiled_game.num_players)]
  replica = run.solver.blank(run.solver.configuration())
  for t in range(1, run.iteration + 1):
    worst.iteration = t
    old, old_sequence = replica.current_probabilities(), replica.current_sequence_form()
    replica.evaluate_and_update_policy()
    new, new_sequence = replica.current_probabilities(), replica.current_sequence_form()
    seen, seen_sequence = old.copy(), old_sequence.copy()
    for player in players:
      player.check(worst, Iteration(t, old, new, seen.copy(), seen_sequence))
      if run.alternating_updates:
        own = slice(player.tree.root, player.tree.end)
        seen[own], seen_sequence[own] = new[own], new_sequence[own]
  return _conclude(run, worst, players)


def _conclude(
  run: StablePredictiveRun, worst: WorstCases, players: Sequence[PaperPlayer | LocalPlayer]
) -> Certificate:
  """What follows for the gap of the average strategies."""
  t = run.iteration
  # In the game that was solved: of an abstraction, theory says nothing of the full game.
  gap = evaluate.evaluate(run.compiled_game, run.solver.average_sequence_form()).nash_conv
  notes = _what_is_not_covered(run)
  guarantee = bound = None
  if t and not any("gap" in note for note in notes):
    weights = players[0].weights
    # Where the first player's average takes strategies after their updates, these count against the next player.
    lost = -players[0].gains if run.alternating_updates else 0.0
    regrets = sum(player.regret for player in players) + lost
    rounding = worst.rounding * players[0].scale / weights

    def record(name: str, limit: float) -> None:
      worst.record(name, gap, limit, rounding, lambda _: "the average strategies")

    record("gap <= sum of regrets / sum of weights", regrets / weights)
    local = [player for player in players if isinstance(player, LocalPlayer)]
    if local:
      bound = sum(largest_sum(player.tree, player.local_bounds) for player in local)
      bound = (bound + (local[0].update_cost if run.alternating_updates else 0.0)) / weights
      record("gap <= bound of this run", bound)
    guarantee, floor = _guarantee(run, players)
    if guarantee is not None:
      record("gap <= guarantee before the run", guarantee)
    if floor is not None and run.horizon is not None and t > run.horizon:
      notes.append(
        f"Past the horizon of {run.horizon} iterations the guarantee still falls, but not below "
        f"{floor:.3e}: start again with a longer horizon."
      )
  return Certificate(tuple(worst.checks.values()), t, gap, guarantee, bound, tuple(notes))


def _what_is_not_covered(run: StablePredictiveRun) -> list[str]:
  game, constants, notes = run.compiled_game, run.constants, []
  adaptive = isinstance(constants, AdaptiveSteps)
  if isinstance(constants, PaperSteps) and run.prediction == "last":
    notes.append(
      "The regret of a whole strategy is not bounded: that needs the prediction from the subtree."
    )
  if isinstance(constants, ConstantSteps):
    notes.append("Nothing is promised before the run: of these steps nothing is proven.")
  if game.num_players != 2 or game.constant_sum is None:
    notes.append("The gap is not bounded: this is not a zero-sum game of two players.")
  elif run.alternating_updates and not (adaptive and run.prediction == "subtree"):
    notes.append("The gap is not bounded by the regrets: updates alternate.")
  elif run.averaging != "uniform" and not adaptive:
    notes.append("The gap is not bounded by the regrets: averages are not uniform.")
  return notes


def _guarantee(
  run: StablePredictiveRun, players: Sequence[PaperPlayer | LocalPlayer]
) -> tuple[float | None, float | None]:
  """Bounds the gap before the run, after these iterations and after any number of them."""
  constants, t = run.constants, run.iteration
  if isinstance(constants, AdaptiveSteps):
    return constants.guarantee(run.compiled_game, t, run.alternating_updates), None
  if isinstance(constants, ConstantSteps) or run.prediction == "last":
    return None, None
  return paper_guarantee(run, [each for each in players if isinstance(each, PaperPlayer)])
