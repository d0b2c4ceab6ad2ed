// What the theme leaves out for readers without a mouse or without sight.
document$.subscribe(() => {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  // What is wider than its box is scrolled by the arrow keys. How wide a formula
  // is shows when it is rendered, before the page counts as loaded, and its
  // fonts have come.
  const scrolls =
    "pre > code, .arithmatex, .katex-display, .md-typeset__scrollwrap";
  const mark = () => {
    for (const box of document.querySelectorAll(scrolls)) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    }
  };
  mark();
  addEventListener("load", () => document.fonts.ready.then(mark));
});
