"""The report: what it says, and how it is written."""

import csv as csv_format
import json
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from paper.report.made_up import PRINTED, entry, write_scores

from dqd.paper.report import write


@pytest.fixture(autouse=True)
def no_figures(monkeypatch) -> None:
    """The trials here are made up and have no grid to draw; figures are tested in test_draw."""
    monkeypatch.setattr(write, "_draw", lambda suite, folder: [])


def test_report_says_what_was_run_and_what_is_outside(folder):
    text = write.write_report(folder).read_text()
    assert "**7 of 9 metrics agree with the paper**: 7 are within 3 joint standard errors, 0 more" in text
    assert "2 are outside. 2 of 3 entries agree" in text
    assert "- 12 trials of 12 asked for: 4 per entry" in text
    assert "on an abacus, 60 s" in text
    assert "rank_one dqd2021" in text
    assert (
        "- CMA-MEGA† (released budget), Arm repertoire, QD-score: 12.10 ± 0.04, published 10.00 ± 0.10 "
        "(+19.4 joint standard errors). Known: see D4." in text
    )


def test_report_writes_all_files_and_valid_json(folder):
    pytest.importorskip("statsmodels")
    target = write.write_report(folder).parent
    names = {path.name for path in target.iterdir()}
    assert names >= {"report.md", "tables.tex", "tables.csv", "statistics.json", "figures"}
    found = json.loads((target / "statistics.json").read_text())
    assert found["two_way"]["note"].startswith("two-way analysis needs 2 domains and 2 algorithms")
    assert found["two_way"]["interaction"]["f"] is None
    assert found["pairs"]["arm"][0]["difference"] == pytest.approx(-2.1)
    assert found["areas"]["arm.map-elites"]["mean"] == pytest.approx(10.0)


def test_a_link_in_place_of_a_file_is_replaced_and_its_target_left_alone(folder, tmp_path):
    pytest.importorskip("statsmodels")
    target, elsewhere = folder / "report", tmp_path / "elsewhere"
    target.mkdir()
    elsewhere.write_text("somebody's")
    names = ("report.md", "tables.tex", "tables.csv", "statistics.json")
    for name in names:
        (target / name).symlink_to(elsewhere)
    write.write_report(folder)
    assert elsewhere.read_text() == "somebody's"
    assert [name for name in names if (target / name).is_symlink()] == []


def test_report_shows_the_figures_it_is_given(folder, monkeypatch):
    def draw(suite, target: Path) -> list[Path]:
        (target / "qd-score-curves.png").write_bytes(b"")
        return [target / "qd-score-curves.png"]

    monkeypatch.setattr(write, "_draw", draw)
    assert "![qd score curves](figures/qd-score-curves.png)" in write.write_report(folder).read_text()


def test_report_names_missing_trials_and_repeated_seeds(folder):
    shutil.rmtree(folder / "arm.map-elites" / "trial-003")
    twin = folder / "arm.map-elites" / "trial-002"
    shutil.rmtree(twin)
    shutil.copytree(folder / "arm.map-elites" / "trial-001", twin)
    with pytest.warns(UserWarning, match=r"arm\.map-elites/trial-003 is missing"):
        text = write.write_report(folder).read_text()
    assert "11 trials of 12 asked for: 3 or 4 per entry" in text
    assert "arm.map-elites/trial-003 is missing" in text
    assert "trials are not independent: arm.map-elites" in text


def test_report_of_a_suite_without_trials(tmp_path):
    described = [entry("lp-sphere", "map-elites", "MAP-Elites"), entry("arm", "map-elites", "MAP-Elites")]
    text = write.write_report(write_scores(tmp_path / "s", {}, described)).read_text()
    assert "Nothing here is comparable" in text
    assert "No two-way analysis of variance" in text


def test_report_without_the_statistics_extra_still_has_its_tables(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    monkeypatch.setitem(sys.modules, "statsmodels.formula.api", None)
    text = write.write_report(folder).read_text()
    assert "pip install 'dqd[report]'" in text
    assert "+19.4 ✗" in text


def test_table_1_from_its_own_printed_numbers(tmp_path):
    """Trials with the printed means and errors give back the printed F, and every sentence but the doubtful one."""
    pytest.importorskip("statsmodels")
    described, scores = _printed_table()
    text = write.write_report(write_scores(tmp_path / "s", scores, described)).read_text()
    assert "Interaction: F(14, 456) = 7304.39, p < 0.001. The paper: F(14, 456) = 7328.18, p < 0.001." in text
    assert text.count("**holds**") == 8
    assert text.count("**same order, not significant** | CMA-MEGA - CMA-MEGA (Adam): +0.36") == 1


def _printed_table() -> tuple[list[dict], dict[str, list[float]]]:
    lines = csv_format.DictReader(resources.files("dqd.paper").joinpath("published.csv").read_text().splitlines())
    described, scores = [], {}
    spread = np.linspace(-1, 1, 20) / np.std(np.linspace(-1, 1, 20), ddof=1)
    for line in lines:
        if (line["table"], line["variant"]) == ("tab:results_detailed", "base") and "lsi" not in line["domain"]:
            algorithm = line["algorithm"].lower().replace(" (", "-").replace(")", "")
            one = entry(line["domain"].replace("_", "-"), algorithm, line["algorithm"], trials=20)
            one["published"] = {name: float(line[name]) for name in PRINTED if name != "table"} | {"trials": 20}
            described.append(one)
            deviation = float(line["qd_score_se"]) * np.sqrt(20)
            scores[one["id"]] = (float(line["qd_score"]) + deviation * spread).tolist()
    return described, scores


def test_reports_never_load_jax():
    code = "import sys, dqd.paper.report.write; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
