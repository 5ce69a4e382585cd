"""The comparison tables and the report: hand-computed numbers, counts, and text that its format can read."""

import csv as csv_format
import json
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from dqd.paper.report import sheets, tables, write
from dqd.paper.report.collect import read_suite
from dqd.storage import record

PRINTED = {"trials": 20, "qd_score": 10.0, "qd_score_se": 0.1, "coverage": 20.0, "coverage_se": 0.2}
PRINTED |= {"best": 100.0, "best_se": 0.0, "table": "tab:results_detailed"}


def cell(domain: str, algorithm: str, label: str, published=PRINTED, **changes) -> dict:
    about = {"resolution": 100, "n": 1000, "iterations": 10_000, "precision": "float32", "trials": 4}
    about |= {"settings": {"rank_one": "dqd2021"}, "published": published, "variant": "base"} | changes
    suffix = "" if about["variant"] == "base" else f".{about['variant']}"
    return {"id": f"{domain}.{algorithm}{suffix}", "domain": domain, "algorithm": algorithm, "label": label, **about}


def write_suite(folder: Path, cells: dict[str, list[float]], described: list[dict]) -> Path:
    """A suite of cells whose trials have these QD-scores, twice that coverage, and 100 as their best."""
    folder.mkdir(parents=True)
    about = {"suite": "table1", "title": "A title_with 100 %", "device": "an abacus", "seconds": 60, "cells": described}
    (folder / "suite.json").write_text(json.dumps(about))
    iterations = {one["id"]: one["iterations"] for one in described}
    for name, scores in cells.items():
        for trial, score in enumerate(scores):
            final = {"qd_score": score, "coverage": 2 * score, "best": 100.0, "mean": 50.0}
            rows = [{"iteration": step, **final} for step in (iterations[name] // 2, iterations[name])]
            summary = {**final, "iterations": iterations[name], "seed": trial}
            record.write(folder / name / f"trial-{trial:03d}", {"summary": summary}, rows, {"cell": np.arange(2)})
    return folder


@pytest.fixture(autouse=True)
def no_figures(monkeypatch) -> None:
    """The trials here are made up and have no grid to draw; figures are tested in test_draw."""
    monkeypatch.setattr(write, "_draw", lambda suite, folder: [])


@pytest.fixture
def folder(tmp_path) -> Path:
    """MAP-Elites agrees on both domains; CMA-MEGA† is far off on the arm and was not run on LP."""
    described = [
        cell("lp-sphere", "map-elites", "MAP-Elites"),
        cell("arm", "map-elites", "MAP-Elites"),
        cell("arm", "cma-mega", "CMA-MEGA†", variant="released_budget", note="Known: see D4."),
    ]
    scores = {
        "lp-sphere.map-elites": [9.8, 10.0, 10.2, 10.4],
        "arm.map-elites": [9.9, 10.0, 10.1, 10.0],
        "arm.cma-mega.released_budget": [12.0, 12.1, 12.2, 12.1],
    }
    return write_suite(tmp_path / "suite", scores, described)


@pytest.fixture
def table(folder) -> tables.Table:
    return tables.comparison_table(read_suite(folder))


def test_comparison_by_hand(table):
    # 9.8 .. 10.4: mean 10.1, squares 0.2 over 3, divided by 4 trials: standard error 0.1291.
    entry = table.entries["map-elites", "lp-sphere"]
    found = entry.figures["qd_score"]
    assert (found.ours.mean, found.ours.se) == (pytest.approx(10.1), pytest.approx(np.sqrt(0.2 / 3 / 4)))
    assert found.in_se == pytest.approx(0.1 / np.sqrt(0.1**2 + 0.2 / 12))
    assert entry.percent("qd_score", found.ours.mean) == pytest.approx(100 * 10.1 / 75.418367)


def test_tally_counts_and_names_what_is_outside(table):
    found = tables.tally(table)
    assert found.verdicts == {"within": 7, "outside": 2}
    assert (found.cells, found.cells_within) == (3, 2)
    assert [(entry.cell.id, figure) for entry, figure in found.outside] == [
        ("arm.cma-mega.released_budget", "qd_score"),
        ("arm.cma-mega.released_budget", "coverage"),
    ]


def test_tally_tells_errors_from_percent(tmp_path):
    described = [cell("arm", "map-elites", "MAP-Elites", published=PRINTED | {"qd_score_se": 0.001})]
    found = tables.tally(
        tables.comparison_table(read_suite(write_suite(tmp_path / "s", _one(10.05, 10.06), described)))
    )
    assert (found.verdicts["within"], found.within_errors) == (3, 2)


def _one(*scores: float) -> dict[str, list[float]]:
    return {"arm.map-elites": list(scores)}


def test_a_shorter_run_is_not_compared(tmp_path):
    described = [cell("arm", "map-elites", "MAP-Elites", iterations=1000)]
    table = tables.comparison_table(read_suite(write_suite(tmp_path / "s", _one(3.0, 4.0), described)))
    assert tables.tally(table).verdicts == {"other budget": 3}
    assert tables.tally(table).cells == 0
    assert sheets.sheets(table)[0].rows == (("MAP-Elites", ("3.50 ± 0.50", "10.00 ± 0.10", "-")),)


def test_published_iterations_decide_where_they_are_given(tmp_path):
    described = [cell("arm", "map-elites", "MAP-Elites", published=PRINTED | {"iterations": 1_000_000})]
    table = tables.comparison_table(read_suite(write_suite(tmp_path / "s", _one(10.0, 10.1), described)))
    assert tables.tally(table).verdicts == {"other budget": 3}


def test_unpublished_and_missing_cells(tmp_path):
    described = [cell("arm", "map-elites", "MAP-Elites", published=None), cell("arm", "random", "Random")]
    table = tables.comparison_table(read_suite(write_suite(tmp_path / "s", _one(3.0, 4.0), described)))
    assert tables.tally(table).verdicts == {"unpublished": 3, "missing": 3}
    assert sheets.sheets(table)[0].rows == (
        ("MAP-Elites", ("3.50 ± 0.50", "-", "")),
        ("Random", ("-", "10.00 ± 0.10", "-")),
    )


def test_algorithms_are_rows_and_domains_are_groups(table):
    sheet = sheets.sheets(table)[0]
    assert sheet.title == "QD-score"
    assert sheet.groups == (
        ("LP (sphere)", ("ours", "published", "Δ/SE")),
        ("Arm repertoire", ("ours", "published", "Δ/SE")),
    )
    assert sheet.rows == (
        ("MAP-Elites", ("10.10 ± 0.13", "10.00 ± 0.10", "+0.6 ✓", "10.00 ± 0.04", "10.00 ± 0.10", "+0.0 ✓")),
        ("CMA-MEGA† (released budget)", ("", "", "", "12.10 ± 0.04", "10.00 ± 0.10", "+19.4 ✗")),
    )


def test_percent_of_the_known_optimum(table):
    sheet = sheets.sheets(table)[-1]
    assert [title for title, _ in sheet.groups] == ["LP (sphere): 75.42", "Arm repertoire: 80.24"]
    assert sheet.rows[0] == ("MAP-Elites", ("13.39", "13.26", "12.46", "12.46"))


def test_rastrigins_two_optima_are_both_named(tmp_path):
    described = [cell("lp-rastrigin", "map-elites", "MAP-Elites")]
    table = tables.comparison_table(read_suite(write_suite(tmp_path / "s", {}, described)))
    assert sheets.sheets(table)[-1].groups[0][0] == "LP (Rastrigin): 77.33 (63.30)"


def test_markdown_has_equal_columns_and_bold_outside(table):
    lines = sheets.markdown(sheets.sheets(table)[0]).strip().split("\n")
    assert {line.count("|") for line in lines} == {8}
    assert "| **+19.4 ✗** |" in lines[-1]
    assert "**" not in lines[-2]


def test_latex_escapes_what_latex_would_read():
    assert sheets.escape("100 % of a_b & #1 {x}") == "100 \\% of a\\_b \\& \\#1 \\{x\\}"
    assert sheets.escape("1 ± 2 † a\\b") == "1 $\\pm$ 2 $^\\dagger$ a\\textbackslash{}b"


def test_latex_is_a_document_with_as_many_columns_as_it_says(table):
    text = sheets.latex(sheets.sheets(table), "100 % of table_1")
    assert text.startswith("\\documentclass")
    assert "\\section*{100 \\% of table\\_1}" in text
    assert "Coverage (\\%)" in text
    assert "\\begin{tabular}{lrrrrrr}" in text
    assert "\\multicolumn{3}{c}{LP (sphere)} & \\multicolumn{3}{c}{Arm repertoire} \\\\" in text
    assert "\\cmidrule(lr){2-4}\\cmidrule(lr){5-7}" in text
    assert "\\textbf{+19.4 $\\times$}" in text
    assert text.isascii()


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="no LaTeX here")
def test_latex_compiles_alone(table, tmp_path):
    (tmp_path / "tables.tex").write_text(sheets.latex(sheets.sheets(table), "100 % of table_1"))
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]


