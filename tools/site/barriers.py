"""Says what of a page some readers cannot see, hear or reach."""

import pathlib

_AXE = pathlib.Path(__file__).with_name("axe") / "axe.min.js"
# What is serious or critical by axe's own measure, and stands in the WCAG 2 A
# and AA, or is good practice.
_RUN = """
(async () => {
  const found = await axe.run(document, {
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


def barriers(tab):
    """Asks axe (https://github.com/dequelabs/axe-core) about an open page.

    Args:
        tab: `tools.site.tab.Tab`, in which a page is open.

    Returns:
        List of str: rules that are broken in a serious or critical way, how
        often, and where first. Empty: axe found none; a person may.
    """
    tab.evaluate(_AXE.read_text(encoding="utf-8") + "\n0")
    return [
        f"{rule}: {help_text}, {count} times, first {where} ({why})"
        for rule, help_text, count, where, why in tab.evaluate(_RUN)
    ]
