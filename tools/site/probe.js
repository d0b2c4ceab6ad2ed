// Runs in a loaded page and returns what is rendered. Lazy images are loaded
// first.
(async () => {
  const pictures = [...document.images];
  for (const picture of pictures) picture.loading = "eager";
  await Promise.all(
    pictures.map(
      (picture) =>
        picture.complete ||
        new Promise((done) => {
          picture.onload = picture.onerror = done;
        }),
    ),
  );
  await document.fonts.ready;
  for (let frame = 0; frame < 2; frame++) {
    await new Promise(requestAnimationFrame);
  }

  const width = document.documentElement.clientWidth;
  // Only content: menus may be outside the window.
  const content = [...document.querySelectorAll("article *, .md-header *")];

  // Inside a scrollable element, or not drawn at all.
  const reachable = (element) => {
    for (let e = element; e && e !== document.body; e = e.parentElement) {
      if (["auto", "scroll"].includes(getComputedStyle(e).overflowX)) return true;
      if (e.matches(".katex-mathml, .md-search, svg")) return true;
    }
    return false;
  };
  const name = (element) =>
    element.outerHTML.slice(0, element.outerHTML.indexOf(">") + 1).slice(0, 120);
  const wide = content.filter((element) => {
    const box = element.getBoundingClientRect();
    const outside = box.right > width + 1 || box.left < -1;
    return box.width > 0 && box.height > 0 && outside && !reachable(element);
  });

  // TeX shown as source text.
  const typed = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode;
    const inside = "code, pre, script, style, template, .arithmatex";
    if (text.parentElement.closest(inside)) continue;
    if (/\$\$|\\[([]|\\(frac|mathrm|sqrt|sum|left)\b/.test(text.data)) {
      typed.push(text.data.trim().slice(0, 80));
    }
  }

  return {
    scheme: document.body.dataset.mdColorScheme ?? null,
    windowWidth: width,
    pageWidth: document.documentElement.scrollWidth,
    wide: wide.map(name),
    pictures: pictures
      .filter((picture) => !(picture.complete && picture.naturalWidth > 0))
      .map((picture) => picture.getAttribute("src")),
    formulas: [...document.querySelectorAll(".arithmatex")]
      .filter((f) => !f.querySelector(".katex") || f.querySelector(".katex-error"))
      .map((formula) => formula.textContent.trim().slice(0, 80)),
    typed,
  };
})();
