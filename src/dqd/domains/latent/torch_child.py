"""Reads a PyTorch checkpoint in a process of its own: `python torch_child.py SOURCE TARGET [--trust]`.

Writes its tensors as safetensors; names of nested dictionaries are joined by "/". Without --trust only tensors are
unpickled and nothing of the file is run. A script: it imports nothing of dqd, and nobody imports it.
"""

import pickle
import sys
from collections.abc import Iterator, Mapping

NEEDS_TRUST, DAMAGED, NO_TORCH = 3, 4, 5  # exit codes


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
        try:
            return torch.load(source, map_location="cpu", weights_only=False)
        except (RuntimeError, pickle.UnpicklingError):
            with open(source, "rb") as file:
                return pickle.load(file)  # noqa: S301  the user said so

    try:
        found = trusted() if "--trust" in options else torch.load(source, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        print(error, file=sys.stderr)
        return NEEDS_TRUST
    except Exception as error:
        print(error, file=sys.stderr)
        return NEEDS_TRUST if "TorchScript" in str(error) else DAMAGED
    save_file(dict(tensors(found)), target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
