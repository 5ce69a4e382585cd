"""Failed evaluations: a line of a file for each, a warning for the first, and one that counts them."""

import errno
import json
import os
import warnings

import numpy as np
import pytest

from dqd.storage.writer import CheckpointError
from dqd.workers import failures
from dqd.workers.failures import Failures, Notices


def add(reports, iteration, error):
    return reports.add(iteration, "solutions", 0, np.zeros(2), error)


def test_what_fails_before_the_folder_is_a_run_is_written_as_soon_as_it_is_one(tmp_path):
    reports = Failures(tmp_path)
    words = add(reports, 1, ValueError("one"))
    assert not list(tmp_path.iterdir())
    (tmp_path / "config.json").touch()
    reports.close()
    (line,) = (tmp_path / "failures.jsonl").read_text().splitlines()
    assert json.loads(line)["error"] == "ValueError: one"
    assert words == f"iteration 1, solutions, index 0 (digest {json.loads(line)['digest']}): ValueError: one"


def test_a_full_disk_is_named_where_a_failure_cannot_be_reported(tmp_path, monkeypatch):
    def full(path, *arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "config.json").touch()
    monkeypatch.setattr(failures.Path, "open", full)
    with pytest.raises(CheckpointError, match=r"report a failed evaluation: No space left .* bytes are needed"):
        add(Failures(tmp_path), 1, ValueError("words"))


def test_a_torn_last_line_of_reports_stays_alone(tmp_path):
    (tmp_path / "config.json").touch()
    reports = Failures(tmp_path)
    add(reports, 1, ValueError("one"))
    with (tmp_path / "failures.jsonl").open("a") as file:
        file.write('{"iteration": 2, "pha')  # killed
    for iteration in (2, 3):
        add(reports, iteration, ValueError("another"))
    first, torn, *others = (tmp_path / "failures.jsonl").read_text().splitlines()
    assert torn == '{"iteration": 2, "pha'
    assert [json.loads(line)["iteration"] for line in (first, *others)] == [1, 2, 3]


def test_many_are_one_line():
    notices = Notices("evaluation skipped")
    with pytest.warns(UserWarning, match=r"^evaluation skipped: the first; .*counted at the end$"):
        notices.add(ValueError(), "the first")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for error in (TimeoutError(), ValueError()):
            notices.add(error, "another")
    with pytest.warns(UserWarning, match=r"^evaluation skipped 3 times: 2 ValueError, 1 TimeoutError; see there$"):
        notices.sum_up("; see there")


def test_one_alone_is_not_counted():
    notices = Notices("evaluation skipped")
    with pytest.warns(UserWarning, match="the first"):
        notices.add(ValueError(), "the first")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        notices.sum_up()
