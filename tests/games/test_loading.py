"""Loading games: accepted arguments, refusals, and strings that must not crash the process."""

import concurrent.futures
import pickle
import subprocess
import sys

import hypothesis
import pyspiel
import pytest
from hypothesis import strategies as st
from python_games import game_type

from spiel_cfr import errors
from spiel_cfr.games.openspiel import loading
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.loading import load_game

_WALKABLE = pyspiel.GameType.Dynamics.SEQUENTIAL


def _outcome(string):
  """Returns the name of the error, or "game" if the result can be walked."""
  try:
    game = load_game(string)
  except errors.SpielCFRError as error:
    return type(error).__name__
  game_type = game.get_type()
  assert game_type.dynamics == _WALKABLE
  assert game_type.chance_mode != pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC
  assert game_type.provides_information_state_string
  assert game.num_players() >= 2
  state = game.new_initial_state()
  assert state.chance_outcomes() if state.is_chance_node() else state.legal_actions()
  return "game"


@pytest.mark.parametrize(
  "string",
  [
    "kuhn_poker",
    "kuhn_poker()",
    "kuhn_poker(players=3)",
    "leduc_poker(suit_isomorphism=True)",
    "universal_poker(betting=limit,numSuits=2)",
    "misere(game=kuhn_poker(players=3))",
    "goofspiel(num_cards=4,num_turns=2,points_order=descending)",
    "tic_tac_toe",
    "python_kuhn_poker()",
    "misere(game=python_kuhn_poker())",
  ],
)
def test_loads(string):
  assert _outcome(string) == "game"


def test_parameters_arrive():
  assert load_game("kuhn_poker(players=3)").num_players() == 3
  assert load_game("leduc_poker(players=4)").get_parameters()["players"] == 4


def test_game_object_is_returned_as_it_is():
  game = pyspiel.load_game("leduc_poker(players=3)")
  assert load_game(game) is game


# Names.


@pytest.mark.parametrize(
  ("name", "suggestion"),
  [
    ("kuhn", "kuhn_poker"),
    ("Leduc_Poker", "leduc_poker"),
    ("pyton_kuhn_poker", "python_kuhn_poker"),
    (" kuhn_poker", "kuhn_poker"),
    ("kuhn_poker\0", "kuhn_poker"),
    ("kun_poker(players=3)", "kuhn_poker"),
    ("kuhn_poker)", "kuhn_poker"),
    ("kuhn_poker=3", "kuhn_poker"),
    ("kuhn_poker,leduc_poker", "kuhn_poker"),
  ],
)
def test_unknown_name_suggests_close_ones(name, suggestion):
  with pytest.raises(errors.UnknownGameError, match=f"no game named .*did you mean .*{suggestion}"):
    load_game(name)


@pytest.mark.parametrize("name", ["", " ", "\n\t", "é", "\ud800", "()", "x" * 100_000])
def test_unknown_name_without_close_ones(name):
  with pytest.raises(errors.UnknownGameError, match="registered_names") as raised:
    load_game(name)
  assert len(str(raised.value)) < 400


@pytest.mark.parametrize("value", [3, None, b"kuhn_poker", ["kuhn_poker"], pyspiel.GameType])
def test_neither_string_nor_game(value):
  with pytest.raises(errors.ArgumentError, match=f"not a {type(value).__name__}"):
    load_game(value)


# Syntax.


@pytest.mark.parametrize(
  ("string", "problem"),
  [
    ("kuhn_poker(", "closing bracket"),
    ("kuhn_poker(players=3", "closing bracket"),
    ("kuhn_poker(players=3))", r"reads it as kuhn_poker\(players=3\)"),
    ("kuhn_poker(players=3)(players=4)", "reads it as"),
    ("kuhn_poker(players=3)x", r"reads it as kuhn_poker\(players=3\)"),
    ("kuhn_poker(players=2,players=3)", r"reads it as kuhn_poker\(players=3\)"),
    ("kuhn_poker(name=leduc_poker)", r"reads it as leduc_poker\(\)"),
    ("kuhn_poker(=3)", "Unknown parameter ''"),
    ("kuhn_poker(players)", "players"),
    ("kuhn_poker(\ud800=3)", "kuhn_poker"),
  ],
)
def test_malformed_string(string, problem):
  with pytest.raises(errors.GameParameterError, match=problem) as raised:
    load_game(string)
  assert "kuhn_poker takes players (int)." in str(raised.value)


