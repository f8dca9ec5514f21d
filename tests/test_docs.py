"""What README, the documentation and the notebooks show is what happens."""

import contextlib
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# Programs on other pages want files that are not here, or run for long.
_RUN = ("README", "tour", "explorer", "extending")
_CODE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def without_code(text):
  return re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(path):
  """Returns what the headings of a page are called in addresses."""
  headings = re.findall(r"^#+ (.+)$", without_code(path.read_text()), re.MULTILINE)
  return {
    re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
  }


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_links_lead_somewhere(path):
  links = re.findall(r"!?\[[^\]]*\]\(([^)\s]+)\)", without_code(path.read_text()))
  for link in links:
    if link.startswith("https://"):
      continue
    target, _, anchor = link.partition("#")
    file = (path.parent / target).resolve() if target else path
    assert file.exists(), link
    assert not anchor or anchor in anchors(file), link


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_programs_are_programs(path):
  for number, code in enumerate(_CODE.findall(path.read_text())):
    compile(code, f"{path.name} {number}", "exec")


@pytest.mark.parametrize("name", _RUN)
def test_programs_run(name, tmp_path):
  (path,) = (each for each in PAGES if each.stem == name)
  programs = _CODE.findall(path.read_text())
  assert programs
  namespace = {"__name__": f"docs_{name}"}
  with contextlib.chdir(tmp_path):
    # Kernels are told apart by the file that they stand in.
    for number, code in enumerate(programs):
      file = tmp_path / f"{name}_{number}.py"
      file.write_text(code)
      exec(compile(code, str(file), "exec"), namespace)


def test_every_page_is_listed():
  listed = (ROOT / "mkdocs.yml").read_text()
  readme = (ROOT / "README.md").read_text()
  for path in PAGES:
    if path.name != "README.md":
      assert f" {path.name}\n" in listed, path.name
    if path.stem not in ("README", "index", "api"):
      assert f"(docs/{path.name})" in readme, path.name


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
      assert (tmp_path / f"{path.stem}.html").exists()
  api = (tmp_path / "api.html").read_text()
  for name in ("explore", "PolicyBot", "RestartedCFRSolver", "GameTooLargeError"):
    assert f'id="spiel_cfr.{name}"' in api or f'id="spiel_cfr.errors.{name}"' in api, name


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
