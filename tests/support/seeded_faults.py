r"""Plants faults in a copy of the package, one by one, and checks that the quick tests find them.

    python tests/support/seeded_faults.py              # all, some minutes each where kernels have to be compiled
    python tests/support/seeded_faults.py discount     # those whose name contains this
    python tests/support/seeded_faults.py --check      # whether the texts that are to be replaced are still there

A fault replaces a text that is in its file exactly once. It is found if one of its tests fails that passes without it.
"""

import argparse
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable

_ROOT = pathlib.Path(__file__).parents[2]
_LONGEST_SECONDS = 1800


@dataclasses.dataclass(frozen=True)
class Fault:
  """A plausible fault.

  Attributes:
    name: what is wrong.
    file: where, below spiel_cfr.
    before: the text that is replaced.
    after: what it is replaced by.
    tests: files and folders of tests that are to find it, below tests.
  """

  name: str
  file: str
  before: str
  after: str
  tests: tuple[str, ...]


_OPEN_SPIEL = ("cfr/test_against_open_spiel.py",)
_VARIANTS = ("cfr/test_variants.py",)
_EVALUATION = ("evaluation",)
_CHECKPOINTS = ("runs/test_checkpoints.py",)
_POKER = ("poker/test_poker.py",)
_SAMPLING = ("mccfr/test_expectations.py", "mccfr/test_engines.py")

_MATCHING = "regret_minimizers/regret_matching.py"
_PASSES = "games/sequence_form/tree_passes.py"
_TREEPLEX = "games/sequence_form/treeplex.py"
_BLOCKS = "games/sequence_form/blocks.py"
_SCHEDULES = "regret_minimizers/schedules.py"
_ITERATIONS = "cfr/loops/loop.py"
_NUMBERS = "cfr/iteration_schedule.py"
_STATE = "cfr/solver_state.py"
_EVALUATE = "evaluation/evaluate.py"
_RESPONSES = "evaluation/best_responses.py"
_SHOWDOWNS = "poker/showdown_kernels.py"
_TRAVERSAL = "mccfr/traversal.py"

