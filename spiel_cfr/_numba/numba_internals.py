"""Access to numba's internals: all undocumented parts of numba that the library uses.

If a version of numba lacks one of them, the library uses a slower documented function instead. The exception is
operators between the vectors of `simd`. `tests/_numba/test_numba_internals.py` removes the internals one by one.
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
# numba's name of a conversion without loss.
SAFE_CONVERSION: Any = _numba.core.typeconv.Conversion.safe
# The lock that is held while compiling. It is numba's own lock, because a second one could lead to a deadlock.
compiler_lock: Any = getattr(_numba.core.compiler_lock, "global_compiler_lock", threading.RLock())


def without_wrappers(*, python: bool, kernels: bool) -> dict[str, bool]:
  """Returns options that omit entry points of a compiled function.

  Args:
    python: whether Python calls the function, which needs one entry point.
    kernels: whether kernels call the function by its address, which needs another one.
  """
  omitted = {"no_cpython_wrapper": not python, "no_cfunc_wrapper": not kernels}
  return {name: True for name, omits in omitted.items() if omits and hasattr(_OPTIONS, name)}


def compile_inlined(function: Callable[..., Any], options: dict[str, Any]) -> Any:
  """Returns a numba function that is inlined in kernels and can't be called otherwise."""
  no_wrappers = without_wrappers(python=False, kernels=False)
  return _numba.njit(forceinline=True, **no_wrappers, **options)(function)


def add_operator(python_operator: Any, instruction: str, operands: Sequence[Any]) -> None:
  """Defines a Python operator in kernels, for two values of the same type, as an instruction of LLVM.

  Args:
    python_operator: the function in the module `operator`.
    instruction: the name of the instruction.
    operands: the numba types for which the operator is defined.
  """
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
  """Returns a function that calls the machine code, without numba's checks of argument types if possible."""
  try:
    entry: Callable[..., Any] = dispatcher.overloads[tuple(signature.args)].entry_point
  except (AttributeError, KeyError):
    return dispatcher  # type: ignore[no-any-return]
  return entry


def machine_code_address(dispatcher: Any, signature: Any, options: dict[str, Any]) -> int:
  """Returns the address at which kernels call the machine code. If numba hides it, compiles a second copy."""
  try:
    result = dispatcher.overloads[tuple(signature.args)]
    return int(result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name))
  except (AttributeError, KeyError):
    function: Any = _numba.cfunc(signature, **options)(dispatcher.py_func)
    # The dispatcher keeps the second copy alive.
    dispatcher.second_copy = function
    return int(function.address)
