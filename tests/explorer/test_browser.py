"""Pages in a real browser: every button, the keys, a narrow window, and nothing in the console."""

import contextlib
import time

import explorer_pages
import pytest
import random_games

import spiel_cfr
from spiel_cfr.poker import ranges

_HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"


@pytest.fixture(scope="module")
def window(tmp_path_factory):
  driver = explorer_pages.browser(tmp_path_factory.mktemp("profile"))
  yield driver
  driver.quit()


class Page:
  """A page that is open."""

  def __init__(self, driver, path):
    self.driver = driver
    driver.get("about:blank")
    driver.get_log("browser")
    driver.get(path.as_uri())
    self.wait("return document.documentElement.dataset.ready")
    self.settle()

  def run(self, script, *arguments):
    return self.driver.execute_script(script, *arguments)

  def settle(self):
    """Waits until the page has been drawn twice, since the first drawing may change something."""
    self.driver.execute_async_script(
      "const done = arguments[0], drawn = (then) => requestAnimationFrame(() => setTimeout(then));"
      "drawn(() => drawn(done))"
    )

  def wait(self, script, *arguments):
    """Waits until a script returns something that counts as true."""
    for _ in range(600):
      found = self.run(script, *arguments)
      if found:
        return found
      time.sleep(0.05)
    raise AssertionError(
      f"Never true: {script}; {self.run('return document.body.innerText')[:300]}"
    )

  def text(self, selector="body"):
    found = self.run("return document.querySelector(arguments[0])?.innerText || ''", selector)
    return " ".join(found.split())

  def texts(self, selector):
    return self.run(
      "return Array.from(document.querySelectorAll(arguments[0]), (each) => each.innerText)",
      selector,
    )

  def count(self, selector):
    return self.run("return document.querySelectorAll(arguments[0]).length", selector)

  def click(self, selector, index=0):
    """Clicks like a mouse, which fails if another element covers the target."""
    elements = self.driver.find_elements("css selector", selector)
    assert len(elements) > index, selector
    self.run("arguments[0].scrollIntoView({block: 'center'})", elements[index])
    elements[index].click()
    self.settle()

  def press(self, *keys):
    from selenium.webdriver.common.action_chains import ActionChains

    for key in keys:
      ActionChains(self.driver).send_keys(key).perform()
      self.settle()

  def node(self):
    return int(self.run("return location.hash.slice(1)") or 0)

  def assert_quiet(self):
    assert self.driver.get_log("browser") == []

  def assert_seen(self, selector):
    """Asserts that an element is visible: in the window, with its middle not covered."""
    assert self.run(
      "const element = document.querySelector(arguments[0]), box = element.getBoundingClientRect();"
      "const found = document.elementFromPoint((box.left + box.right) / 2, (box.top + box.bottom) / 2);"
      "return element.contains(found)",
      selector,
    ), selector

  def assert_fits(self):
    """Nothing is wider than the window."""
    assert self.run("return document.documentElement.scrollWidth <= innerWidth")
    wide = self.run(
      "const main = document.querySelector('main');"
      "return main.scrollWidth <= main.clientWidth ? [] : Array.from(main.querySelectorAll('*'))"
      ".filter((each) => each.getBoundingClientRect().right > innerWidth).map((each) => each.className)"
    )
    assert wide == []


@pytest.fixture(scope="module")
def kuhn(tmp_path_factory):
  path = tmp_path_factory.mktemp("pages") / "kuhn.html"
  return spiel_cfr.explore(spiel_cfr.solve("kuhn_poker", exploitability=1e-6), path).path


@pytest.fixture(scope="module")
def leduc(tmp_path_factory):
  solver = spiel_cfr.CFRPlusSolver(spiel_cfr.poker.compile_public_game("leduc_poker"))
  solver.run(200)
  return spiel_cfr.explore(solver, tmp_path_factory.mktemp("pages") / "leduc.html").path


