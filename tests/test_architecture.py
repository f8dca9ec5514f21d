"""Architecture: imports between modules go one way, files are short, classes are abstract or final."""

import ast
import functools
import itertools
import pathlib
import re
import subprocess
import sys
import tomllib

_ROOT = pathlib.Path(__file__).parent.parent
_PACKAGE = "spiel_cfr"

# The modules and folders of the package. Each imports those above it, and modules of its own folder.
ORDER = (
  "errors",  # what a user's mistake raises
  "_util",  # arguments, files, copies, Ctrl-C, the machine
  "_numba",  # compiling, and arrays that kernels take
  "games.openspiel",  # a game of OpenSpiel, what of it is seen, and how it is walked
  "games.sequence_form",  # its tree as sequences, and passes over them
  "games.payoffs",  # the forms in which payoffs are kept, and their gradients
  "games.compiled",  # a game as arrays
  "games.vector",  # the same for private types: a public tree, with vectors over types
  "games.private_moves",  # the same for hidden moves: rectangles of sequences that fit a path of true states
  "poker",  # the same for poker, over vectors of hands
  "policies",  # between arrays and OpenSpiel's policies
  "games.compiling",  # the front door: from any game to a compiled one
  "exchange",  # files that other programs read
  "evaluation",  # best responses, NashConv, linear programs
  "certificates",  # bounds on values that hold exactly
  "regret_minimizers",  # what an infoset does
  "cfr",  # full-width solvers
  "stable_predictive",  # step sizes, and checks that a run keeps their promises
  "first_order",  # first-order methods for saddle points
  "correlated",  # correlated equilibria: solvers that tend to them, gaps, the best ones, a mediator
  "mccfr",  # Monte Carlo solvers
  "deep_cfr",  # Monte Carlo solvers that learn with networks
  "pyspiel_solvers",  # OpenSpiel's C++ names of some of them
  "catalogue",  # every solver by name
  "runs",  # long runs and many: stopping, traces, checkpoints, sweeps
  "abstraction",  # smaller games in which infosets play alike, and the best of them
  "parametric_games",  # parameters that are best for a player
  "quantal_response",  # what those play who err
  "solving",  # one call that picks a solver and runs it
  "exploitation",  # responses to a modeled opponent, with a known risk
  "atlas",  # solved games with numbers that are certain
  "bots",  # a policy as a bot of OpenSpiel's
  "search.gadgets",  # what makes it safe to solve a subgame again
  "search.gadget_games",  # one or more subgames behind gadgets, as one game
  "search.trees",  # public states, ranges and values
  "search.subgames",  # subgames solved again, alone or of a whole policy
  "search.play",  # bots that search
  "search.leaf_values",  # where values at leaves come from
  "search",  # what of search is public
  "explorer",  # pages on which one clicks through a solved game
  "referee",  # how good policies from elsewhere are
  "playing",  # hands against a policy, in the terminal
  "games",  # says what is in its folders
  "late_imports",  # what is public, and imported when it is first asked for
  "__init__",  # what is public
  "__main__",  # the command line
)
# Packages that need not be installed are imported where they are used.
_OPTIONAL = ("jax", "matplotlib", "optax", "ray")
# So is what takes long to import and few programs need.
_LATE = ("open_spiel.python.games",)
_MOST_LINES = 400