def test_csv_has_one_line_per_cell_and_figure(table):
    lines = list(csv_format.DictReader(sheets.csv(table).splitlines()))
    assert len(lines) == 9
    first = lines[0]
    assert (first["id"], first["figure"], first["trials"], first["verdict"]) == (
        *("lp-sphere.map-elites", "qd_score", "4"),
        "within",
    )
    assert float(first["mean"]) == pytest.approx(10.1)
    assert float(first["optimum"]) == pytest.approx(75.418367)
    assert float(lines[-2]["difference_in_se"]) == pytest.approx(4.2 / np.sqrt(0.2**2 + 0.02 / 3), rel=1e-6)


def test_csv_leaves_unknown_numbers_empty(tmp_path):
    described = [cell("lsi-elon", "map-elites", "MAP-Elites", published=None)]
    (line, *_) = csv_format.DictReader(
        sheets.csv(tables.comparison_table(read_suite(write_suite(tmp_path / "s", {}, described)))).splitlines()
    )
    assert (line["mean"], line["published_mean"], line["optimum"], line["verdict"]) == ("", "", "", "unpublished")


def test_report_says_what_was_run_and_what_is_outside(folder):
    text = write.write_report(folder).read_text()
    assert "**7 of 9 figures agree with the paper**: 7 are within 3 joint standard errors, 0 more" in text
    assert "2 are outside. 2 of 3 cells agree" in text
    assert "- 12 trials of 12 asked for: 4 per cell" in text
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
    assert "11 trials of 12 asked for: 3 or 4 per cell" in text
    assert "arm.map-elites/trial-003 is missing" in text
    assert "trials are not independent: arm.map-elites" in text


