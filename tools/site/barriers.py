"""Accessibility checks of a page with axe."""

import pathlib

_AXE = pathlib.Path(__file__).with_name("axe") / "axe.min.js"
# Violations of WCAG 2 A and AA or of best practices that axe rates serious or
# critical.
# All source listings are alike: axe would take minutes for those of an API
# page, so it checks three of them. Tokens of code and symbols of formulas would
# take half of its time: it checks only code blocks with a new kind of token,
# and the first five formulas.
_RUN = """
(async () => {
  const listings = document.querySelectorAll("details.mkdocstrings-source");
  for (const listing of [...listings].slice(3)) listing.remove();
  const seen = new Set();
  for (const block of document.querySelectorAll(".highlight")) {
    const kinds = [...block.querySelectorAll("span")].map((x) => x.className);
    if (kinds.every((kind) => seen.has(kind))) block.remove();
    kinds.forEach((kind) => seen.add(kind));
  }
  const formulas = document.querySelectorAll(".katex");
  for (const formula of [...formulas].slice(5)) formula.remove();
  if (!WHOLE) {
    const main = document.querySelector("main");
    main.replaceChildren(main.querySelector("article"));
    document.body.replaceChildren(main);
  }
  const found = await axe.run(document, {
    rules: {
      "color-contrast": {enabled: WHOLE},
      "link-in-text-block": {enabled: WHOLE},
    },
    resultTypes: ["violations"],
    runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"],
  });
  return found.violations
    .filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => [
      one.id, one.help, one.nodes.length, one.nodes[0].target.join(" "),
      one.nodes[0].any.map((check) => check.message).join("; "),
    ]);
})()
"""


def barriers(tab, whole=True):
    """Runs axe (https://github.com/dequelabs/axe-core) on an open page.

    Args:
        tab: `tools.site.tab.Tab`, in which a page is open.
        whole: bool. Whether to check the navigation around the article and the
            contrast of all texts and links too. They take most of the time, and
            the theme makes them alike on all pages. Without them, the page
            loses all but its article. Default True.

    Returns:
        List of str: serious or critical violations, with the rule, the number
        of elements and the first one. Empty if axe found none.
    """
    tab.evaluate(_AXE.read_text(encoding="utf-8") + "\n0")
    run = _RUN.replace("WHOLE", "true" if whole else "false")
    return [
        f"{rule}: {help_text}, {count} times, first {where} ({why})"
        for rule, help_text, count, where, why in tab.evaluate(run)
    ]
