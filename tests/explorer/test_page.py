"""Pages as files: contents, escaping, and refusals."""

import pathlib
import re

import explorer_pages
import numpy as np
import pyspiel
import pytest

import spiel_cfr
from spiel_cfr import errors, search
from spiel_cfr.explorer.exploration import describe

_ALL = {"max_infosets": 10**6, "max_histories": 10**6, "max_nodes": 10**6}
HOSTILE = (
  '</script><script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">{{data}}'
)


@pytest.fixture(scope="module")
def solution():
  return spiel_cfr.solve("kuhn_poker", exploitability=1e-4, seconds=10)


def test_numbers_survive(tmp_path):
  solver = spiel_cfr.CFRPlusSolver("leduc_poker")
  solver.run(20)
  found = spiel_cfr.explore(solver, tmp_path / "leduc.html")
  assert (found.num_nodes, found.num_infosets, found.cut) == (9457, 936, ())
  assert str(found) == f"{tmp_path}/leduc.html: 9,457 nodes, 936 infosets"
  page = explorer_pages.read(found.path)
  expected = describe(solver.compiled_game, solver.average_probabilities(), **_ALL)
  for section, table in (("tree", expected.tree), ("infosets", expected.infosets)):
    for name, array in page[section].items():
      wanted = getattr(table, name).ravel()
      np.testing.assert_allclose(array, wanted, rtol=1e-7, atol=1e-12, err_msg=name)
  assert page["infostates"] == expected.infosets.infostates
  assert page["names"] == expected.names
  header = page["header"]
  assert header["nash_conv"] == pytest.approx(solver.nash_conv(), abs=1e-12)
  assert header["exploitability"] == header["nash_conv"] / 2
  assert header["policy"] == "average policy of CFRPlusSolver after 20 iterations"


def test_ranges_survive(tmp_path):
  solver = spiel_cfr.CFRPlusSolver(spiel_cfr.poker.compile_public_game("leduc_poker"))
  solver.run(20)
  page = explorer_pages.read(spiel_cfr.explore(solver, tmp_path / "leduc.html").path)
  expected = describe(solver.compiled_game, solver.average_probabilities(), **_ALL).public_states
  states = page["states"]
  assert states["counts"].size == 3 * len(expected)
  hands = actions = 0
  for state in expected:
    for own in state.ranges:
      end = hands + len(own.hands)
      assert states["hands"][hands:end].tolist() == own.hands.tolist()
      weight = own.weight / own.weight.max()
      np.testing.assert_allclose(states["weight"][hands:end], weight, rtol=1e-7)
      np.testing.assert_allclose(states["value"][hands:end], own.value, rtol=1e-7, atol=1e-12)
      equity = np.nan_to_num(own.equity)
      np.testing.assert_allclose(states["equity"][hands:end] / 65535, equity, atol=1e-5)
      hands = end
    end = actions + state.probability.size
    chances = states["probability"][actions:end] / 65535
    np.testing.assert_allclose(chances, state.probability.ravel(), atol=1e-5)
    values = state.action_value.ravel()
    np.testing.assert_allclose(states["action_value"][actions:end], values, rtol=1e-7, atol=1e-12)
    assert states["is_best"][actions:end].tolist() == state.is_best.ravel().tolist()
    actions = end
  assert (hands, actions) == (len(states["hands"]), len(states["probability"]))


def test_text_from_games_is_never_markup(tmp_path):
  compiled = spiel_cfr.compile_game(
    "kuhn_poker", infostate=lambda state, player: f"{HOSTILE}{state.information_state_string()}"
  )
  solver = spiel_cfr.CFRSolver(compiled)
  found = spiel_cfr.explore(solver, tmp_path / "page.html", title=HOSTILE, traces={HOSTILE: []})
  text = found.path.read_text()
  assert "hacked = 1</script>" not in text
  assert "<img" not in text
  assert "&lt;/script&gt;" in text
  plain = spiel_cfr.explore(spiel_cfr.CFRSolver("kuhn_poker"), tmp_path / "plain.html")
  assert text.count("<script") == plain.path.read_text().count("<script")
  assert explorer_pages.read(found.path)["infostates"][0].startswith(HOSTILE)


def test_page_needs_nothing_else(tmp_path, solution):
  text = pathlib.Path(spiel_cfr.explore(solution, tmp_path / "page.html").path).read_text()
  assert not re.findall(r"""(?:src|href)\s*=\s*["'](?!data:)\w""", text)
  assert "default-src 'none'" in text
  assert not re.findall(r"\{\{\w+\}\}", text)


def test_policies_of_any_kind(tmp_path, solution):
  path = tmp_path / "page.html"
  solver = solution.solver
  kinds = [
    (solution, {}),
    (solution.policy, {}),
    (solver.average_policy(), {}),
    (search.resolve("kuhn_poker", solver), {}),
    (solver.tabular_average_policy(), {"game": "kuhn_poker"}),
    (solver.average_policy_dict(), {"game": solver.compiled_game}),
    ([solver, solver.average_policy()], {"game": "kuhn_poker"}),
  ]
  for policies, named in kinds:
    spiel_cfr.explore(policies, path, **named)
    page = explorer_pages.read(path)
    assert page["header"]["values"][0] == pytest.approx(-1 / 18, abs=1e-3)
  uniform = pyspiel.UniformRandomPolicy(pyspiel.load_game("kuhn_poker"))
  spiel_cfr.explore(uniform, path, game="kuhn_poker")
  assert set(explorer_pages.read(path)["infosets"]["probability"].tolist()) == {0.5}
  fresh = spiel_cfr.CFRSolver("kuhn_poker")
  fresh.run(1)
  spiel_cfr.explore(fresh.current_policy(), path)
  current = explorer_pages.read(path)
  table = fresh.current_policy_dict()
  wanted = [chance for infostate in current["infostates"] for chance in table[infostate].values()]
  np.testing.assert_allclose(current["infosets"]["probability"], wanted, rtol=1e-7)


