"""Takes the pictures of pages that docs/ shows.

PYTHONPATH=tests/support python -m screenshots docs
"""

import pathlib
import sys
import tempfile
import time

import explorer_pages

import spiel_cfr
from spiel_cfr import poker
from spiel_cfr.poker import ranges

_FIRST = "22+,A2s+,KTs+,QTs+,JTs,T9s,98s,ATo+,KQo"
_SECOND = "22+,A2s+,K9s+,QTs+,JTs,ATo+,KJo+"
_SHERIFF = "sheriff(item_penalty=1.0,item_value=5.0,max_bribe=2,max_items=3,num_rounds=1,sheriff_penalty=1.0)"


def main(folder):
  with tempfile.TemporaryDirectory() as made:
    made = pathlib.Path(made)
    kuhn = spiel_cfr.solve("kuhn_poker", exploitability=1e-9)
    endgame = ranges.endgame(_FIRST, _SECOND, board="7s9h9cTc2d", pot=2000, stack=9000)
    river = spiel_cfr.solve(spiel_cfr.compile_game(endgame.load()), exploitability=1.0, seconds=60)
    endgame = ranges.endgame(
      "AA-TT,AKs,QJs,98s", "KK-99,AQs,KQs,T9s", board="Td9d6h", pot=200, stack=900
    )
    flop = spiel_cfr.DCFRSolver(
      poker.compile_public_game(endgame, poker.bet_sizes("50%", "a"), merge_suits=True)
    )
    flop.run(60)
    sheriff = spiel_cfr.correlated.optimal_equilibrium(_SHERIFF).policy
    pages = {
      "explorer_mediator": (
        spiel_cfr.explore(sheriff, made / "sheriff.html"),
        "light",
        ["[title*='none'][title*='num=1']"],
      ),
      "explorer_kuhn": (spiel_cfr.explore(kuhn, made / "kuhn.html"), "light", ["[title='1pb']"]),
      "explorer_river": (
        spiel_cfr.explore(river, made / "river.html", title="River endgame, 7♠ 9♥ 9♣ T♣ 2♦"),
        "dark",
        [".range[data-player='0'] [data-cell='4-5']"],
      ),
      "explorer_flop": (
        spiel_cfr.explore(
          poker.PokerSolution.of(flop), made / "flop.html", title="Flop, T♦ 9♦ 6♥", runouts=["Qc2s"]
        ),
        "light",
        ["#node tbody .move", "#node tbody .move"],
      ),
    }
    browser = explorer_pages.browser(made / "profile", 1280, 1180)
    for name, (page, theme, clicked) in pages.items():
      browser.get(page.path.as_uri())
      while not browser.execute_script("return document.documentElement.dataset.ready"):
        time.sleep(0.05)
      while theme.title() not in browser.find_element("id", "theme").text:
        browser.find_element("id", "theme").click()
        time.sleep(0.1)
      for selector in clicked:
        browser.find_element("css selector", selector).click()
        time.sleep(0.5)
      browser.save_screenshot(str(pathlib.Path(folder) / f"{name}.png"))
    browser.quit()


if __name__ == "__main__":
  main(sys.argv[1])