@pytest.fixture(scope="module")
def river(tmp_path_factory):
  game = ranges.endgame("22+,AJs+,KJo+", "TT+,A2s+,KQo", board="7s9h9cTc2d", pot=500, stack=4000)
  solver = spiel_cfr.CFRPlusSolver(spiel_cfr.compile_game(game.load()))
  solver.run(5)
  return spiel_cfr.explore(solver, tmp_path_factory.mktemp("pages") / "river.html").path


@contextlib.contextmanager
def screen(window, width, height):
  """Gives pages a screen of a size, however narrow, until the end of the block."""
  size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
  window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
  try:
    yield
  finally:
    window.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_histories(window, kuhn):
  from selenium.webdriver.common.keys import Keys

  page = Page(window, kuhn)
  assert page.text("h1") == "Kuhn Poker"
  assert "12 of 12 infosets" in page.text("#found")
  assert "−0.05556" in page.text(".tiles.top")
  assert page.count("#node tbody tr") == 3
  page.click("#node tbody .move", 1)
  page.click("#node tbody tr", 0)
  assert "Player 0 to move" in page.text("#node")
  assert page.count("#node tbody tr") == 2
  pre = page.text(".infoset pre")
  assert pre == "1"
  # Both cards that the opponent can have are as likely.
  assert page.count(".beliefs li") == 2
  # What is said of the infoset is told from what is said of the history.
  assert "knows: Q" in page.text(".infoset h2")
  assert "This history: reach 16.7%" in page.text("#node")
  assert "Infoset reach 33.3%" in page.text(".infoset")
  assert "Infoset EV" in page.text("#node thead")
  assert page.text(".beliefs").count("50%") == 2
  page.click(".beliefs button", 1)
  assert page.text(".infoset pre") == "1"
  deeper = page.node()
  page.click("#back")
  page.click("#home")
  assert page.node() == 0
  page.run("history.back()")
  page.wait("return location.hash.length > 1")
  page.click(".crumbs button", 0)
  assert page.node() == 0
  # Keys do the same.
  page.press(Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ENTER)
  assert page.count(".crumbs button") == 3
  page.press(Keys.ARROW_DOWN, Keys.ARROW_UP, Keys.ARROW_UP, Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
  assert page.count(".crumbs button") == 3
  page.press(Keys.BACKSPACE, Keys.HOME)
  assert page.node() == 0
  page.run("location.hash = arguments[0]", f"#{deeper}")
  page.wait("return document.querySelector('.infoset pre')?.innerText === '1'")
  page.run("location.hash = '#999999'")
  page.wait("return document.querySelectorAll('.crumbs button').length === 1")
  page.assert_fits()
  page.assert_quiet()


def test_finding(window, kuhn):
  from selenium.webdriver.common.keys import Keys

  page = Page(window, kuhn)
  page.press("/")
  page.wait("return document.activeElement.id === 'search'")
  page.press("p", "b")
  assert "3 of 12 infosets" in page.text("#found")
  page.press(Keys.ESCAPE)
  page.press("/")
  page.wait("return document.activeElement.id === 'search'")
  page.press("q", Keys.SPACE)
  assert set(page.texts("aside .item .words")) == {"Q · Pass", "Q · Bet", "Q · Pass · Bet"}
  page.press(Keys.ARROW_DOWN, Keys.ENTER)
  assert page.text(".infoset pre").startswith("1")
  page.press(Keys.ESCAPE)
  page.press("?")
  assert "take it back" in page.text(".keys")
  page.press(Keys.ESCAPE)
  assert page.count(".keys") == 0
  page.click("[data-player='1']")
  assert "6 of 12 infosets" in page.text("#found")
  page.click("aside .item", 2)
  assert "Player 1 knows" in page.text(".infoset")
  for value in ("order", "gain", "reach"):
    page.run(
      "const list = document.querySelector('select'); list.value = arguments[0];"
      "list.dispatchEvent(new Event('change', {bubbles: true}))",
      value,
    )
    page.wait("return document.querySelectorAll('aside .item').length === 6")
  page.click("#help")
  page.click(".overlay")
  assert page.count(".keys") == 0
  page.assert_quiet()


def test_themes_and_curves(window, kuhn):
  page = Page(window, kuhn)
  assert page.count("#curves canvas") == 1
  seen = set()
  for _ in range(3):
    page.click("#theme")
    seen.add(page.run("return getComputedStyle(document.body).backgroundColor"))
  assert len(seen) == 2
  for unit in ("seconds", "iterations"):
    page.click(f"[data-unit='{unit}']")
    assert page.count("#curves canvas") == 1
    assert unit in page.text("#curves .u-legend")
  # Something is drawn.
  assert (
    page.run(
      "const canvas = document.querySelector('#curves canvas');"
      "const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;"
      "return new Set(new Uint32Array(data.buffer)).size"
    )
    > 10
  )
  page.assert_quiet()


def test_below_a_public_state(window, tmp_path):
  solver = spiel_cfr.CFRSolver("leduc_poker")
  solver.run(3)
  state = spiel_cfr.search.public_states("leduc_poker").natural_cut()[4]
  page = Page(window, spiel_cfr.explore(solver, tmp_path / "page.html", below=state).path)
  assert "do not go through" in page.text("#cut")
  assert "1 move left out here" in page.text("#node")
  for _ in range(state.depth):
    assert page.count("#node tbody .move")
    page.click("#node tbody .move", 0)
  assert page.text(".crumbs button:last-child") == "Qc"
  assert "Player 0 knows: Jc · Raise · Call · Qc" in page.text(".infoset h2")
  # All of the infoset's histories are on the page.
  assert page.count(".beliefs button") == 4
  page.assert_fits()
  page.assert_quiet()


def test_ranges(window, leduc):
  from selenium.webdriver.common.keys import Keys

  page = Page(window, leduc)
  assert "186 of 186 public states" in page.text("#found")
  # A value has the same digits wherever it stands.
  for player, tile in enumerate(page.texts(".top .tile b")[:2]):
    assert f"EV P{player} {tile}" in page.text("#node .facts")
    assert f"Range EV {tile} " in page.text(f".range[data-player='{player}'] .facts")
  page.click("[data-coloring='equity']")
  assert page.text(".range .legend").startswith("equity 0% 100%")
  page.click("[data-coloring='strategy']")
  assert page.count(".range") == 2
  assert page.count(".range[data-player='0'] .cell") == 6
  page.click(".range[data-player='0'] .cell", 0)
  assert "K♦" in page.text(".hands")
  assert page.count(".hands tbody td") == 6
  page.press(Keys.ARROW_RIGHT)
  assert "Q♦" in page.text(".hands")
  page.press(Keys.ARROW_DOWN)
  assert "Q♣" in page.text(".hands")
  page.press(Keys.ESCAPE)
  assert page.count(".hands") == 0
  for coloring in ("equity", "value", "strategy"):
    page.click(f"[data-coloring='{coloring}']")
    assert page.run("return document.querySelector('.cell').style.backgroundImage").startswith(
      "linear"
    )
  page.run("document.activeElement.blur()")
  page.press(Keys.ARROW_RIGHT)
  assert "Player 1 to move" in page.text("#node")
  # Both ways to say what a player expects agree.
  shown = page.run(
    "return ['#node .facts span:nth-child(4) b', '.range[data-player=\"1\"] .facts b']"
    ".map((each) => document.querySelector(each).innerText)"
  )
  assert float(shown[0].replace("−", "-")) == pytest.approx(
    float(shown[1].replace("−", "-")), rel=1e-3
  )
  page.press("/")
  page.wait("return document.activeElement.id === 'search'")
  page.press("K", "d")
  assert page.text("#found").startswith("30 of 186")
  page.press(Keys.ENTER)
  assert "K♦" in page.text(".board")
  page.click("aside .item", 1)
  page.assert_fits()
  page.assert_quiet()


@pytest.fixture(scope="module")
def turn(tmp_path_factory):
  game = ranges.endgame("AA,KQs,9c8c", "QQ,A9s,Tc9c", board="Td9d6hQc", pot=200, stack=500)
  compiled = spiel_cfr.poker.compile_public_game(game, spiel_cfr.poker.bet_sizes("50%", "a"))
  solver = spiel_cfr.DCFRSolver(compiled)
  solver.run(20)
  found = spiel_cfr.poker.PokerSolution.of(solver)
  return spiel_cfr.explore(found, tmp_path_factory.mktemp("pages") / "turn.html", runouts=["2c"])


@pytest.mark.parametrize("size", [(1280, 800), (390, 844)], ids=["desk", "phone"])
def test_runouts(window, turn, size):
  """The words of players: OOP, IP, pot, pot odds, SPR; the next card is chosen from all cards."""
  with screen(window, *size):
    page = Page(window, turn.path)
    assert "47 of 49 boards" in page.text("#cut")
    oop, ip = (float(each.replace("−", "-")) for each in page.texts(".top .tile b")[:2])
    assert oop + ip == pytest.approx(200, abs=0.2)
    assert page.text("#pot") == "200"
    assert page.text("#spr") == "2.5"
    assert "OOP to move" in page.text("#node")
    page.click("#node tbody .move", 1)
    # A call of 100 for a pot of 300.
    assert page.text("#node .facts").endswith("Pot 300 To call 100 Pot odds 25%")
    fold = page.texts("#node tbody tr")[0]
    assert fold.split()[0] == "Fold"
    assert fold.split()[-1] == "0"
    page.click("#node tbody .move", 1)
    assert page.count(".runouts button") == 48
    assert page.count(".runouts .closed") == 47
    assert page.text("#spr") == "1"
    page.assert_fits()
    page.click("[data-card='2c']")
    assert page.text(".board").startswith("Board T♦ 9♦ 6♥ Q♣ 2♣")
    assert page.count("#closed") == 0
    page.click("#back")
    page.click("[data-card='Kd']")
    assert 'runouts=["Kd"]' in page.text("#closed")
    assert page.count(".range") == 0
    page.assert_fits()
    page.assert_quiet()


def test_types(window, tmp_path):
  game = spiel_cfr.games.compile_vector_game("liars_dice(numdice=1,dice_sides=3)")
  found = spiel_cfr.explore(spiel_cfr.CFRPlusSolver(game), tmp_path / "page.html")
  assert (found.num_nodes, found.num_infosets) == (127, 192)
  page = Page(window, found.path)
  assert "64 of 64 public states" in page.text("#found")
  assert "3 types" in page.text(".range .facts")
  assert "quity" not in page.text(".ranges")
  assert page.texts("[data-coloring]") == ["Strategy", "EV"]
  page.click("[data-coloring='value']")
  assert page.text(".range .legend").startswith("the type loses")
  page.click(".range[data-player='0'] .cell", 1)
  assert page.text(".hands td.hand") == "2"
  # Weight, EV and six bids.
  assert page.count(".hands tbody td") == 9
  page.click("#node tbody .move", 0)
  assert "Player 1 to move" in page.text("#node")
  page.assert_fits()
  page.assert_quiet()


@pytest.mark.parametrize("size", [(1280, 800), (390, 844)], ids=["desk", "phone"])
def test_a_chosen_hand_stays_in_view(window, river, size):
  with screen(window, *size):
    page = Page(window, river)
    assert page.text("h1") == "Universal Poker (…)"
    assert "handReaches=…" in page.text("footer")
    assert page.text(".board").startswith("Board 7♠ 9♥ 9♣ T♣ 2♦")
    for player, cell in ((0, "12-12"), (1, "0-1")):
      page.run("location.hash = '#0'")
      page.click(f".range[data-player='{player}'] [data-cell='{cell}']")
      page.click("#node tbody .move", 0)
      page.assert_seen(".hands tbody tr")
      page.assert_seen(f".range[data-player='{player}'] .cell.on")
      assert page.texts(".hands h2") == [["OOP\n22", "IP\nAKs"][player]]
    page.assert_fits()
    # No action is cut off, in the table of all hands or in that of the chosen ones.
    for box in (".moves", ".hands .scroll"):
      assert page.run(
        "const box = document.querySelector(arguments[0]); return box.scrollWidth <= box.clientWidth",
        box,
      )
    page.click("#close")
    assert page.count(".hands") == 0
    page.assert_quiet()


def test_narrow_window(window, kuhn, leduc):
  with screen(window, 390, 844):
    for path in (kuhn, leduc):
      page = Page(window, path)
      assert page.run("return getComputedStyle(document.querySelector('aside')).display") == "none"
      page.assert_fits()
      page.click("#find")
      page.wait("return document.querySelectorAll('aside .item').length > 10")
      page.click("aside .item", 3)
      assert page.run("return getComputedStyle(document.querySelector('aside')).display") == "none"
      assert page.node() > 0
      page.assert_fits()
      page.assert_quiet()


def test_hostile_text_does_nothing(window, tmp_path):
  compiled = spiel_cfr.compile_game(
    "kuhn_poker", infostate=lambda state, player: _HOSTILE + state.information_state_string()
  )
  path = tmp_path / "page.html"
  spiel_cfr.explore(spiel_cfr.CFRSolver(compiled), path, title=_HOSTILE, traces={_HOSTILE: []})
  page = Page(window, path)
  page.click("aside .item")
  assert page.text("h1") == _HOSTILE
  assert page.text(".infoset pre").startswith(_HOSTILE)
  assert not page.run("return window.hacked")
  assert page.count("img") == 0
  page.assert_quiet()


def test_three_players_and_a_part_of_a_game(window, tmp_path):
  game = random_games.random_game(5, num_players=3, zero_sum=False, max_histories=3000)
  compiled = spiel_cfr.compile_game(game)
  path = tmp_path / "page.html"
  found = spiel_cfr.explore(spiel_cfr.CFRSolver(compiled), path, max_infosets=40, max_histories=200)
  assert len(found.cut) == 2
  page = Page(window, path)
  assert "This page shows a part of the game" in page.text("#cut")
  assert page.count(".tiles.top .tile") == 4
  assert "NashConv" in page.text(".tiles.top")
  for node in range(0, found.num_nodes, 9):
    page.run("location.hash = arguments[0]", f"#{node}")
  page.wait("return document.querySelectorAll('.crumbs button').length > 1")
  for row in range(6):
    page.click("aside .item", row)
    assert page.count(".infoset") == 1
  page.assert_fits()
  page.assert_quiet()


def test_a_mediator(window, tmp_path):
  """Advice to the smuggler, its actions, and the value of leaving."""
  game = "sheriff(item_penalty=1.0,item_value=5.0,max_bribe=1,max_items=2,num_rounds=1,sheriff_penalty=1.0)"
  found = spiel_cfr.correlated.optimal_equilibrium(game)
  page = Page(window, spiel_cfr.explore(found.policy, tmp_path / "page.html").path)
  assert page.text("h1") == "Sheriff (…)"
  assert "players obey the mediator" in page.text("header")
  assert "NashConv 0" in page.text(".tiles.top")
  order = page.texts("#node tbody .move")[0].removeprefix("P0 is told ")
  assert order.startswith("PlaceIllegalItems")
  page.click("#node tbody .move", 0)
  assert page.text(".infoset pre").endswith(f"[told {order}]")
  rows = page.texts("#node tbody tr")
  assert [row.split()[0] for row in rows if "100%" in row] == [order]
  # It does something else.
  page.click("#node tbody .move", next(i for i, row in enumerate(rows) if order not in row))
  assert f"[left when told {order}]" in page.text(".infoset pre")
  page.assert_fits()
  page.assert_quiet()


def test_many_infosets(window, tmp_path):
  """The list draws only visible rows."""
  solver = spiel_cfr.CFRSolver("liars_dice(dice_sides=4)")
  solver.run(1)
  found = spiel_cfr.explore(solver, tmp_path / "page.html")
  assert found.num_infosets == 1024
  page = Page(window, found.path)
  assert 5 < page.count("aside .item") < 60
  first = page.texts("aside .item")[0]
  page.run("document.querySelector('.long').scrollTop = 1e6")
  page.wait("return document.querySelector('aside .item')?.innerText != arguments[0]", first)
  assert page.count("aside .item") > 5
  # To bring one of the first into view would scroll, and draw others in their place.
  page.click("aside .item", page.count("aside .item") // 2)
  assert page.count(".infoset") == 1
  page.assert_quiet()
