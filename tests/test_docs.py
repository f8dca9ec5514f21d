"""README, documentation and notebooks: programs run, names exist, links lead somewhere."""

import contextlib
import functools
import importlib
import importlib.util
import inspect
import json
import os
import pathlib
import pkgutil
import re
import subprocess
import sys
import time

import explorer_pages
import pyspiel
import pytest

import spiel_cfr

ROOT = pathlib.Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", *DOCS.rglob("*.md")])
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
_CODE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


_METHODS = (property, functools.cached_property, classmethod, staticmethod)
_SLOW = (
  "deep", "abstraction", "action_translation", "refinement", "parametric_games", "sharding", "stable_predictive",
  "endgames", "games", "ours_and_theirs", "private_moves", "search", "search_gadgets", "search_values", "vector_form",
)  # fmt: skip
# What pages need that need not be installed.
_NEEDS = {"deep": "jax", "sharding": "ray"}
# Names of games' parameters, of other packages than OpenSpiel, of what is printed, of a test, and what stands for the
# name of a room.
_ELSEWHERE = {
  "loss_multiplier",
  "MPIPoolExecutor",
  "get_executor",
  "pandas",
  "read_csv",
  "x1000",
  "ROOM",
}
_WORD = re.compile(r"[A-Za-z_]\w+")


def pages_with_programs():
  """Yields the pages of the guide whose programs are run, in order, in a folder of their own."""
  for path in PAGES:
    if _CODE.search(path.read_text()):
      marks = [pytest.mark.slow] if path.stem in _SLOW else []
      yield pytest.param(path, id=path.stem, marks=marks)


def name_of(path):
  """Returns the name of a page in lists of pages."""
  return path.relative_to(DOCS).as_posix()


def without_code(text):
  return re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(path):
  """Returns the anchors of a page's headings."""
  headings = re.findall(r"^#+ (.+)$", without_code(path.read_text()), re.MULTILINE)
  return {
    re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
  }


def code_in_text():
  """Yields each page with the code in its sentences."""
  for path in PAGES:
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    # A command may go on in the next line.
    for code in re.findall(r"`([^`]+)`", text):
      yield path, code.replace("\n", " ")


def known_words():
  """Returns all words of the sources of the library and its programs, and of OpenSpiel's interface."""
  open_spiel = pathlib.Path(importlib.util.find_spec("open_spiel.python").origin).parent
  folders = (ROOT / "spiel_cfr", ROOT / "examples", ROOT / "tests" / "support", open_spiel / "bots")
  sources = [path for folder in folders for path in folder.rglob("*.py")]
  sources += [*(open_spiel / "algorithms").glob("*.py"), open_spiel / "policy.py"]
  sources += [ROOT / "Makefile", ROOT / "pyproject.toml"]
  words = {word for path in sources for word in (path.stem, *_WORD.findall(path.read_text()))}
  words |= {path.stem for path in (ROOT / "spiel_cfr" / "atlas" / "games").iterdir()}
  return words | set(dir(pyspiel)) | set(pyspiel.registered_names()) | _ELSEWHERE


def test_names_in_code_font_exist():
  words, missing = known_words(), []
  for path, code in code_in_text():
    # What is made of one name is one of ours; formulas and literals have other signs, or short names.
    if re.fullmatch(r"[A-Za-z_][\w.]*(\([^()]*\))?", code) and not code.endswith((".txt", ".html")):
      outside = re.sub(r"\"[^\"]*\"", "", code)
      missing += [
        (path.name, code) for word in _WORD.findall(outside) if len(word) > 3 and word not in words
      ]
    if re.fullmatch(r"spiel_cfr(\.\w+)+", code) and "ROOM" not in code:
      try:
        pkgutil.resolve_name(code)
      except (AttributeError, ImportError):
        missing.append((path.name, code))
    for file in re.findall(r"\b(?:docs|examples|notebooks|spiel_cfr|tests)/[\w/]*\.\w+", code):
      if not (ROOT / file).exists():
        missing.append((path.name, file))
  assert not missing


