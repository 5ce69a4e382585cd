"""Reading what XLA compiled."""

import jax
import jax.numpy as jnp
import pytest

from dqd.compiler.program import Operation, Program

TEXT = """HloModule jit_f, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

%fused_computation (param_0: f32[8,4]) -> f32[8,4] {
  %param_0 = f32[8,4]{1,0} parameter(0)
  ROOT %add.1 = f32[8,4]{1,0} add(%param_0, %param_0)
}

%branch_a (p: f32[8,4]) -> f32[8,4] {
  ROOT %p = f32[8,4]{1,0} parameter(0)
}

%branch_b.2 (p.1: f32[8,4]) -> f32[8,4] {
  %p.1 = f32[8,4]{1,0} parameter(0)
  %copy.3 = f32[8,4]{1,0} copy(%p.1)
  ROOT %eigh.1 = f32[8,4]{1,0} custom-call(%copy.3), custom_call_target="lapack_ssyevd_ffi"
}

%body (carry: (s32[], f32[8,4])) -> (s32[], f32[8,4]) {
  %carry = (s32[], f32[8,4]{1,0}) parameter(0)
  %get-tuple-element.1 = f32[8,4]{1,0} get-tuple-element(%carry), index=1
  %fusion.1 = f32[8,4]{1,0} fusion(%get-tuple-element.1), kind=kLoop, calls=%fused_computation
  %cond.1 = f32[8,4]{1,0} conditional(%i, %fusion.1, %fusion.1), branch_computations={%branch_a, %branch_b.2}
  ROOT %tuple.1 = (s32[], f32[8,4]{1,0}) tuple(%i, %cond.1)
}

%condition (carry.1: (s32[], f32[8,4])) -> pred[] {
  %carry.1 = (s32[], f32[8,4]{1,0}) parameter(0)
  ROOT %compare.1 = pred[] fusion(%carry.1), kind=kLoop, calls=%fused_computation
}

ENTRY %main (x: f32[8,4]) -> f32[8,4] {
  %x = f32[8,4]{1,0} parameter(0)
  %copy.9 = f32[8,4]{1,0} copy(%x)
  %while.1 = (s32[], f32[8,4]{1,0}) while(%copy.9), condition=%condition, body=%body
  ROOT %result = f32[8,4]{1,0} get-tuple-element(%while.1), index=1
}
"""


def test_the_kernels_of_a_loop_and_of_the_longest_branch_in_it():
    program = Program.read(TEXT)
    assert program.loop() == "body"
    assert [kernel.kind for kernel in program.kernels("body")] == ["fusion", "conditional", "copy", "custom-call"]
    assert [kernel.library for kernel in program.kernels("body")] == [None, None, None, "lapack_ssyevd_ffi"]
    assert len(program.kernels()) == 6  # with the condition of the loop, and the copy before it


def test_copies_by_their_size_everywhere_or_in_the_loop():
    program = Program.read(TEXT)
    assert [copy.name for copy in program.copies(128)] == ["copy.3", "copy.9"]
    assert [copy.name for copy in program.copies(128, "body")] == ["copy.3"]
    assert program.copies(129) == []


@pytest.mark.parametrize(
    ("shape", "size"),
    [("f32[]", 4), ("pred[35,2]{1,0}", 70), ("(s32[], bf16[3,5]{1,0})", 34), ("f64[0]{0}", 0)],
)
def test_sizes(shape, size):
    assert Operation("x", shape, "copy", "").bytes == size


def test_a_program_of_this_very_xla():
    def f(x):
        return jax.lax.fori_loop(0, 10, lambda i, x: jnp.sin(x).at[i].set(0.0), x)

    program = Program.read(jax.jit(f, donate_argnums=0).lower(jnp.zeros(3001)).compile().as_text())
    assert 1 <= len(program.kernels(program.loop())) <= 6
    assert program.copies(3001 * 4, program.loop()) == []


def test_a_program_without_a_loop():
    with pytest.raises(ValueError, match="no loop"):
        Program.read(TEXT.replace(" while(", " fusion(")).loop()
