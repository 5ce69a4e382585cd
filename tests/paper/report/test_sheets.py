"""The tables as text that its format can read."""

import csv as csv_format
import shutil
import subprocess

import numpy as np
import pytest
from paper.report.made_up import entry, write_scores

from dqd.paper.report import sheets, tables
from dqd.paper.report.collect import read_suite


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
    described = [entry("lp-rastrigin", "map-elites", "MAP-Elites")]
    table = tables.comparison_table(read_suite(write_scores(tmp_path / "s", {}, described)))
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


def test_csv_has_one_line_per_entry_and_metric(table):
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
    described = [entry("lsi-elon", "map-elites", "MAP-Elites", published=None)]
    (line, *_) = csv_format.DictReader(
        sheets.csv(tables.comparison_table(read_suite(write_scores(tmp_path / "s", {}, described)))).splitlines()
    )
    assert (line["mean"], line["published_mean"], line["optimum"], line["verdict"]) == ("", "", "", "unpublished")
