r"""Fuzzes what reads input, guided by coverage, until Ctrl-C or as long as libFuzzer's options say.

    pip install .[fuzz]
    python tests/support/fuzz.py trace -max_total_time=600

Targets: trace, checkpoint, policy, efg, game. An input that gets past the named errors is left in a file whose name
begins with crash-, for a test in test_hostile.py.
"""

import pathlib
import sys
import tempfile
from collections.abc import Callable

import atheris
import hostile
import random_games

import spiel_cfr
from spiel_cfr._util import files
from spiel_cfr.games.openspiel import loading
from spiel_cfr.policies import open_spiel
from spiel_cfr.runs import trace


def _trace(content: bytes) -> None:
  hostile.reads_trace(content)


def _checkpoint(content: bytes) -> None:
  hostile.restores(content + bytes(files._DIGEST_BYTES), forge=True)


def _policy(content: bytes) -> None:
  data = atheris.FuzzedDataProvider(content)
  rows = list(hostile.kuhn().table_rows)
  entries = {}
  for infostate in rows[: data.ConsumeIntInRange(0, len(rows))]:
    first = data.ConsumeRegularFloat() if data.ConsumeBool() else data.ConsumeProbability()
    second = 1 - first if data.ConsumeBool() else data.ConsumeFloat()
    entries[infostate] = {0: first, data.ConsumeIntInRange(-1, 2): second}
  hostile.evaluates(entries)


def _game(content: bytes) -> None:
  hostile.compiles(atheris.FuzzedDataProvider(content).ConsumeUnicodeNoSurrogates(200))


def _seeds() -> dict[str, list[bytes]]:
  """Returns good input for each target, from which the fuzzer sets out."""
  solver = spiel_cfr.CFRSolver(hostile.kuhn())
  paths = [hostile.file(f"seed{suffix}", b"") for suffix in (".csv", ".npz")]
  for path in paths:
    path.unlink()
  spiel_cfr.run(solver, 4, traces=[spiel_cfr.runs.TraceFile(paths[0])], progress=False)
  solver.save(paths[1])
  trace_file, checkpoint = [path.read_bytes() for path in paths]
  return {
    "trace": [trace_file],
    "checkpoint": [checkpoint[: -files._DIGEST_BYTES]],
    "policy": [bytes(range(200))],
    "efg": [random_games.random_efg(seed, max_histories=12).encode() for seed in range(10)],
    # The provider of text wants a first byte that says what it is: 1 is ASCII.
    "game": [b"\x01kuhn_poker(players=3)", b"\x01misere(game=leduc_poker())"],
  }


_TARGETS: dict[str, Callable[[bytes], object]] = {
  "trace": _trace,
  "checkpoint": _checkpoint,
  "policy": _policy,
  "efg": hostile.compiles_efg,
  "game": _game,
}
# Not whole modules: kernels that are instrumented can't be compiled.
_INSTRUMENTED = (
  trace.read_trace,
  trace._to_row,
  files.read,
  spiel_cfr.Solver.restore,
  spiel_cfr.Solver.load_state_dict,
  open_spiel._entries,
  open_spiel._check,
  loading.load_game,
)


def main() -> None:
  if len(sys.argv) < 2 or sys.argv[1] not in _TARGETS:
    sys.exit(__doc__)
  name = sys.argv.pop(1)
  seeds = _seeds()[name]
  for function in _INSTRUMENTED:
    atheris.instrument_func(function)
  with tempfile.TemporaryDirectory() as corpus:
    for number, seed in enumerate(seeds):
      (pathlib.Path(corpus) / str(number)).write_bytes(seed)
    atheris.Setup([*sys.argv, corpus], _TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
  main()