@pytest.mark.parametrize(
  "string",
  [
    "kuhn_poker(" + "(" * 100_000,
    "kuhn_poker(" + ")" * 100_000,
    "kuhn_poker(" + "x" * 100_000 + ")",
    "kuhn_poker(" + "=" * 100_000 + ")",
    "kuhn_poker(players=" + "9" * 100_000 + ")",
    "misere(game=" * 500 + "kuhn_poker(x=1)" + ")" * 500,
  ],
  ids=lambda string: f"{string[:16]}...",
)
def test_long_malformed_string(string):
  with pytest.raises(errors.GameParameterError) as raised:
    load_game(string)
  assert len(str(raised.value)) < 1000


def test_brackets_in_a_value_are_no_game(tmp_path):
  path = tmp_path / "a(1).efg"
  path.write_text(
    'EFG 2 R "pennies" { "row" "column" }\n'
    'p "" 1 1 "" { "H" "T" } 0\n'
    'p "" 2 1 "" { "H" "T" } 0\n'
    't "" 1 "" { 1 -1 }\nt "" 2 "" { -1 1 }\n'
    'p "" 2 1 "" { "H" "T" } 0\n'
    't "" 3 "" { -1 1 }\nt "" 4 "" { 1 -1 }\n'
  )
  assert load_game(f"efg_game(filename={path})").num_distinct_actions() > 0
  with pytest.raises(errors.GameParameterError, match="efg_game takes filename"):
    load_game(f"efg_game(filename={path}.missing)")


# Parameters.


@pytest.mark.parametrize(
  ("string", "problem"),
  [
    ("kuhn_poker(playerz=3)", "Unknown parameter 'playerz'"),
    ("misere(game=kuhn_poker(x=1))", "Unknown parameter 'x'"),
    ("kuhn_poker(players=three)", "Wrong type for parameter players"),
    ("kuhn_poker(players=3.0)", "Wrong type for parameter players"),
    ("kuhn_poker(players=)", "Wrong type for parameter players"),
    ("sheriff(item_value=nan)", "Wrong type for parameter item_value"),
    ("misere", "Missing parameter game"),
    ("misere(game=kuhn_poker)", "Wrong type for parameter game"),
    ("kuhn_poker(players=0)", "num_players_ = 0"),
    ("kuhn_poker(players=-1)", "players is negative"),
    ("kuhn_poker(players=99999999999)", "CHECK"),
    ("leduc_poker(players=100)", "num_players_ = 100"),
    ("liars_dice(numdice=0)", "num_dice"),
    ("liars_dice(numdice=-1)", "numdice is negative"),
    ("liars_dice(dice_sides=0)", "dice_sides_ = 0"),
    ("goofspiel(num_cards=0)", "no legal action"),
    ("goofspiel(num_cards=-1)", "num_cards is negative"),
    ("goofspiel(players=1000)", "goofspiel takes 2 to 10 players, not 1000"),
    ("goofspiel(players=1)", "goofspiel takes 2 to 10 players, not 1"),
    ("oshi_zumo(coins=0)", "over before the first move"),
    ("oshi_zumo(size=-1)", "size is negative"),
    ("sheriff(num_rounds=-1)", "num_rounds is negative"),
    ("battleship(num_shots=0)", "num_shots = 0"),
    ("battleship(board_height=0)", "NOT possible to fit"),
    ("dots_and_boxes(num_rows=0)", "num_rows_ = 0"),
    ("nim(pile_sizes=1;-3)", "no legal action"),
    ("start_at(game=kuhn_poker(),history=0;1;0;0)", "over before the first move"),
    ("universal_poker(blind=x)", "stoi"),
    ("dark_hex(num_cols=2147483647)", "MemoryError"),
  ],
)
def test_bad_parameters(string, problem):
  with pytest.raises(errors.GameParameterError, match=problem) as raised:
    load_game(string)
  name = string.partition("(")[0]
  valid = {t.short_name: t for t in pyspiel.registered_games()}[name].parameter_specification
  takes = str(raised.value).partition(f"{name} takes ")[2]
  assert all(f"{key} (" in takes for key in valid)
  assert string[:50] in str(raised.value)


@pytest.mark.parametrize(
  "string",
  [
    "universal_poker(numSuits=0)",
    "universal_poker(numPlayers=1000)",
    "universal_poker(numRounds=7)",
    "universal_poker(firstPlayer=0;0)",
    "universal_poker(stack=-1 0)",
    "connect_four(rows=0)",
    "go_fish(initial_cards=0)",
    "leduc_poker(starting_player=2147483647)",
    "misere(game=universal_poker(numSuits=0))",
  ],
)
def test_parameters_that_end_the_process(string, capfd):
  with pytest.raises(errors.GameParameterError, match="ends the process with SIG") as raised:
    load_game(string)
  assert str(raised.value).startswith(string)
  assert capfd.readouterr() == ("", "")