FAULTS = (
  # Regret minimizers.
  Fault(
    "wrong sign of regrets in discounted matching",
    _MATCHING,
    "before, added = load(regret, at), load(block.utility, at) - value",
    "before, added = load(regret, at), value - load(block.utility, at)",
    _OPEN_SPIEL,
  ),
  Fault(
    "missing discount of negative regrets",
    _MATCHING,
    "updated = before * where_greater(before, tie, of_positive, of_negative) + added",
    "updated = before * of_positive + added",
    _VARIANTS,
  ),
  Fault(
    "prediction is added to what is kept",
    _MATCHING,
    "      store(regret, at, updated)\n      score = next_discount * updated + weight * added\n",
    "      score = next_discount * updated + weight * added\n      store(regret, at, score)\n",
    _VARIANTS,
  ),
  Fault(
    "regret matching+ keeps negative regrets",
    _MATCHING,
    "      store(regret, at, positive)\n",
    "      store(regret, at, updated)\n",
    _OPEN_SPIEL,
  ),
  Fault(
    "discounts one iteration late",
    _SCHEDULES,
    "(iterations - self.delay).astype(np.float64) ** -alpha",
    "(iterations + self.delay).astype(np.float64) ** -alpha",
    _OPEN_SPIEL,
  ),
  Fault(
    "discounts without the 1 in the denominator",
    _SCHEDULES,
    "result: Float64s = 1.0 / (1.0 + (iterations",
    "result: Float64s = 1.0 / ((iterations",
    (*_OPEN_SPIEL, "test_doctests.py"),
  ),
  Fault(
    "scheduled weights forget a factorial",
    _SCHEDULES,
    "math.lgamma(t) for t",
    "math.lgamma(t + 1) for t",
    _VARIANTS,
  ),
  Fault(
    "OFTRL keeps the prediction as regret",
    "regret_minimizers/oftrl.py",
    "      store(regret, at, load(regret, at) + load(block.utility, at) - value)\n",
    "      store(regret, at, load(regret, at) + 2.0 * load(block.utility, at) - value)\n",
    ("regret_minimizers/test_oftrl.py", "stable_predictive/test_stable_predictive.py"),
  ),
  # Trees.
  Fault(
    "values are added to the wrong parent",
    _PASSES,
    "utility[parent[infoset + start + i]] += value[i]",
    "utility[parent[infoset + i]] += value[i]",
    ("poker", "games"),
  ),
  Fault(
    "values replace what sequences are worth already",
    _PASSES,
    "utility[parent[infoset + start + i]] += value[i]",
    "utility[parent[infoset + start + i]] = value[i]",
    _OPEN_SPIEL,
  ),
  Fault(
    "the average takes the strategy after the update",
    _PASSES,
    "full(weight_before) * load(sequence_form, at) + full(weight_after) * played",
    "full(weight_before) * played + full(weight_after) * played",
    _OPEN_SPIEL,
  ),
  Fault(
    "the average takes the other strategy in float32",
    _PASSES,
    "added = before * sequence_form[at + i] + after * updated",
    "added = before * updated + after * sequence_form[at + i]",
    ("poker/test_float32.py",),
  ),
  Fault(
    "groups from the root up",
    _PASSES,
    "group_at(groups, end - _ONE - back)",
    "group_at(groups, begin + back)",
    _OPEN_SPIEL,
  ),
  Fault(
    "wrong parent in the layout of a treeplex",
    _TREEPLEX,
    "layout_parent[num_laid_out + column] = sequences[parents[infosets]]",
    "layout_parent[num_laid_out + column] = sequences[np.sort(parents[infosets])]",
    ("games", "support"),
  ),
  Fault(
    "depths are not those above",
    _TREEPLEX,
    "    while len(climbing):\n      depths_of_piece[climbing] += 1\n",
    "    if len(climbing):\n      depths_of_piece[climbing] += 1\n",
    ("games", "support"),
  ),
  Fault(
    "uniform over one action too many",
    _BLOCKS,
    "is_uniform * full(1.0 / block.actions)",
    "is_uniform * full(1.0 / (block.actions + 1))",
    _OPEN_SPIEL,
  ),
  # Payoffs.
  Fault(
    "the payoff of the other player",
    "games/payoffs/leaf_rows.py",
    "leaf_payoffs[order, player]\n",
    "leaf_payoffs[order, (player + 1) % num_players]\n",
    _EVALUATION,
  ),
  Fault(
    "swapped players among the others",
    "games/payoffs/leaf_rows.py",
    "keys = [leaf_sequences[(player + shift) % num_players] for shift in range(num_players)]",
    "keys = [leaf_sequences[(player - shift) % num_players] for shift in range(num_players)]",
    (*_EVALUATION, "games"),
  ),
  Fault(
    "folds pay the wrong player",
    _SHOWDOWNS,
    "sign = 1.0 - 2.0 * player",
    "sign = 2.0 * player - 1.0",
    _POKER,
  ),
  Fault(
    "the same hand is taken off twice",
    _SHOWDOWNS,
    "line = without_cards(total, card_totals, rows, own, i) + load(reach, same * lanes)",
    "line = without_cards(total, card_totals, rows, own, i)",
    _POKER,
  ),
  # Iterations.
  Fault(
    "alternating updates face the strategies of the iteration before",
    _ITERATIONS,
    "      steps = [step for players in self._updates for step in self.update_chain(players).steps]",
    "      steps = self.update_chain(tuple(self.arrays.part_steps.players)).steps",
    _OPEN_SPIEL,
  ),
  Fault(
    "averages of the faced strategies take those of the wrong players",
    "cfr/averaging.py",
    "return player not in updates[-1]",
    "return player not in updates[0]",
    ("cfr/test_restarts.py", "regret_minimizers"),
  ),
  Fault(
    "off by one in the weights of the average",
    _NUMBERS,
    "self.weights_of(iterations - state.average_start,",
    "self.weights_of(iterations - state.average_start - 1,",
    _OPEN_SPIEL,
  ),
  Fault(
    "parameters of the iteration before",
    _NUMBERS,
    "first = done - self._table_start\n",
    "first = max(done - 1 - self._table_start, 0)\n",
    ("cfr", "runs/test_checkpoints.py"),
  ),
  Fault(
    "tapered sums are added an iteration too late",
    _NUMBERS,
    "result[due - first] = TAPER_UNIT * (due - last)",
    "result[due - first] = TAPER_UNIT * (due - last - 1)",
    ("cfr/test_restarts.py",),
  ),
  Fault(
    "best responses to strategies that have been updated",
    "cfr/cfr_br.py",
    "policies[sequences] = current[sequences]",
    "policies[sequences] = updated[sequences] * 0.5 + 0.5 * policies[sequences]",
    ("cfr/test_cfr_br.py",),
  ),
  # Restarts.
  Fault(
    "restarts that do not pay stay",
    "cfr/restart_rule.py",
    "if trial_nash_conv <= goal:",
    "if trial_nash_conv <= 4.0 * goal:",
    ("cfr/test_restarts.py",),
  ),
  Fault(
    "rolled back without the count of iterations",
    "cfr/restarts.py",
    "      solver.state.count_as(now)\n",
    "",
    ("cfr/test_restarts.py",),
  ),
  # State and files.
  Fault(
    "a field is lost in roll-backs",
    _STATE,
    '.rpartition(".")[2], values[name])',
    '.rpartition(".")[2], values[name]) if "average_start" not in name else None',
    ("cfr/test_restarts.py",),
  ),
  Fault(
    "a field is lost in checkpoints",
    _STATE,
    "values[name].shape:\n      np.copyto(value, values[name])\n",
    'values[name].shape:\n      if name != "infoset_state":\n        np.copyto(value, values[name])\n',
    _CHECKPOINTS,
  ),
  Fault(
    "copies share their arrays",
    _STATE,
    "    else copy.copy(value)\n",
    "    else value\n",
    (*_CHECKPOINTS, "cfr"),
  ),
  Fault(
    "checkpoints of other games are taken",
    "cfr/solver_files.py",
    "if not same_digest or",
    "if",
    _CHECKPOINTS,
  ),
  Fault(
    "no lock on folders",
    "runs/folder_lock.py",
    "      fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
    "      pass\n",
    ("runs/test_folders.py",),
  ),
  Fault(
    "threads do not wait for their turn",
    "cfr/synchronization.py",
    "          lock.acquire()\n",
    "          pass\n",
    ("test_edges.py",),
  ),
  Fault(
    "what is imported is not a part of a kernel's key",
    "_numba/cache.py",
    "      pending += new\n",
    "",
    ("_numba/test_cache.py",),
  ),
  # Evaluation.
  Fault(
    "best responses take the last action",
    _RESPONSES,
    "best = where_greater(worth, best, worth, best)",
    "best = worth",
    _EVALUATION,
  ),
  Fault(
    "two best actions are both played",
    _RESPONSES,
    "best = 1.0 - chosen[i] if",
    "best = 1.0 if",
    (*_EVALUATION, "cfr/test_cfr_br.py"),
  ),
  Fault(
    "NashConv of one player",
    _EVALUATE,
    "return float((self.best_response_values - self.expected_values).sum())",
    "return 2.0 * float((self.best_response_values - self.expected_values)[0])",
    _EVALUATION,
  ),
  Fault(
    "losses go to the other player",
    _EVALUATE,
    "evaluation.best_response_values[::-1] - compiled.constant_sum / 2",
    "evaluation.best_response_values - compiled.constant_sum / 2",
    ("cfr/test_restarts.py",),
  ),
  Fault(
    "merged policies are means of probabilities",
    "runs/merge_policies.py",
    "sums += 1 / len(chosen) * sequence_form(compiled, from_policy(compiled, policy))",
    "sums += 1 / len(chosen) * from_policy(compiled, policy)",
    ("runs/test_merge.py",),
  ),
  # Sampling.
  Fault(
    "samples are not divided by their probability",
    _TRAVERSAL,
    "  else:\n    weight /= exploration\n",
    "",
    _SAMPLING,
  ),
  Fault(
    "baselines are not taken off",
    _TRAVERSAL,
    "workspace.values[frame, action] = baseline + (value - baseline) / exploration",
    "workspace.values[frame, action] = baseline + value / exploration",
    _SAMPLING,
  ),
  Fault(
    "averages of the player that is sampled for",
    _TRAVERSAL,
    "  return player if sampler.averages_updating else (player + 1) % num_players",
    "  return player",
    _SAMPLING,
  ),
  Fault(
    "Monte Carlo discounts count from the last visit twice",
    "mccfr/updates.py",
    "caught_up[0, begin], caught_up[1, begin] = numbers[POSITIVE], numbers[NEGATIVE]",
    "caught_up[0, begin] = numbers[POSITIVE]",
    ("mccfr",),
  ),
)


