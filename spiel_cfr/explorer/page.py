"""A page of the explorer: one HTML file with its programs, styles and data, which needs no server and no network.

All that comes from games is in compressed data, which the page's program turns into text, never into markup; the title
alone stands in the markup, escaped. Probabilities are rounded to 1/65535. Values are float32, more exact than the four
digits that a reader sees.
"""

import base64
import gzip
import html
import importlib.resources
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.explorer.page_content import Content, PublicState

_ASSETS = importlib.resources.files("spiel_cfr.explorer") / "assets"
_LIBRARIES = ("htm-preact-3.1.1.js", "uplot-1.6.32.js")
_PROGRAMS = ("data.js", "views.js", "page.js")
_STYLES = ("uplot-1.6.32.css", "page.css")
# Chance's and players' probabilities are written as 16 bits.
_ONE = 0xFFFF
Arrays = Mapping[str, npt.NDArray[Any]]


def render(content: Content) -> bytes:
  """Returns the page of a content."""
  groups: dict[str, Arrays] = {"tree": _fields(content.tree)}
  texts: dict[str, Any] = {"header": content.header, "names": content.names}
  if content.infosets is not None:
    groups["infosets"] = _fields(content.infosets)
    texts["infostates"] = content.infosets.infostates
    texts["labels"] = content.infosets.labels
  if content.public_states is not None:
    groups["states"] = _ranges(content.public_states)
    texts["grid"] = content.grid
    texts["boards"] = [" ".join(state.board) for state in content.public_states]
  sections = []
  for name, text in texts.items():
    sections.append(_section(name, json.dumps(text).encode(), ""))
  for name, arrays in groups.items():
    # Larger numbers first, so that each array is aligned to its own.
    ordered = sorted(arrays.items(), key=lambda item: -item[1].itemsize)
    layout = " ".join(f"{key}:{array.dtype.str[1:]}:{array.size}" for key, array in ordered)
    little = [array.astype(array.dtype.newbyteorder("<")).tobytes() for _, array in ordered]
    sections.append(_section(name, b"".join(little), layout))
  parts = {
    "title": html.escape(str(content.header["title"])),
    "style": "\n".join(map(_asset, _STYLES)),
    "data": "\n".join(sections),
    "script": "\n".join(f"<script>{_asset(name)}</script>" for name in (*_LIBRARIES, *_PROGRAMS)),
  }
  # In one pass, so that nothing in a part is taken for the place of another.
  return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _asset("page.html")).encode()


def _asset(name: str) -> str:
  return (_ASSETS / name).read_text(encoding="utf-8")


def _section(name: str, data: bytes, layout: str) -> str:
  """Returns data as an element of the page, which has letters and digits in it only."""
  text = base64.b64encode(gzip.compress(data, 6, mtime=0)).decode()
  return f'<script type="text/plain" id="data-{name}" data-layout="{layout}">{text}</script>'


def _fields(table: Any) -> Arrays:
  """Returns the arrays of a table in the types that the page reads."""
  return {
    name: _narrow(name, value)
    for name, value in vars(table).items()
    if isinstance(value, np.ndarray)
  }


def _narrow(name: str, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
  if array.dtype == bool:
    return array.astype(np.uint8).ravel()
  if array.dtype.kind == "f":
    # Reaches can be tiny, so they are not rounded to steps of the same size.
    return _float32(array)
  return array.astype(np.int8 if name in ("mover", "player") else np.int32)


def _float32(array: Float64s) -> npt.NDArray[np.float32]:
  """Returns float32; infinities, which float32 makes of huge numbers, become the largest."""
  most = np.finfo(np.float32).max
  return np.clip(array.ravel(), -most, most).astype(np.float32)


def _in_steps(array: Float64s) -> npt.NDArray[np.uint16]:
  """Returns numbers from 0 to 1 as integers; NaN, of hands that never come there, as 0."""
  steps = np.rint(np.nan_to_num(array.ravel()).clip(0, 1) * _ONE)
  return np.asarray(steps, np.uint16)


def _relative(weights: Float64s) -> npt.NDArray[np.float32]:
  return _float32(weights / max(weights.max(initial=0.0), 1e-300))


def _ranges(states: list[PublicState]) -> Arrays:
  """Returns all public states end to end.

  `counts` has a row per state: hands of each player, number of actions. Weights are in units of the range's largest.
  """

  def joined(arrays: Iterable[npt.NDArray[Any]], dtype: type) -> npt.NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype), *arrays])

  each = [own for state in states for own in state.ranges]
  counts = [
    (len(state.ranges[0].hands), len(state.ranges[1].hands), len(state.moves)) for state in states
  ]
  return {
    "counts": np.array(counts, np.int32).ravel(),
    "moves": np.array([move for state in states for move in state.moves], np.int32),
    "value": joined((_float32(own.value) for own in each), np.float32),
    "action_value": joined((_float32(state.action_value) for state in states), np.float32),
    "hands": joined((own.hands.astype(np.uint16) for own in each), np.uint16),
    "weight": joined((_relative(own.weight) for own in each), np.float32),
    "beside": joined((_relative(own.beside) for own in each), np.float32),
    "equity": joined((_in_steps(own.equity) for own in each), np.uint16),
    "probability": joined((_in_steps(state.probability) for state in states), np.uint16),
    "is_best": joined((state.is_best.ravel().astype(np.uint8) for state in states), np.uint8),
  }
