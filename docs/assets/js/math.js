// Renders what pymdownx.arithmatex marks as mathematics. KaTeX lies beside the
// pages, so that a formula needs no network, and only pages with formulas load
// it. A formula that KaTeX cannot read is shown in red, as it was written.
const katexScript = new URL("../katex/katex.min.js", document.currentScript.src);
document$.subscribe(() => {
  const formulas = document.querySelectorAll(".arithmatex");
  if (!formulas.length) return;
  const script = document.createElement("script");
  script.src = katexScript;
  script.onload = () => {
    for (const formula of formulas) {
      const text = formula.textContent.trim();
      katex.render(text.slice(2, -2), formula, {
        displayMode: text.startsWith("\\["),
        throwOnError: false,
      });
    }
  };
  document.head.append(script);
});