def test_flags_of_commands_exist():
  main, programs = (ROOT / "spiel_cfr" / "__main__.py").read_text(), {}
  for path in (ROOT / "examples").glob("*.py"):
    programs[path.stem] = path.read_text()
  missing = []
  for path, code in code_in_text():
    for program, given in re.findall(r"python (?:-m |examples/)(\w+)(?:\.py)?((?: [^`]*)?)", code):
      flags = re.findall(r"--(\w+)", given)
      if program == "spiel_cfr":
        known = re.findall(r"\"--(\w+)\"", main)
      else:
        text = programs[program]
        # Flags of modules that programs share are theirs too.
        shared = re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE)
        text += "".join(programs.get(name, "") for name in shared)
        known = re.findall(r"DEFINE_\w+\(\s*\"(\w+)\"", text)
      missing += [(path.name, program, flag) for flag in flags if flag not in (*known, "help")]
  assert not missing


def test_all_programs_on_pages_are_run():
  """Blocks in another language are commands for a terminal."""
  languages = set()
  for path in PAGES:
    fences = re.findall(r"^ *```(.*)$", path.read_text(), re.MULTILINE)
    languages |= {fence or path.name for fence in fences[::2]}
  assert languages == {"python", "console"}


def test_links_lead_somewhere():
  broken = []
  for path in PAGES:
    for link in re.findall(r"!?\[[^\]]*\]\(([^)\s]+)\)", without_code(path.read_text())):
      target, _, anchor = link.partition("#")
      file = (path.parent / target).resolve() if target else path
      found = file.exists() and (not anchor or anchor in anchors(file))
      if not (found or link.startswith("https://")):
        broken.append((path.name, link))
  assert not broken


def test_every_public_method_has_a_docstring():
  """The docstring may be that of the overridden method."""
  modules = pkgutil.walk_packages(spiel_cfr.__path__, "spiel_cfr.")
  bare = []
  for module in map(importlib.import_module, [module.name for module in modules]):
    for cls in vars(module).values():
      if not inspect.isclass(cls) or cls.__module__ != module.__name__ or cls.__name__[0] == "_":
        continue
      for name, member in vars(cls).items():
        is_method = callable(member) or isinstance(member, _METHODS)
        if is_method and name[0] != "_" and not inspect.getdoc(getattr(cls, name)):
          bare.append(f"{module.__name__}.{cls.__name__}.{name}")
  assert not bare


@pytest.mark.parametrize("path", list(pages_with_programs()))
def test_programs_run(path, tmp_path):
  name = path.stem
  if name in _NEEDS:
    pytest.importorskip(_NEEDS[name], reason=f"not installed: pip install .[{_NEEDS[name]}]")
  programs = _CODE.findall(path.read_text())
  namespace = {"__name__": f"docs_{name}"}
  with contextlib.chdir(tmp_path):
    # Kernels are told apart by the file that they stand in.
    for number, code in enumerate(programs):
      file = tmp_path / f"{name}_{number}.py"
      file.write_text(code)
      exec(compile(code, str(file), "exec"), namespace)


sys.path.append(str(ROOT / "examples"))  # Where the example programs find each other.
import tables  # noqa: E402


def test_tables_are_those_of_the_results():
  results = tables.read(ROOT / "docs" / "results.jsonl")
  text = "".join(path.read_text() for path in PAGES)
  shown = re.findall(r"<!-- table: ([^:\n]+?)(?:: [^\n]+)? -->", text)
  assert set(shown) == set(results)
  assert text.count("<!-- end of table -->") == len(shown)
  for path in tables.pages(ROOT):
    assert tables.filled(path.read_text(), results) == path.read_text(), path.name


def test_tables_are_measured_anew(tmp_path):
  (tmp_path / "docs").mkdir()
  command = "python -c 'print(\"| a | b |\\\\n| --- | --- |\\\\n| c | 2 |\\\\n\")'"
  command = command.replace("\\\\", "\\")
  line = {
    "name": "one",
    "command": command,
    "number": 0,
    "on": "",
    "columns": ["a"],
    "rows": [["1"]],
  }
  (tmp_path / "docs" / "results.jsonl").write_text(json.dumps(line) + "\n")
  page = tmp_path / "README.md"
  page.write_text("x\n<!-- table: one: b | a -->\n<!-- end of table -->\ny\n")
  subprocess.run(
    [sys.executable, "examples/tables.py", "--run=one", f"--folder={tmp_path}"],
    cwd=ROOT,
    env=os.environ | {"PYTHONPATH": str(ROOT)},
    check=True,
  )
  assert "\n| b | a |\n| ---: | --- |\n| 2 | c |\n" in page.read_text()
  (result,) = tables.read(tmp_path / "docs" / "results.jsonl").values()
  assert result["rows"] == [["c", "2"]]
  assert result["on"]["cores"]


