"""Which addresses of a scheduler may be used."""

import pytest

from dqd.workers.address import check_address


@pytest.mark.parametrize(
    "address",
    [
        "tcp://127.0.0.1:8786",
        "tcp://localhost:8786",
        "127.0.0.1:8786",
        "tcp://[::1]:8786",
        "tls://cluster.example.org:8786",
    ],
)
def test_this_machine_and_encrypted_ones_are_fine(address):
    check_address(address, insecure=False)


@pytest.mark.parametrize(
    "address",
    [
        "tcp://cluster.example.org:8786",
        "192.168.0.7:8786",
        "tcp://127.0.0.1.example.org:8786",
        "tcp://localhost@example.org:8786",
        "ucx://127.0.0.1:8786",
    ],
)
def test_others_are_refused(address):
    with pytest.raises(ValueError, match="--cluster:"):
        check_address(address, insecure=False, name="--cluster")


def test_insecure_is_a_choice():
    check_address("tcp://cluster.example.org:8786", insecure=True)
