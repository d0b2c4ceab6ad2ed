// Renders what pymdownx.arithmatex marks as mathematics. KaTeX lies beside the
// pages, so that a formula needs no network. A formula that KaTeX cannot read
// is shown in red, as it was written.
document$.subscribe(() => {
  for (const formula of document.querySelectorAll(".arithmatex")) {
    const text = formula.textContent.trim();
    katex.render(text.slice(2, -2), formula, {
      displayMode: text.startsWith("\\["),
      throwOnError: false,
    });
  }
});
