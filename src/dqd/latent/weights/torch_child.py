"""Reads a PyTorch checkpoint in a process of its own: `python torch_child.py SOURCE TARGET [--trust]`.

Writes its tensors as safetensors; names of nested dictionaries are joined by "/". Without --trust only tensors are
unpickled and nothing of the file is run. A script: it imports nothing of dqd, and nobody imports it.
"""

import pickle
import sys
from collections.abc import Iterator, Mapping
from typing import Any

NEEDS_TRUST, DAMAGED, NO_TORCH = 3, 4, 5  # exit codes


class Unpickler(pickle.Unpickler):
    """Networks in NVIDIA's pickles carry their source along: they become dictionaries of tensors, and it is not run."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("torch_utils.persistence", "_reconstruct_persistent_obj"):
            return lambda meta: state_dict(meta["state"])
        return dict if module == "dnnlib.util" else super().find_class(module, name)


def state_dict(module: Mapping[str, Any]) -> dict[str, Any]:
    """That of a PyTorch module, from its attributes."""
    found = {**module.get("_parameters", {}), **module.get("_buffers", {})}
    for name, child in module.get("_modules", {}).items():
        found |= {f"{name}.{inner}": value for inner, value in child.items()}
    return found


def main() -> int:
    source, target, *options = sys.argv[1:]
    try:
        import torch
    except ImportError:
        return NO_TORCH
    from safetensors.torch import save_file

    def tensors(thing: object, prefix: str = "") -> Iterator[tuple[str, torch.Tensor]]:
        if isinstance(thing, torch.nn.Module):
            thing = thing.state_dict()
        for name, value in thing.items() if isinstance(thing, Mapping) else ():
            if isinstance(value, torch.Tensor):
                if value.is_floating_point():
                    yield f"{prefix}{name}", value.detach().to("cpu", torch.float32).contiguous().clone()
            else:
                yield from tensors(value, f"{prefix}{name}/")

    def trusted() -> object:
        with open(source, "rb") as file:
            zipped = file.read(2) == b"PK"
            file.seek(0)
            found = 0 if zipped else Unpickler(file).load()
        if not isinstance(found, int):  # PyTorch's old files begin with a number
            return found
        return torch.load(source, map_location="cpu", weights_only=False)  # the user said so

    try:
        found = trusted() if "--trust" in options else torch.load(source, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, ImportError, AttributeError) as error:  # the latter two: code that is not here
        print(error, file=sys.stderr)
        return NEEDS_TRUST
    except Exception as error:
        print(error, file=sys.stderr)
        return NEEDS_TRUST if "TorchScript" in str(error) else DAMAGED
    save_file(dict(tensors(found)), target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
