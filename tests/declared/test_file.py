"""The file is found, or the one sentence says why it cannot be read."""

import errno
import os

import pytest

from opcheck.declared import find, load
from opcheck.errors import PolicyError
from tests.declared.examples import HEAD, LIMITS


def sentence_of(call, *args):
    with pytest.raises(PolicyError) as caught:
        call(*args)
    (only,) = caught.value.problems
    return only


def test_finds_the_nearest_registry_upward(tmp_path, monkeypatch):
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    (tmp_path / "registry.toml").write_text(HEAD)
    (tmp_path / "a" / "registry.toml").write_text(HEAD)
    assert find(deep) == tmp_path / "a" / "registry.toml"
    assert find(tmp_path) == tmp_path / "registry.toml"
    monkeypatch.chdir(deep)
    assert find() == tmp_path / "a" / "registry.toml"


def test_a_folder_of_that_name_is_not_a_registry(tmp_path):
    (tmp_path / "registry.toml").write_text(HEAD)
    (tmp_path / "a" / "registry.toml").mkdir(parents=True)
    assert find(tmp_path / "a") == tmp_path / "registry.toml"


def test_says_where_it_looked(tmp_path):
    assert sentence_of(find, tmp_path) == (
        f"no registry.toml in {tmp_path} or in a folder above it; start one there, or name one with --registry"
    )


def test_says_that_the_file_is_missing(tmp_path):
    path = tmp_path / "registry.toml"
    assert sentence_of(load, path, LIMITS) == (
        f"no registry at {path}; name one with --registry, or run below the folder of a registry.toml"
    )


def test_says_that_it_is_a_folder(tmp_path):
    assert sentence_of(load, tmp_path, LIMITS) == (
        f"{tmp_path} is a folder; the registry is a file, such as {tmp_path / 'registry.toml'}"
    )


def test_says_why_it_cannot_be_read(tmp_path):
    path = tmp_path / "registry.toml"
    path.symlink_to(path)
    assert sentence_of(load, path, LIMITS) == f"{path} cannot be read: {os.strerror(errno.ELOOP)}"


def test_says_which_byte_is_not_utf8(tmp_path):
    path = tmp_path / "registry.toml"
    path.write_bytes(HEAD.encode() + b"# caf\xe9\n")
    assert sentence_of(load, path, LIMITS) == "registry.toml:3: byte 0xe9 is not UTF-8; TOML files are UTF-8"