def test_the_report_on_rules_is_that_of_its_runs():
  results = tables.read(ROOT / "docs" / "results.jsonl").values()
  (command,) = {each["command"] for each in results if "--report" in each["command"]}
  measured = [dict(each) for each in results if each["command"] == command]
  tables.measure(command, measured)
  known = [each for each in results if each["command"] == command]
  assert [each["rows"] for each in measured] == [each["rows"] for each in known]


def test_every_page_is_listed():
  listed = (ROOT / "mkdocs.yml").read_text()
  readme = (ROOT / "README.md").read_text()
  theory = (DOCS / "theory" / "index.md").read_text()
  for path in PAGES:
    if path.name == "README.md":
      continue
    assert f": {name_of(path)}\n" in listed, path
    if path.parent.name == "theory" and path.stem != "index":
      assert f"({path.name})" in theory, path
    elif path.parent == DOCS and path.stem != "index":
      assert f"(docs/{path.name})" in readme, path


def test_every_example_is_listed():
  listed = (ROOT / "docs" / "examples.md").read_text()
  for path in (ROOT / "examples").glob("*.py"):
    if "if __name__" in path.read_text():
      assert f"`examples/{path.name}`" in listed, path.name
  for path in NOTEBOOKS:
    assert f"`notebooks/{path.name}`" in listed, path.name


@pytest.fixture(scope="module")
def site(tmp_path_factory):
  """Builds the site and returns its folder."""
  pytest.importorskip("mkdocs", reason="mkdocs-material is not installed: pip install .[docs]")
  folder = tmp_path_factory.mktemp("site")
  result = subprocess.run(
    [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
    cwd=ROOT,
    env=os.environ | {"PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"},
    capture_output=True,
    text=True,
    check=False,
  )
  assert result.returncode == 0, result.stderr
  return folder


@pytest.mark.slow
def test_site(site):
  for path in PAGES:
    if path.name != "README.md":
      assert (site / name_of(path)).with_suffix(".html").exists()
  names = (site / "api" / "top.html").read_text()
  for name in ("explore", "RestartedCFRSolver"):
    assert f'id="spiel_cfr.{name}"' in names, name
  # A constructor's arguments stand with its class.
  assert "first_attempt" in names
  assert 'id="spiel_cfr.errors.GameTooLargeError"' in (site / "api" / "errors.html").read_text()
  for page in site.rglob("*.html"):
    assert not re.search(r'(src|<link[^>]*href)="https?://', page.read_text()), page


@pytest.mark.slow
def test_site_opens_from_disk_with_its_search(site, tmp_path):
  window = explorer_pages.browser(tmp_path)
  try:
    window.get((site / "index.html").as_uri())
    box = window.find_element("css selector", ".md-search__input")
    box.click()
    box.send_keys("exploitability")
    for _ in range(200):
      time.sleep(0.05)
      links = window.find_elements("css selector", ".md-search-result__link")
      if links:
        break
    found = [link.get_attribute("href") for link in links]
    assert any("/api/evaluation.html" in link for link in found)
    asked = window.execute_script(
      "return performance.getEntriesByType('resource').map((each) => each.name)"
    )
    assert not [name for name in asked if not name.startswith("file:")]
    assert window.get_log("browser") == []
  finally:
    window.quit()


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks(path, tmp_path, monkeypatch):
  nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
  nbformat = pytest.importorskip("nbformat")
  monkeypatch.setenv("PYTHONPATH", str(ROOT))
  notebook = nbformat.read(path, as_version=4)
  (install,) = (
    cell for cell in notebook.cells if "install" in cell.get("metadata", {}).get("tags", ())
  )
  assert install.source == '%pip install --quiet "spiel_cfr[plot]"'
  notebook.cells.remove(install)
  nbclient.NotebookClient(
    notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}
  ).execute()
  shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
  assert shown
  assert not any(output.output_type == "error" for output in shown)
  assert list(tmp_path.glob("*.html"))
