"""Names in docstrings exist: in the code, or in a library that is used."""

import ast
import builtins
import io
import keyword
import pathlib
import re
import tokenize

PACKAGE = pathlib.Path(__file__).parent.parent / "spiel_cfr"
# Names in OpenSpiel, SciPy and others, and of files there.
_ELSEWHERE = {
  "AFCCEDist", "AFCEDist", "EFCCEDist", "EFCEDist", "_CFRSolver", "cc", "cce_dist", "ce_dist", "coords",
  "game_parameters", "num_iterations", "spiel", "to_tabular",
}  # fmt: skip


def docstrings_and_names():
  """Returns the docstrings of all modules, classes and functions with their files, and all names outside docstrings."""
  found, names = [], {*dir(builtins), *keyword.kwlist, *_ELSEWHERE}
  for path in PACKAGE.rglob("*.py"):
    source = path.read_text()
    names.update(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    documented = set()
    for node in ast.walk(ast.parse(source)):
      if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
        text = ast.get_docstring(node, clean=False)
        if text is not None:
          documented.add(text)
          found.append((path.name, text))
      if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value not in documented
      ):
        names.update(re.findall(r"\w+", node.value))
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    names.update(token.string for token in tokens if token.type == tokenize.NAME)
  return found, names


def test_names_in_code_font_exist():
  found, names = docstrings_and_names()
  missing = [
    (path, code)
    for path, text in found
    for code in re.findall(r"`([A-Za-z_][\w.]*)(?:\([^`]*\))?`", text)
    for word in code.split(".")
    if len(word) > 1 and word not in names
  ]
  assert len(found) > 2000
  assert missing == []
