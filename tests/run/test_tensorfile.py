"""The file is read back by the format's description: a length, a JSON header, the bytes."""

import json

import pytest
import torch

from opcheck.run.tensorfile import NAMES, write_tensors


@pytest.mark.parametrize("dtype", NAMES)
def test_every_element_type_comes_back_with_its_bits(dtype, tmp_path):
    values = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(dtype)
    write_tensors(tmp_path / "t", {"first": torch.ones(3, dtype=torch.uint8), "x": values, "none": values[:0]})
    data = (tmp_path / "t").read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    assert (8 + size) % 8 == 0
    assert header["x"]["dtype"] == NAMES[dtype]
    assert header["x"]["shape"] == [2, 3]
    assert header["none"]["data_offsets"][0] == header["none"]["data_offsets"][1]
    begin, end = header["x"]["data_offsets"]
    back = torch.frombuffer(bytearray(data[8 + size + begin : 8 + size + end]), dtype=torch.uint8).view(dtype)
    assert torch.equal(back.view(torch.uint8), values.reshape(-1).view(torch.uint8))
    assert end == 3 + 6 * dtype.itemsize


def test_special_values_keep_their_bits(tmp_path):
    values = torch.tensor([float("nan"), -0.0, float("inf"), 1e-45])
    write_tensors(tmp_path / "t", {"x": values})
    assert (tmp_path / "t").read_bytes().endswith(values.numpy().tobytes())
