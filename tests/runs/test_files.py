"""Writing replaces regular files, also through links, and nothing else."""

import os
import signal
import subprocess
import sys
import time

import pytest

import spiel_cfr
from spiel_cfr import __main__, errors
from spiel_cfr._util import files


def write(path, content=b"new"):
  with files.replacing(path) as file:
    file.write(content)


def test_links_are_followed(tmp_path):
  folder = tmp_path / "far"
  folder.mkdir()
  target, link = folder / "target", tmp_path / "link"
  target.write_bytes(b"old")
  link.symlink_to(target)
  write(link)
  assert link.is_symlink()
  assert target.read_bytes() == b"new"
  # So are those to what is not there yet.
  (tmp_path / "dangling").symlink_to(folder / "made")
  write(tmp_path / "dangling")
  assert (folder / "made").read_bytes() == b"new"
  assert sorted(each.name for each in folder.iterdir()) == ["made", "target"]


def test_links_in_a_circle(tmp_path):
  one, other = tmp_path / "one", tmp_path / "other"
  one.symlink_to(other)
  other.symlink_to(one)
  with pytest.raises(OSError, match="symbolic links"):
    write(one)
  assert one.is_symlink()


def test_the_mode_stays(tmp_path):
  path = tmp_path / "file"
  path.write_bytes(b"old")
  path.chmod(0o640)
  write(path)
  assert path.stat().st_mode & 0o777 == 0o640
  assert path.read_bytes() == b"new"


@pytest.mark.parametrize("lead", ["itself", "by a link"])
def test_pipes_and_folders_are_left_alone(tmp_path, lead):
  pipe, folder = tmp_path / "pipe", tmp_path / "folder"
  os.mkfifo(pipe)
  folder.mkdir()
  for path, word in ((pipe, "regular file"), (folder, "directory")):
    if lead == "by a link":
      (tmp_path / "link").unlink(missing_ok=True)
      (tmp_path / "link").symlink_to(path)
      path = tmp_path / "link"
    for use in (write, files.check_writable):
      with pytest.raises(OSError, match=word):
        use(path)
  assert pipe.is_fifo()
  assert not list(tmp_path.glob("*.tmp"))
  with pytest.raises(OSError, match="regular file"):
    spiel_cfr.CFRSolver("kuhn_poker").save(pipe)
  assert __main__.main(["solve", "kuhn_poker", f"--policy={pipe}"]) == 1


def test_a_folder_that_is_missing_is_named(tmp_path):
  with pytest.raises(FileNotFoundError) as error:
    write(tmp_path / "nowhere" / "x.html")
  assert str(error.value).endswith(f"'{tmp_path}/nowhere/x.html'")


_KILLED = """
import sys
from spiel_cfr._util import files
with files.replacing(sys.argv[1]) as file:
  file.write(b"half")
  file.flush()
  print(flush=True)
  sys.stdin.read()
"""


def test_remains_of_killed_writers_are_removed(tmp_path):
  path = tmp_path / "file[1].npz"
  command = [sys.executable, "-c", _KILLED, str(path)]
  pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
  writers = [subprocess.Popen(command, **pipes) for _ in range(2)]
  for writer in writers:
    writer.stdout.readline()
  for each in tmp_path.glob("*.tmp"):
    os.utime(each, (time.time() - 60,) * 2)
  dead, living = writers
  dead.send_signal(signal.SIGKILL)
  dead.wait()
  assert len(list(tmp_path.glob("*.tmp"))) == 2
  write(path)
  # Of the one that lives, whose file is locked, nothing is lost.
  assert len(list(tmp_path.glob("*.tmp"))) == 1
  living.communicate(b"")
  assert living.returncode == 0
  assert path.read_bytes() == b"half"
  assert [each.name for each in tmp_path.iterdir()] == [path.name]
  dead.communicate()


def test_names_that_are_none(tmp_path):
  for path in ("", None, 3, "a\0b"):
    with pytest.raises(errors.ArgumentError):
      write(path)
  with pytest.raises(IsADirectoryError):
    write("/")