def test_below_a_public_state(tmp_path):
  """The page has the path and the subtree, with the numbers of the whole game's page."""
  solver = spiel_cfr.CFRSolver("leduc_poker")
  solver.run(3)
  tree = search.public_states("leduc_poker")
  state = tree.natural_cut()[4]
  found = spiel_cfr.explore(solver, tmp_path / "part.html", below=state)
  above, histories = set(), tree.histories
  here = tree.histories_of[state.index]
  for history in map(histories.history, here.tolist()):
    above |= {tuple(history[:length]) for length in range(len(history))}
  follows = np.concatenate([np.arange(node, histories.end[node]) for node in here.tolist()])
  assert found.num_nodes == len(above) + len(follows)
  decisions = follows[histories.mover[follows] >= 0]
  infosets = {histories.infostate(each) for each in histories.infoset[decisions].tolist()}
  (cut,) = found.cut
  assert cut.startswith(f"{9457 - found.num_nodes:,} of 9,457 histories")
  part, whole = (
    explorer_pages.read(spiel_cfr.explore(solver, tmp_path / "page.html", below=below).path)
    for below in (state.states(), None)
  )
  assert len(part["tree"]["mover"]) == found.num_nodes
  assert infosets < set(part["infostates"])
  rows = [whole["infostates"].index(infostate) for infostate in part["infostates"]]
  for name in ("reach", "counterfactual_reach", "value", "best_value"):
    assert part["infosets"][name].tolist() == whole["infosets"][name][rows].tolist()
  few = spiel_cfr.explore(
    solver, tmp_path / "few.html", below=state, max_infosets=9, max_histories=99
  )
  assert (few.num_nodes, few.num_infosets, len(few.cut)) == (99, 9, 3)
  for below, message in (
    ([], "would be empty"),
    (3, "below must be"),
    (search.public_states("kuhn_poker").natural_cut()[0], "not of leduc"),
  ):
    with pytest.raises(errors.ArgumentError, match=message):
      spiel_cfr.explore(solver, tmp_path / "none.html", below=below)
  typed = search.public_states(spiel_cfr.compile_game("leduc_poker", vector_form=True))
  same = spiel_cfr.explore(
    solver, tmp_path / "same.html", below=typed.public_state_of(next(state.states()))
  )
  assert (same.num_nodes, same.num_infosets) == (found.num_nodes, found.num_infosets)
  vector = spiel_cfr.CFRSolver(spiel_cfr.poker.compile_public_game("leduc_poker"))
  with pytest.raises(errors.ArgumentError, match="vector form"):
    spiel_cfr.explore(vector, tmp_path / "none.html", below=state)


def test_traces(tmp_path, solution):
  path, trace = tmp_path / "page.html", tmp_path / "cfr.csv"
  spiel_cfr.run(
    spiel_cfr.CFRSolver("kuhn_poker"), iterations=8, traces=[spiel_cfr.runs.TraceFile(trace)]
  )
  spiel_cfr.explore(solution, path)
  (own,) = explorer_pages.read(path)["header"]["traces"]
  assert own["nash_conv"] == [row.nash_conv for row in solution.rows]
  spiel_cfr.explore(solution, path, traces={"file": trace, "rows": solution.rows})
  names = [curve["name"] for curve in explorer_pages.read(path)["header"]["traces"]]
  assert names == ["file", "rows"]
  assert explorer_pages.read(path)["header"]["traces"][0]["iterations"][-1] == 8


def test_invalid_arguments_are_refused(tmp_path, solution):
  path = tmp_path / "page.html"
  with pytest.raises(errors.ArgumentError, match="game="):
    spiel_cfr.explore(solution.policy_dict(), path)
  with pytest.raises(errors.PolicyError):
    spiel_cfr.explore(solution.policy_dict(), path, game="leduc_poker")
  with pytest.raises(errors.ArgumentError, match="traces"):
    spiel_cfr.explore(solution, path, traces={"run": [1, 2]})
  with pytest.raises(errors.FileFormatError):
    spiel_cfr.explore(solution, path, traces={"run": __file__})
  for name in ("max_infosets", "max_histories", "max_nodes"):
    with pytest.raises(errors.ArgumentError, match=name):
      spiel_cfr.explore(solution, path, **{name: 0})
  with pytest.raises(errors.GameTooLargeError):
    spiel_cfr.explore(solution, path, max_nodes=20)
  with pytest.raises(errors.UnsupportedGameError, match="compile_game"):
    spiel_cfr.explore(spiel_cfr.ExternalSamplingSolver("kuhn_poker", engine="states"), path)
  with pytest.raises(FileNotFoundError):
    spiel_cfr.explore(solution, tmp_path / "nowhere" / "page.html")
  for policies in (solution, solution.solver):
    with pytest.raises(errors.PolicyError, match="not for leduc_poker"):
      spiel_cfr.explore(policies, path, game="leduc_poker")
  assert list(tmp_path.iterdir()) == []


def test_huge_payoffs_are_numbers(tmp_path):
  compiled = spiel_cfr.compile_game("kuhn_poker")
  found = describe(compiled, spiel_cfr.policies.uniform(compiled), **_ALL)
  found.tree.values[:] = 1e300
  found.header.update(title="huge", players=2)
  path = tmp_path / "page.html"
  path.write_bytes(spiel_cfr.explorer.page.render(found))
  values = explorer_pages.read(path)["tree"]["values"]
  assert np.isfinite(values).all()
  assert (values > 1e38).all()
