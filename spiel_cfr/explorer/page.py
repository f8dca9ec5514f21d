"""HTML of a page of the explorer: one file with its scripts, styles and data.

A game's names of moves and infosets are part of the compressed data. The page's script inserts them as text, so they
cannot become markup. Only the title is part of the markup; it is escaped. Probabilities of public states are rounded to
1 / 65,535. Values are float32, which is more exact than the four digits shown.
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
from spiel_cfr.explorer.page_content import Content, PageState

_ASSETS = importlib.resources.files("spiel_cfr.explorer") / "assets"
_LIBRARIES = ("htm-preact-3.1.1.js", "uplot-1.6.32.js")
_PROGRAMS = ("data.js", "views.js", "page.js")
_STYLES = ("uplot-1.6.32.css", "page.css")
# Probability 1 as an integer of 16 bits.
_ONE = 0xFFFF
Arrays = Mapping[str, npt.NDArray[Any]]


def render(content: Content) -> bytes:
  """Returns the HTML of a page."""
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
    # Arrays of wider types come first, so that every array is aligned to its type.
    ordered = sorted(arrays.items(), key=lambda item: -item[1].itemsize)
    layout = " ".join(f"{key}:{array.dtype.str[1:]}:{array.size}" for key, array in ordered)
    data = [array.astype(array.dtype.newbyteorder("<")).tobytes() for _, array in ordered]
    sections.append(_section(name, b"".join(data), layout))
  parts = {
    "title": html.escape(str(content.header["title"])),
    "style": "\n".join(map(_asset, _STYLES)),
    "data": "\n".join(sections),
    "script": "\n".join(f"<script>{_asset(name)}</script>" for name in (*_LIBRARIES, *_PROGRAMS)),
  }
  # A single pass: placeholders inside the text of a part are not replaced.
  return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _asset("page.html")).encode()


def _asset(name: str) -> str:
  """Returns the text of a file of the folder `assets`."""
  return (_ASSETS / name).read_text(encoding="utf-8")


def _section(name: str, data: bytes, layout: str) -> str:
  """Returns compressed data as an element of the page, in base 64.

  Args:
    name: name of the data in the page's script.
    data: the bytes: JSON, or arrays end to end.
    layout: "key:type:size" of each array, separated by spaces; empty for JSON.
  """
  text = base64.b64encode(gzip.compress(data, 6, mtime=0)).decode()
  return f'<script type="text/plain" id="data-{name}" data-layout="{layout}">{text}</script>'


def _fields(table: Any) -> Arrays:
  """Returns the arrays of a dataclass, converted to types that the page's script reads."""
  return {
    name: _narrow(name, value)
    for name, value in vars(table).items()
    if isinstance(value, np.ndarray)
  }


def _narrow(name: str, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
  """Returns a flat array of a type that the page's script reads."""
  if array.dtype == bool:
    return array.astype(np.uint8).ravel()
  if array.dtype.kind == "f":
    # Reach probabilities can be tiny, so they are not rounded to 1/65535.
    return _float32(array)
  return array.astype(np.int8 if name in ("mover", "player") else np.int32)


def _float32(array: Float64s) -> npt.NDArray[np.float32]:
  """Returns a flat float32 array; numbers beyond its range become its largest numbers."""
  most = np.finfo(np.float32).max
  return np.clip(array.ravel(), -most, most).astype(np.float32)


def _in_uint16(array: Float64s) -> npt.NDArray[np.uint16]:
  """Returns numbers from 0 to 1 as flat integers of 16 bits; NaN, at unreachable hands, becomes 0."""
  steps = np.rint(np.nan_to_num(array.ravel()).clip(0, 1) * _ONE)
  return np.asarray(steps, np.uint16)


def _relative(weights: Float64s) -> npt.NDArray[np.float32]:
  """Returns weights divided by the largest of them."""
  return _float32(weights / max(weights.max(initial=0.0), 1e-300))


def _ranges(states: list[PageState]) -> Arrays:
  """Returns the arrays of all public states, concatenated.

  `counts` has three numbers for each state: hands of player 0, hands of player 1, actions. The weights of a range are
  divided by the largest of them.
  """

  def joined(arrays: Iterable[npt.NDArray[Any]], dtype: type) -> npt.NDArray[Any]:
    # The empty array keeps the type if there are no states.
    return np.concatenate([np.zeros(0, dtype), *arrays])

  ranges = [private_range for state in states for private_range in state.ranges]
  counts = [
    (len(state.ranges[0].hands), len(state.ranges[1].hands), len(state.moves)) for state in states
  ]
  return {
    "counts": np.array(counts, np.int32).ravel(),
    "moves": np.array([move for state in states for move in state.moves], np.int32),
    "value": joined((_float32(private_range.value) for private_range in ranges), np.float32),
    "action_value": joined((_float32(state.action_value) for state in states), np.float32),
    "hands": joined((private_range.hands.astype(np.uint16) for private_range in ranges), np.uint16),
    "weight": joined((_relative(private_range.weight) for private_range in ranges), np.float32),
    "opponent_weight": joined(
      (_relative(private_range.opponent_weight) for private_range in ranges), np.float32
    ),
    "equity": joined((_in_uint16(private_range.equity) for private_range in ranges), np.uint16),
    "probability": joined((_in_uint16(state.probability) for state in states), np.uint16),
    "is_best": joined((state.is_best.ravel().astype(np.uint8) for state in states), np.uint8),
  }
