"""Pages of the explorer: read without a browser, or opened in a real one if installed."""

import base64
import gzip
import json
import os
import pathlib
import re
import shutil

import numpy as np
import pytest

_SECTION = re.compile(
  r'<script type="text/plain" id="data-(\w+)" data-layout="([^"]*)">([A-Za-z0-9+/=]*)</script>'
)
_FLAGS = (
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
)


def read(path):
  """Returns the sections of a page by name: dictionaries of arrays, or what JSON says."""
  result = {}
  for name, layout, text in _SECTION.findall(pathlib.Path(path).read_text(encoding="utf-8")):
    data = gzip.decompress(base64.b64decode(text))
    if not layout:
      result[name] = json.loads(data)
      continue
    arrays, offset = {}, 0
    for field in layout.split():
      key, dtype, size = field.split(":")
      arrays[key] = np.frombuffer(data, "<" + dtype, int(size), offset)
      assert offset % arrays[key].itemsize == 0
      offset += arrays[key].nbytes
    assert offset == len(data)
    result[name] = arrays
  return result


def browser(folder, width=1280, height=900):
  """Returns a new Chromium with an empty profile in a folder, or skips the test, which fails in CI, and says why."""
  webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
  chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
  if not (chromium and driver):
    missing = "There is no chromium with its chromedriver; Debian has chromium-driver."
    # Where changes are judged, nothing is left out.
    (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
  options = webdriver.ChromeOptions()
  options.binary_location = chromium
  for flag in (*_FLAGS, f"--user-data-dir={folder}", f"--window-size={width},{height}"):
    options.add_argument(flag)
  options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
  service = webdriver.chrome.service.Service(driver)
  return webdriver.Chrome(options=options, service=service)