def test_report_of_a_suite_without_trials(tmp_path):
    described = [cell("lp-sphere", "map-elites", "MAP-Elites"), cell("arm", "map-elites", "MAP-Elites")]
    text = write.write_report(write_suite(tmp_path / "s", {}, described)).read_text()
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
    text = write.write_report(write_suite(tmp_path / "s", scores, described)).read_text()
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
            one = cell(line["domain"].replace("_", "-"), algorithm, line["algorithm"], trials=20)
            one["published"] = {name: float(line[name]) for name in PRINTED if name != "table"} | {"trials": 20}
            described.append(one)
            deviation = float(line["qd_score_se"]) * np.sqrt(20)
            scores[one["id"]] = (float(line["qd_score"]) + deviation * spread).tolist()
    return described, scores


def test_published_numbers_are_all_there():
    lines = resources.files("dqd.paper").joinpath("published.csv").read_text().splitlines()
    rows = list(csv_format.DictReader(lines))
    assert len(rows) == 109
    detailed = [row for row in rows if row["table"] == "tab:results_detailed" and row["variant"] == "base"]
    assert len(detailed) == 8 * 3 + 5
    (best,) = [row for row in detailed if (row["domain"], row["algorithm"]) == ("arm", "CMA-MEGA")]
    assert (best["qd_score"], best["qd_score_se"], best["iterations"]) == ("74.18", "0.15", "10000")


def test_reports_never_load_jax():
    code = "import sys, dqd.paper.report.write; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
