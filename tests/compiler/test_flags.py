"""What XLA is told stands beside what the user has said, and never against it."""

import os

from dqd.compiler import flags


def test_networks_of_images_are_tuned_less_unless_the_user_has_said_how(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_gpu_autotune_level=4 --xla_dump_to=there")
    flags.for_networks()
    flags.for_networks()
    said = os.environ["XLA_FLAGS"].split()
    assert said == ["--xla_gpu_autotune_level=4", "--xla_dump_to=there", "--xla_gpu_enable_triton_gemm=false"]
    monkeypatch.delenv("XLA_FLAGS")
    flags.for_networks()
    assert os.environ["XLA_FLAGS"].split() == ["--xla_gpu_enable_triton_gemm=false", "--xla_gpu_autotune_level=2"]
