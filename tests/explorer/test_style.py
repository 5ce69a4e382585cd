"""The page's own files: colours that can be read, and nothing from elsewhere."""

import re

import pytest

from dqd.explorer.page import static

FILES = static()
STYLE = FILES["style.css"].decode()
MODULES = {name: text.decode() for name, text in FILES.items() if name.endswith(".js")}


def themes():
    """The variables of both themes; what dark does not change is as in light."""
    blocks = [
        dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", block))
        for block in re.findall(r"\{([^{}]*--ground:[^{}]*)\}", STYLE)
    ]
    light, dark, unknown = blocks
    assert len(dark) > 15
    assert unknown == {}
    return {"light": light, "dark": {**light, **dark}}


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    ("text", "ground"),
    [
        *((text, ground) for text in ("text", "soft", "accent") for ground in ("ground", "paper")),
        ("paper", "accent"),  # a button
        ("accent", "accent-soft"),
        ("text", "accent-soft"),
        ("ground", "text"),  # a tip
        *((name, f"{name}-soft") for name in ("good", "busy", "warn", "bad")),
    ],
)
def test_text_has_the_contrast_of_wcag_aa(theme, text, ground):
    colours = themes()[theme]
    assert contrast(colours[text], colours[ground]) >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_lines_and_fields_have_the_contrast_of_wcag_aa(theme):
    """Of what is no text, 3 to 1 is asked."""
    colours = themes()[theme]
    (listed,) = re.findall(r"LINES = \[(.*?)\]", MODULES["colours.js"])
    drawn = re.findall("#[0-9a-f]{6}", listed)
    assert len(drawn) >= 6
    for colour in (*drawn, colours["accent"]):
        assert contrast(colour, colours["paper"]) >= 3
    assert min(contrast(colours["edge"], colours[ground]) for ground in ("paper", "ground")) >= 3


def test_only_the_list_of_runs_does_without_headings_on_a_narrow_screen():
    hidden = re.findall(r"([^{}]*thead[^{}]*)\{[^{}]*display: none", STYLE)
    assert [each.strip() for each in hidden] == [".runs thead"]


@pytest.mark.parametrize("name", FILES)
def test_no_file_names_another_place(name):
    text = FILES[name].decode().replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|//cdn|@import|url\(", text)


@pytest.mark.parametrize("name", MODULES)
def test_no_module_makes_markup_or_code_of_text(name):
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc|DOMParser"
    assert not re.search(forbidden, MODULES[name])


@pytest.mark.parametrize("name", MODULES)
def test_imports_are_such_that_one_file_can_hold_them_all(name):
    for line in re.findall(r"^import .*$", MODULES[name], re.MULTILINE):
        found = re.search(r'from "\./([a-z]+\.js)";$', line)
        assert found, line
        assert found[1] in MODULES
