"""The parts of numba's internals that the library uses, all in one place.

If a version of numba lacks one of these, a slower documented function takes its place, except for operators between the
vectors of `simd`. `tests/_numba/test_numba_internals.py` removes them one by one.
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
# The kind of a conversion without loss.
SAFE_CONVERSION: Any = _numba.core.typeconv.Conversion.safe
# Held while compiling. A second lock beside numba's could lead to a deadlock.
compiler_lock: Any = getattr(_numba.core.compiler_lock, "global_compiler_lock", threading.RLock())


def without_wrappers(*, python: bool, passed: bool) -> dict[str, bool]:
  """Returns options that leave out the entry of a function for Python, or that for other kernels."""
  options = {"no_cpython_wrapper": not python, "no_cfunc_wrapper": not passed}
  return {name: True for name, spared in options.items() if spared and hasattr(_OPTIONS, name)}


def compile_inlined(function: Callable[..., Any], options: dict[str, Any]) -> Any:
  """Returns a numba function that is inlined in kernels and can't be called otherwise."""
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
  """Returns a function that calls the machine code; if possible, without numba's checks of argument types."""
  try:
    entry: Callable[..., Any] = dispatcher.overloads[tuple(signature.args)].entry_point
  except (AttributeError, KeyError):
    return dispatcher  # type: ignore[no-any-return]
  return entry


def machine_code_address(dispatcher: Any, signature: Any, options: dict[str, Any]) -> int:
  """Returns the address of the machine code for other kernels; it is compiled a second time if numba hides it."""
  try:
    result = dispatcher.overloads[tuple(signature.args)]
    return int(result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name))
  except (AttributeError, KeyError):
    function: Any = _numba.cfunc(signature, **options)(dispatcher.py_func)
    # A reference keeps the memory of the second copy.
    dispatcher.second_copy = function
    return int(function.address)
