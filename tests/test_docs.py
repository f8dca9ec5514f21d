"""What README, the documentation and the notebooks show is what happens."""

import contextlib
import functools
import importlib
import inspect
import json
import os
import pathlib
import pkgutil
import re
import subprocess
import sys

import pytest

import spiel_cfr

ROOT = pathlib.Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", *DOCS.rglob("*.md")])
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
_CODE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


_METHODS = (property, functools.cached_property, classmethod, staticmethod)
_SLOW = ("deep", "abstraction", "parametric_games", "stable_predictive")


def pages_with_programs():
  """Yields the pages of the guide whose programs are run, in order, in a folder of their own."""
  for path in PAGES:
    if _CODE.search(path.read_text()):
      marks = [pytest.mark.slow] if path.stem in _SLOW else []
      yield pytest.param(path, id=path.stem, marks=marks)


def name_of(path):
  """Returns what a page is called in lists of pages."""
  return path.relative_to(DOCS).as_posix()


def without_code(text):
  return re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(path):
  """Returns what the headings of a page are called in addresses."""
  headings = re.findall(r"^#+ (.+)$", without_code(path.read_text()), re.MULTILINE)
  return {
    re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
  }


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
  """Its own, or that of the method which it overrides."""
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
  if name == "deep":
    pytest.importorskip("jax", reason="JAX is not installed: pip install .[jax]")
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


@pytest.mark.slow
def test_site(tmp_path):
  pytest.importorskip("mkdocs", reason="mkdocs-material is not installed: pip install .[docs]")
  result = subprocess.run(
    [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
    cwd=ROOT,
    env=os.environ | {"PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"},
    capture_output=True,
    text=True,
    check=False,
  )
  assert result.returncode == 0, result.stderr
  for path in PAGES:
    if path.name != "README.md":
      assert (tmp_path / name_of(path)).with_suffix(".html").exists()
  names = (tmp_path / "api" / "top.html").read_text()
  for name in ("explore", "RestartedCFRSolver"):
    assert f'id="spiel_cfr.{name}"' in names, name
  # A constructor's arguments stand with its class.
  assert "first_attempt" in names
  assert 'id="spiel_cfr.errors.GameTooLargeError"' in (tmp_path / "api" / "errors.html").read_text()
  for page in tmp_path.rglob("*.html"):
    assert not re.search(r'(src|<link[^>]*href)="https?://', page.read_text()), page


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
