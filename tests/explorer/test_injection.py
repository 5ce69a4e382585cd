"""Names and settings of a run may be anybody's: in a real browser they are text, and nothing of them is run."""

import httpx
import pytest
from explorer.browsers import local, needs_browser, opened
from explorer.samples import archive, make_run, served

pytestmark = needs_browser

RUN = "window.hacked=1"
PAYLOADS = [
    f"<script>{RUN}</script>",
    f"<SCRIPT>{RUN}</SCRIPT>",
    f"<scr<script>ipt>{RUN}</scr</script>ipt>",
    f"</script><script>{RUN}</script>",
    f"</title><script>{RUN}</script>",
    f"</textarea><script>{RUN}</script>",
    f"</style><script>{RUN}</script>",
    f"<!--><script>{RUN}</script>-->",
    f"]]><script>{RUN}</script>",
    "<script src=data:text/javascript,window.hacked=1></script>",
    "<script src=https:evil.example></script>",
    f"<img src=x onerror={RUN}>",
    f"<img src=x onerror='{RUN}'>",
    f'<img src=x onerror="{RUN}">',
    f"<IMG SRC=x OnErRoR={RUN}>",
    f"<img/src=x/onerror={RUN}>",
    f'"><img src=x onerror={RUN}>',
    f"'><img src=x onerror={RUN}>",
    f"`><img src=x onerror={RUN}>",
    f"<img src=x onerror=&#119;indow.hacked=1>{RUN}",
    f"<svg onload={RUN}>",
    f"<svg><script>{RUN}</script></svg>",
    f"<svg><animate onbegin={RUN} attributeName=x dur=1s>",
    f"<math><mtext><img src=x onerror={RUN}>",
    f"<body onload={RUN}>",
    f"<iframe src=javascript:{RUN}>",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'>",
    f"<object data=javascript:{RUN}>",
    f"<embed src=javascript:{RUN}>",
    f"<a href=javascript:{RUN}>click</a>",
    f"<form action=javascript:{RUN}><input type=submit autofocus>",
    f"<input autofocus onfocus={RUN}>",
    f"<select autofocus onfocus={RUN}>",
    f"<details open ontoggle={RUN}>",
    f"<video><source onerror={RUN}>",
    f"<audio src=x onerror={RUN}>",
    f"<marquee onstart={RUN}>",
    f"<style>@import 'javascript:{RUN}'</style>",
    f"<div style=background:url(javascript:{RUN})>",
    f"<link rel=stylesheet href=javascript:{RUN}>",
    f"<meta http-equiv=refresh content='0;url=javascript:{RUN}'>",
    f"<base href=javascript:{RUN}>",
    f"<template><script>{RUN}</script></template>",
    f"javascript:{RUN}",
    f"';{RUN};'",
    f'";{RUN};"',
    "${" + RUN + "}",
    "{{constructor.constructor('" + RUN + "')()}}",
    f"\u2028{RUN}\u2029",
    f"&lt;script&gt;{RUN}&lt;/script&gt;",
    f"%3Cscript%3E{RUN}%3C/script%3E",
    f"<\u200bscript>{RUN}<\u200b/script>",
]
INJECTED = "return document.querySelectorAll('img,iframe,object,embed,base,marquee,math,form:not(.finder)').length"


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    for payload in PAYLOADS:
        settings = {"command": {"domain": payload, "algorithm": payload, "options": {"measure": [payload, payload]}}}
        make_run(root / payload, archive((4, 4)), **settings, note=payload)
    return root


def test_there_are_at_least_50_payloads():
    assert len(set(PAYLOADS)) >= 50


def test_none_of_the_payloads_is_run(places, tmp_path):
    with served(places) as server, opened() as browser:
        runs = httpx.get(f"{server.address}/api/runs", cookies=server.cookie).json()["runs"]
        assert sorted(run["name"] for run in runs) == sorted(PAYLOADS)
        browser.driver.get(server.guard.link)
        browser.until(lambda: browser.text("tbody"))
        assert browser.run("return document.querySelectorAll('tbody tr').length") == len(PAYLOADS)
        _check(browser)
        for run in runs:
            browser.run("location.hash = arguments[0]", f"#/run/{run['id']}")
            browser.until(lambda run=run: browser.text("h1").startswith(run["name"]))
            browser.until(lambda: browser.text(".solution"))
            assert run["name"] in browser.text(".settings pre").replace('\\"', '"')
            _check(browser)
        everybody = ",".join(run["id"] for run in runs[:6])
        browser.run("location.hash = arguments[0]", f"#/compare?runs={everybody}")
        browser.until(lambda: "Compare" in browser.text("h1"))
        _check(browser)
        page = httpx.get(f"{server.address}/api/runs/{runs[0]['id']}/page.html", cookies=server.cookie).content
        (tmp_path / "one.html").write_bytes(page)
        assert RUN.encode() not in page
        browser.driver.get(local(tmp_path / "one.html"))
        browser.until(lambda: browser.text("h1").startswith(runs[0]["name"]))
        _check(browser)


def test_the_check_notices_what_is_run(tmp_path):
    (tmp_path / "page.html").write_text(f"<h1>x</h1><script>{RUN}</script>")
    with opened() as browser:
        browser.driver.get(local(tmp_path / "page.html"))
        assert browser.run("return window.hacked") == 1


def _check(browser):
    """Nothing was run, nothing was made of it, and the browser had nothing to forbid."""
    assert browser.run("return window.hacked === undefined")
    assert browser.run(INJECTED) == 0
    assert browser.errors() == []
