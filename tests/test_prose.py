"""Prose of docs and docstrings: lengths of sentences, first words, pronouns, and types of listed attributes."""

import ast
import functools
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
MODULES = sorted((ROOT / "spiel_cfr").rglob("*.py"))
_MOST_WORDS = 40
_FIRST_WORDS = {
  "How", "If", "That", "What", "When", "Where", "Whether", "Which", "Who", "Whose", "Why",
}  # fmt: skip
_PRONOUNS = re.compile(r"\b(nobody|somebody|whoever|anybody)\b", re.IGNORECASE)
_ITEM = re.compile(r"^([-*+>]|\d+\.) ")
_SENTENCE_END = re.compile(r"(?<=[.!?:])[\"')*]*\s+(?=[\"'(*\[]*[A-Z`0-9]|\"[a-z])")
# How a description begins that names a type: "int64 (rows,)", "A list of floats", "per player, bool", "Layout. The".
_TYPE = re.compile(
  r"(?i:(a|an|one|for each \w+|per \w+|the|pair of|two|NumPy|sparse),? )*"
  r"((?i:u?int\d*|float\d*|bool|str|strings?|numbers?|arrays?|lists?|tuples?|dict|dictionary|set|function|SciPy)\b"
  r"|`[A-Z]|[A-Z]\w+(\[.*?\])?\. )"
)


def blocks(text):
  """Yields the paragraphs, list items, table cells and headings of a Markdown text: the first line's number, the text.

  Fenced code, comments, formulas and output are left out; formulas are indented by four spaces after an empty line, by
  eight in a list item. Code in a line counts as one word, a link or an image as its text.
  """

  def empty(match):
    return "\n" * match[0].count("\n")

  text = re.sub(r"^( *)```.*?^\1```", empty, text, flags=re.MULTILINE | re.DOTALL)
  text = re.sub(r"<!--.*?-->", empty, text, flags=re.DOTALL)
  text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
  text = re.sub(r"`[^`]+`", lambda match: "`code`" + empty(match), text)
  block, start, in_item, after_gap = [], 1, False, True
  for number, line in enumerate([*text.splitlines(), ""], start=1):
    content = line.strip()
    is_item = bool(_ITEM.match(content))
    is_formula = after_gap and line.startswith(" " * (8 if in_item else 4))
    if not content or is_item or is_formula or content[0] in "#|":
      if block:
        yield start, " ".join(block)
      block = []
    if content.startswith(("|", "#")):
      yield from ((number, cell.strip()) for cell in content.split("|"))
    elif content and not is_formula:
      start = start if block else number
      block.append(_ITEM.sub("", content))
    in_item = is_item or (in_item and (not content or line.startswith(" ")))
    after_gap = not content or is_formula


def sections(docstring):
  """Returns the body of a docstring, and the entries of its sections by the section's name."""
  docstring = re.sub(r"^ *>>> .*?(\n\s*\n|\Z)", "\n", docstring, flags=re.MULTILINE | re.DOTALL)
  parts = re.split(r"^(Args|Attributes|Raises|Returns|Yields):\n", docstring, flags=re.MULTILINE)
  entries = {}
  for name, text in zip(parts[1::2], parts[2::2], strict=True):
    entries[name] = re.findall(r"^  (?! )(.*(?:\n    .*|\n(?=\n    ))*)", text, re.MULTILINE)
  return parts[0], entries


def sentences(block):
  """Returns the sentences of a block; a colon before a capital letter, a number or code ends one."""
  return _SENTENCE_END.split(block)


def long_sentences(text):
  """Returns the sentences of a Markdown text that are too long, with the number of their paragraph's first line."""
  return [
    (line, sentence)
    for line, block in blocks(text)
    for sentence in sentences(block)
    if len(re.findall(r"\S*\w\S*", sentence)) > _MOST_WORDS
  ]


def pronouns(source):
  lines = enumerate(source.splitlines(), start=1)
  return [(number, line.strip()) for number, line in lines if _PRONOUNS.search(line)]


@functools.cache
def documented(source):
  """Returns the modules, classes and functions of a source text that have docstrings, with these."""
  kinds = ast.Module | ast.ClassDef | ast.FunctionDef
  nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
  return [(node, ast.get_docstring(node)) for node in nodes if ast.get_docstring(node)]


def long_sentences_of_docstrings(source):
  """Returns the sentences of docstrings that are too long, with the line of the class or function."""
  found = []
  for node, docstring in documented(source):
    body, entries = sections(docstring)
    texts = [body, *(entry.replace("\n    ", "\n") for each in entries.values() for entry in each)]
    line = getattr(node, "lineno", 1)
    found += [(line, sentence) for text in texts for _, sentence in long_sentences(text)]
  return found


def bad_first_words(source):
  """Returns the first line of the module's docstring if its first word names nothing."""
  lines = [text.split("\n")[0] for node, text in documented(source) if isinstance(node, ast.Module)]
  return [(1, line) for line in lines if line.split(" ")[0].strip(",") in _FIRST_WORDS]