@functools.cache
def modules():
  """Returns the path of every module by its dotted name; a package goes by the name of its folder."""
  result = {}
  for path in sorted((_ROOT / _PACKAGE).rglob("*.py")):
    parts = path.relative_to(_ROOT).with_suffix("").parts
    result[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
  return result


@functools.cache
def tree(module):
  return ast.parse(modules()[module].read_text())


def room(module):
  """Returns the position in ORDER of a module's entry."""
  if module == _PACKAGE:
    return "__init__"
  name = module.removeprefix(_PACKAGE).removeprefix(".")
  while name and name not in ORDER:
    name = name.rpartition(".")[0]
  return name or module


def imported(node, module):
  """Returns the dotted names that an import statement reads, as precisely as the statement says."""
  if isinstance(node, ast.Import):
    return [alias.name for alias in node.names]
  prefix = ""
  if node.level:
    is_package = modules()[module].name == "__init__.py"
    parts = module.split(".")
    prefix = ".".join(parts[: len(parts) + is_package - node.level])
  source = ".".join(filter(None, (prefix, node.module)))
  names = [f"{source}.{alias.name}" for alias in node.names]
  return [name if name in modules() else source for name in names]


def import_statements(module):
  """Returns every import of a module wherever it is, those for type checkers alone included."""
  return [node for node in ast.walk(tree(module)) if isinstance(node, ast.Import | ast.ImportFrom)]


@functools.cache
def arrows():
  """Returns the modules of the package that each module imports."""
  return {
    module: sorted(
      {
        name
        for node in import_statements(module)
        for name in imported(node, module)
        if name.split(".")[0] == _PACKAGE
      }
    )
    for module in modules()
  }


def test_every_room_has_a_place():
  rooms = {room(module) for module in modules()}
  assert rooms == set(ORDER)


def test_imports_go_one_way():
  place = {name: index for index, name in enumerate(ORDER)}
  upward = [
    f"{module} imports {name}, which is built after it"
    for module, names in arrows().items()
    for name in names
    if place.get(room(name), -1) > place.get(room(module), len(ORDER))
  ]
  assert not upward


def test_no_module_is_imported_that_is_not_there():
  missing = [
    (module, name) for module, names in arrows().items() for name in names if name not in modules()
  ]
  assert not missing


def test_no_circles():
  """Imports within a folder and for type checkers alone have no cycles either."""
  done, path, circles = set(), [], []

  def visit(module):
    if module in path:
      circles.append(" -> ".join([*path[path.index(module) :], module]))
      return
    if module in done:
      return
    path.append(module)
    for name in arrows().get(module, []):
      visit(name)
    done.add(path.pop())

  for module in modules():
    visit(module)
  assert not circles, circles


def functions(module):
  return [
    node
    for node in ast.walk(tree(module))
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
  ]


def test_imports_stand_at_the_top():
  hidden = {
    f"{modules()[module]}:{node.lineno} imports {name} inside a function"
    for module in modules()
    for function in functions(module)
    for node in ast.walk(function)
    if isinstance(node, ast.Import | ast.ImportFrom)
    for name in imported(node, module)
    if name.split(".")[0] not in _OPTIONAL and name not in _LATE
  }
  assert not hidden


def test_nothing_is_imported_by_name():
  """No `importlib.import_module` or `__import__`, which these tests could not follow, but of a user's own game."""
  found = {
    (module, name)
    for module in modules()
    for node in ast.walk(tree(module))
    for name in [getattr(node, "id", getattr(node, "attr", None))]
    if name in ("import_module", "__import__")
  }
  # The package imports the rooms of `late_imports` when they are asked for.
  assert found == {("spiel_cfr.__main__", "import_module"), (_PACKAGE, "import_module")}


def test_late_imports_are_complete():
  """Every public name is there, and a first solve imports no room of `late_imports` and no part of SciPy."""
  code = """if True:
    import sys, spiel_cfr
    spiel_cfr.CFRPlusSolver("kuhn_poker").run(1)
    late = {"abstraction", "deep_cfr", "mccfr", "search", "solving"}
    assert not late & {name.removeprefix("spiel_cfr.") for name in sys.modules}
    assert not {"scipy.sparse", "scipy.optimize", "matplotlib", "jax", "ray"} & {*sys.modules}
    assert all(hasattr(spiel_cfr, name) for name in {*spiel_cfr.__all__, *late, *dir(spiel_cfr)})
    from spiel_cfr import late_imports
    names = {name for name in vars(late_imports) if "spiel_cfr." + name not in sys.modules}
    names = {name for name in names if not name.startswith("_")}
    assert names <= {*spiel_cfr.__all__}
    assert not hasattr(spiel_cfr, "no_such_name")
  """
  subprocess.run([sys.executable, "-c", code], check=True, cwd=_ROOT)


def test_optional_packages_are_extras():
  project = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
  extras = "\n".join(itertools.chain(*project["optional-dependencies"].values()))
  for name in _OPTIONAL:
    assert re.search(rf"^{name}\b", extras, re.MULTILINE), name


def test_files_are_short():
  lines = {str(path): len(path.read_text().splitlines()) for path in modules().values()}
  assert {path: count for path, count in lines.items() if count > _MOST_LINES} == {}


_LONGEST_CHAIN = 3


def last_name(node):
  """Returns the name of a class in an expression, without modules before it and type parameters behind it."""
  while isinstance(node, ast.Subscript):
    node = node.value
  return getattr(node, "id", getattr(node, "attr", None))


@functools.cache
def bases():
  """Returns the package's own bases of each of its classes, by name, but for those of exceptions."""
  found = {
    node.name: [last_name(base) for base in node.bases]
    for module in modules()
    for node in ast.walk(tree(module))
    if isinstance(node, ast.ClassDef) and module != f"{_PACKAGE}.errors"
  }
  return {name: [base for base in own if base in found] for name, own in found.items()}


def test_classes_are_abstract_or_final():
  """Instantiated classes have no subclasses."""
  inherited = {base for own in bases().values() for base in own}
  made = {
    f"{last_name(node.func)}"
    for module in modules()
    for node in ast.walk(tree(module))
    if isinstance(node, ast.Call)
  }
  assert not inherited & made


def test_chains_of_classes_are_short():
  def chain(name):
    return [name, *max((chain(base) for base in bases()[name]), key=len, default=[])]

  assert not [chain(name) for name in bases() if len(chain(name)) > _LONGEST_CHAIN]