def test_a_crash_leaves_no_traceback_of_the_fault_handler():
  program = """
import faulthandler, os
from spiel_cfr import errors
from spiel_cfr.games.openspiel.loading import load_game
faulthandler.enable(os.dup(2))
try:
  load_game("universal_poker(numSuits=0)")
except errors.GameParameterError:
  print("refused")
"""
  done = subprocess.run(
    [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
  )
  assert (done.stdout, done.stderr) == ("refused\n", "")


def test_refused_parameters_print_nothing(capfd):
  with pytest.raises(errors.GameParameterError):
    load_game("kuhn_poker(players=0)")
  assert capfd.readouterr() == ("", "")


def test_parameters_that_take_forever(monkeypatch):
  monkeypatch.setattr(loading, "_PROBE_SECONDS", 0.3)
  with pytest.raises(errors.GameParameterError, match=r"more than 0\.3 seconds"):
    load_game("blotto(coins=2147483647)")


def test_infinite_payoff():
  with pytest.raises(errors.InvalidPayoffError, match="ends with payoffs"):
    load_game("cribbage(winner_bonus_reward=" + "9" * 400 + ".0)")


def test_loads_from_several_threads():
  strings = ["kuhn_poker(players=3)", "universal_poker(numSuits=0)", "leduc_poker(players=0)"] * 8
  with concurrent.futures.ThreadPoolExecutor(4) as pool:
    outcomes = list(pool.map(_outcome, strings))
  assert outcomes == ["game", "GameParameterError", "GameParameterError"] * 8


# Kinds of games.


@pytest.mark.parametrize(
  ("string", "error", "message"),
  [
    ("mfg_crowd_modelling", errors.MeanFieldGameError, "mean-field"),
    ("mfg_garnet(size=5)", errors.MeanFieldGameError, "mean-field"),
    ("tarok", errors.SampledChanceError, "samples chance"),
    ("misere(game=tarok(players=4))", errors.SampledChanceError, "samples chance"),
    ("blackjack", errors.SinglePlayerGameError, "one player"),
    ("pathfinding", errors.SinglePlayerGameError, "one player"),
    ("coop_to_1p(game=tiny_hanabi())", errors.SinglePlayerGameError, "one player"),
    ("breakthrough", errors.NoInformationStateError, "no information state strings"),
    ("markov_soccer", errors.NoInformationStateError, "no information state strings"),
    (
      "python_iterated_prisoners_dilemma",
      errors.NoInformationStateError,
      "no information state strings",
    ),
  ],
)
def test_unsupported_kind(string, error, message):
  name = string.partition("(")[0]
  with pytest.raises(error, match=f"^{name} .*{message}"):
    load_game(string)
  with pytest.raises(error, match=message):
    load_game(pyspiel.load_game(string))


@pytest.mark.parametrize(
  "game",
  [
    "matrix_rps",
    "blotto(coins=4)",
    "matching_pennies_3p",
    "oshi_zumo(coins=3)",
    "goofspiel(num_cards=3,imp_info=True)",
    "python_dynamic_routing",
    "normal_form_extensive_game(game=kuhn_poker())",
    pyspiel.create_matrix_game([[1, -1], [-1, 1]], [[-1, 1], [1, -1]]),
  ],
  ids=str,
)
def test_simultaneous_becomes_turn_based(game):
  converted = load_game(game)
  assert converted.get_type().dynamics == _WALKABLE
  original = pyspiel.load_game(game) if isinstance(game, str) else game
  assert converted.num_players() == original.num_players()
  state, joint = converted.new_initial_state(), original.new_initial_state()
  while not joint.is_terminal():
    if joint.is_chance_node():
      action = joint.legal_actions()[0]
      joint.apply_action(action)
      state.apply_action(action)
    else:
      actions = [joint.legal_actions(player)[-1] for player in range(original.num_players())]
      joint.apply_actions(actions)
      for player, action in enumerate(actions):
        assert state.current_player() == player
        state.apply_action(action)
  assert state.is_terminal()
  assert state.returns() == joint.returns()


_REGISTERED = pyspiel.registered_names()


@pytest.mark.quick(except_for=["colored_trails"])
@pytest.mark.parametrize("name", _REGISTERED)
def test_every_registered_game(name):
  game_type = {t.short_name: t for t in pyspiel.registered_games()}[name]
  if not game_type.default_loadable:
    expected = {"GameParameterError", "SinglePlayerGameError"}
  elif game_type.dynamics == pyspiel.GameType.Dynamics.MEAN_FIELD:
    expected = {"MeanFieldGameError"}
  elif game_type.chance_mode == pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC:
    expected = {"SampledChanceError"}
  elif pyspiel.load_game(name).num_players() == 1:
    expected = {"SinglePlayerGameError"}
  elif not game_type.provides_information_state_string:
    expected = {"NoInformationStateError"}
  else:
    expected = {"game"}
  assert _outcome(name) in expected


class _BrokenState(pyspiel.State):
  """Chance moves once and the game is over."""

  def __init__(self, game, outcomes):
    super().__init__(game)
    self._outcomes = outcomes
    self._over = False

  def current_player(self):
    return pyspiel.PlayerId.TERMINAL if self._over else pyspiel.PlayerId.CHANCE

  def chance_outcomes(self):
    return self._outcomes

  def _apply_action(self, action):
    self._over = True

  def is_terminal(self):
    return self._over

  def returns(self):
    return [0.0, 0.0]

  def __str__(self):
    return "broken"


class _BrokenGame(pyspiel.Game):
  """A two-player game of one chance move, whose outcomes, utilities and states can be wrong."""

  def __init__(self, outcomes, utilities=(-1.0, 1.0), players=2):
    info = pyspiel.GameInfo(
      num_distinct_actions=2,
      max_chance_outcomes=2,
      num_players=players,
      min_utility=utilities[0],
      max_utility=utilities[1],
      utility_sum=0.0,
      max_game_length=1,
    )
    super().__init__(game_type("broken", pyspiel.GameType.Utility.ZERO_SUM), info, {})
    self._outcomes = outcomes

  def new_initial_state(self):
    if self._outcomes is None:
      raise KeyError("deck")
    return _BrokenState(self, self._outcomes)


def test_sound_game_object_of_ones_own():
  game = _BrokenGame([(0, 0.5), (1, 0.5)])
  assert load_game(game) is game


@pytest.mark.parametrize(
  ("game", "message"),
  [
    (_BrokenGame([]), "no legal action"),
    (_BrokenGame(None), "KeyError: 'deck'"),
    (_BrokenGame([(0, 1.0)], players=0), "takes 2 to 2 players, not 0"),
    (_BrokenGame([(0, 1.0)], players=3), "takes 2 to 2 players, not 3"),
  ],
)
def test_broken_game_object(game, message):
  with pytest.raises(errors.GameError, match=message):
    load_game(game)


# Anything at all.

_SMALL = [
  "kuhn_poker", "leduc_poker", "universal_poker", "goofspiel", "liars_dice", "oshi_zumo", "sheriff",
  "tiny_hanabi", "nim", "connect_four", "go_fish", "phantom_ttt", "hanabi", "tarok", "blackjack",
  "trade_comm", "lewis_signaling", "first_sealed_auction", "mfg_garnet", "battleship", "misere",
]  # fmt: skip


_VALUES = {
  int: st.integers(-2, 9) | st.integers(),
  float: st.floats(),
  bool: st.booleans(),
  str: st.sampled_from(["", "0 0", "1;2", "[1]", "1 1"]) | st.text(max_size=5),
  dict: st.sampled_from(["kuhn_poker()", "matrix_rps()", "universal_poker(numSuits=0)"]),
}


@st.composite
def _game_strings(draw):
  """Mostly a known game with known parameters of the right type."""
  name = draw(st.sampled_from(_SMALL) | st.sampled_from(_REGISTERED))
  specification = {t.short_name: t for t in pyspiel.registered_games()}[
    name
  ].parameter_specification
  pairs = {}
  for key, default in specification.items():
    if draw(st.sampled_from([True, *[False] * len(specification)])):
      pairs[key] = draw(_VALUES[type(default)])
  if draw(st.integers(0, 9)) == 0:
    pairs[draw(st.text(max_size=5))] = draw(st.one_of(list(_VALUES.values())))
  return f"{name}({','.join(f'{key}={value}' for key, value in pairs.items())})"


@hypothesis.settings(max_examples=60, deadline=None)
@hypothesis.given(_game_strings() | st.text("kuhn_poer()=,players3"))
def test_any_string_gives_a_game_or_a_named_error(string):
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(loading, "_PROBE_SECONDS", 0.5)
    outcome = _outcome(string)
  hypothesis.event(outcome)
  assert outcome == "game" or issubclass(getattr(errors, outcome), errors.SpielCFRError)


def test_games_in_python_are_unpickled_in_a_fresh_process(tmp_path):
  """A new process registers games in Python first: the pickle of a wrapper game is OpenSpiel's string."""
  view = GameView(load_game("misere(game=python_kuhn_poker())"))
  (tmp_path / "view").write_bytes(pickle.dumps(view))
  code = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')).game)"
  command = [sys.executable, "-c", code, str(tmp_path / "view")]
  done = subprocess.run(command, check=True, capture_output=True, text=True)
  assert done.stdout.strip() == str(view.game)