def annotated(node):
  """Returns the names of a class's attributes whose type its source shows."""
  names = set()
  for each in ast.walk(node):
    if isinstance(each, ast.FunctionDef) and each.returns is not None:
      names.add(each.name)
    # An argument of the constructor gives its type to the attribute of its name.
    if isinstance(each, ast.FunctionDef) and each.name == "__init__":
      names |= {argument.arg for argument in [*each.args.args, *each.args.kwonlyargs]}
    if isinstance(each, ast.AnnAssign):
      names.add(each.target.attr if isinstance(each.target, ast.Attribute) else each.target.id)
    # So do a literal and the call of a class. Members of enumerations are literals.
    if isinstance(each, ast.Assign) and shows_type(each.value):
      names |= {getattr(target, "attr", getattr(target, "id", None)) for target in each.targets}
  return names


def shows_type(value):
  if isinstance(value, ast.Call):
    called = ast.unparse(value.func).split(".")[-1]
    return called[0].isupper() or called in {"len", "int", "float", "bool", "str", "auto"}
  return isinstance(
    value, ast.Constant | ast.List | ast.ListComp | ast.Dict | ast.DictComp | ast.Compare
  )


def untyped_attributes(source):
  """Returns the listed attributes without a type: neither their description nor the class gives one."""
  found = []
  for node, docstring in documented(source):
    listed = sections(docstring)[1].get("Attributes", [])
    known = annotated(node) if listed else set()
    for entry in listed:
      names, _, description = entry.partition(": ")
      if not _TYPE.match(description):
        missing = set(names.split(", ")) - known
        found += [(node.lineno, f"{node.name}.{name}") for name in sorted(missing)]
  return found


def in_lines(path, found):
  """Returns a message with the file, the line and the text of each finding."""
  name = path.relative_to(ROOT).as_posix()
  return "".join(f"\n{name}:{line}: {text}" for line, text in found)


def in_modules(find):
  """Returns a message with what a function finds in the sources of the package."""
  return "".join(in_lines(path, find(path.read_text())) for path in MODULES)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_sentences_of_pages_are_short(path):
  found = long_sentences(path.read_text())
  assert not found, in_lines(path, found)


def test_sentences_of_docstrings_are_short():
  found = in_modules(long_sentences_of_docstrings)
  assert not found, found


def test_module_docstrings_begin_with_a_term():
  found = in_modules(bad_first_words)
  assert not found, found


def test_actors_are_named():
  found = in_modules(pronouns)
  assert not found, found


def test_listed_attributes_have_types():
  found = in_modules(untyped_attributes)
  assert not found, found


LONG = " ".join(["word"] * 41)
PAGE = f"""# Title

Short. So {LONG}.

- {LONG}
  and more
- short

| {LONG} | short |
| --- | --- |

```python
{LONG}
```

    {LONG}

Words before a list of two:

1. {" ".join(["word"] * 30)}
2. {" ".join(["word"] * 30)}

{" ".join(["word"] * 30)} [text]({LONG}) `{LONG}` {" ".join(["word"] * 8)}.
"""


def test_long_sentences_are_found():
  found = long_sentences(PAGE)
  assert found == [(3, f"So {LONG}."), (5, f"{LONG} and more"), (9, LONG)]


SOURCE = f'''"""What a thing is, that nobody knows."""

class Thing:
  """A thing.

      {LONG}

  {LONG}.

  Attributes:
    width: the width.
    height: int64 (things,). {LONG}
      and more.
    depth: how deep it is.
    size: the size.
    kept: as given.

  >>> Thing()
  {LONG}
  """

  depth: float

  def __init__(self, kept: int) -> None:
    self.kept = kept
    self.size = 0
    self.width = self.height = kept / 2
'''


def test_planted_faults_of_docstrings_are_found():
  sentences_found = long_sentences_of_docstrings(SOURCE)
  assert [line for line, _ in sentences_found] == [3, 3]
  assert [sentence[-9:] for _, sentence in sentences_found] == ["ord word.", "and more."]
  assert in_lines(ROOT / "a.py", sentences_found[:1]) == f"\na.py:3: {LONG}."
  assert bad_first_words(SOURCE) == [(1, "What a thing is, that nobody knows.")]
  assert pronouns(SOURCE) == [(1, '"""What a thing is, that nobody knows."""')]
  assert untyped_attributes(SOURCE) == [(3, "Thing.width")]


def test_types_are_recognized():
  for description in (
    "int64 (rows,). The rows.",
    "A list of rows.",
    "`Rows`. All.",
    "per player, float64.",
    "for each depth, int64 (nodes,).",
    "Layout. The numbers of sequences.",
  ):
    assert _TYPE.match(description), description
  for description in ("The rows.", "as given.", "whether it is a number", "the layout."):
    assert not _TYPE.match(description), description
