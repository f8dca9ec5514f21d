"""What is used of numba that numba does not promise to keep, all of it here.

Where a version of numba lacks one of these, something slower that is documented takes its place, but for the operators
between the vectors of `simd`. `tests/_numba/test_numba_internals.py` takes them away one by one.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numba
import numba.core.compiler_lock
import numba.core.options
import numba.core.typeconv
import numba.core.typing.templates
import numba.extending

# numba's own annotations don't cover these.
_numba: Any = numba
_extending: Any = numba.extending
_OPTIONS: Any = getattr(_numba.core.options, "DefaultOptions", None)
# In place of the class that says how types convert to each other.
SAFE_CONVERSION: Any = _numba.core.typeconv.Conversion.safe
# Held by whoever compiles. Another lock than numba's could wait for it while somebody waits for the other.
compiler_lock: Any = getattr(_numba.core.compiler_lock, "global_compiler_lock", threading.RLock())


def without_wrappers(*, python: bool, passed: bool) -> dict[str, bool]:
  """Returns options that spare the code with which Python, or other kernels, would call a function."""
  options = {"no_cpython_wrapper": not python, "no_cfunc_wrapper": not passed}
  return {name: True for name, spared in options.items() if spared and hasattr(_OPTIONS, name)}


def compile_inlined(function: Callable[..., Any], options: dict[str, Any]) -> Any:
  """Returns a function of numba's that is inlined in those that call it, and that nobody else can call."""
  spared = without_wrappers(python=False, passed=False)
  return _numba.njit(forceinline=True, **spared, **options)(function)


def add_operator(python_operator: Any, instruction: str, operands: Sequence[Any]) -> None:
  """Lets kernels apply an operator to two values of one of these types, by an instruction of LLVM's."""
  templates = _numba.core.typing.templates
  cases = [templates.signature(operand, operand, operand) for operand in operands]
  name = f"spiel_cfr {instruction}"
  templates.infer_global(python_operator)(
    templates.make_concrete_template(name, python_operator, cases)
  )

  def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return getattr(builder, instruction)(*arguments)

  for operand in operands:
    _extending.lower_builtin(python_operator, operand, operand)(generate)


def python_entry(dispatcher: Any, signature: Any) -> Callable[..., Any]:
  """Returns a function that unpacks its arguments and calls the machine code, or looks at their types first."""
  try:
    entry: Callable[..., Any] = dispatcher.overloads[tuple(signature.args)].entry_point
  except (AttributeError, KeyError):
    return dispatcher  # type: ignore[no-any-return]
  return entry


def machine_code_address(dispatcher: Any, signature: Any, options: dict[str, Any]) -> int:
  """Returns where the machine code is that other kernels call, compiled a second time if numba doesn't say it."""
  try:
    result = dispatcher.overloads[tuple(signature.args)]
    return int(result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name))
  except (AttributeError, KeyError):
    function: Any = _numba.cfunc(signature, **options)(dispatcher.py_func)
    # Memory of a function that nobody refers to is freed.
    dispatcher.second_copy = function
    return int(function.address)