def missing() -> list[Fault]:
  """Returns the faults whose text does not occur exactly once in their file, or whose tests are missing."""
  return [
    fault
    for fault in FAULTS
    if (_ROOT / "spiel_cfr" / fault.file).read_text().count(fault.before) != 1
    or not all((_ROOT / "tests" / name).exists() for name in fault.tests)
  ]


def _copy(folder: pathlib.Path) -> pathlib.Path:
  """Copies what is in version control."""
  listed = subprocess.run(
    ["git", "ls-files", "-z"], cwd=_ROOT, capture_output=True, text=True, check=True
  ).stdout
  tree = folder / "tree"
  for name in filter(None, listed.split("\0")):
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(_ROOT / name, tree / name)
  return tree


def _failing(tree: pathlib.Path, tests: Iterable[str], *flags: str) -> list[str]:
  """Runs tests of a copy, and returns which fail; something else if the process dies or does not end."""
  environment = os.environ | {
    "CI": "1",
    "PYTHONPATH": str(tree),
    # Kernels that no fault has changed are compiled once.
    "NUMBA_CACHE_DIR": str(tree.parent / "kernels"),
    "PYTHONDONTWRITEBYTECODE": "1",
  }
  command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider", *flags]
  try:
    done = subprocess.run(
      [*command, *(f"tests/{name}" for name in tests)],
      cwd=tree,
      env=environment,
      capture_output=True,
      text=True,
      timeout=_LONGEST_SECONDS,
    )
  except subprocess.TimeoutExpired:
    return ["the clock"]
  failed = re.findall(r"^(?:FAILED|ERROR) ([^\n]+?)(?: - .*)?$", done.stdout, re.MULTILINE)
  return failed or ([f"its end, with status {done.returncode}"] if done.returncode else [])


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("name", nargs="?", default="")
  parser.add_argument("--check", action="store_true")
  given = parser.parse_args()
  gone = missing()
  for fault in gone:
    print(f"no longer in {fault.file}, or without its tests: {fault.name}")
  if given.check:
    sys.exit(bool(gone))
  chosen = [fault for fault in FAULTS if given.name in fault.name and fault not in gone]
  survivors = 0
  with tempfile.TemporaryDirectory() as folder:
    tree = _copy(pathlib.Path(folder))
    everything = sorted({name for fault in chosen for name in fault.tests})
    left_out = []
    for test in _failing(tree, everything, "--continue-on-collection-errors"):
      print(f"fails without a fault, and is left out: {test}", flush=True)
      left_out.append(f"--{'deselect' if '::' in test else 'ignore'}={test}")
    for fault in chosen:
      path, start = tree / "spiel_cfr" / fault.file, time.perf_counter()
      text = path.read_text()
      path.write_text(text.replace(fault.before, fault.after))
      failing = _failing(tree, fault.tests, "-x", *left_out)
      path.write_text(text)
      survivors += not failing
      found = f"found by {failing[0]}" if failing else "NOT FOUND"
      print(f"{time.perf_counter() - start:4.0f} s  {fault.name}: {found}", flush=True)
  print(f"{survivors} of {len(chosen)} faults were not found")
  sys.exit(bool(survivors or gone))


if __name__ == "__main__":
  main()
