// Interactive figures. A page marks the place of one, and its program is loaded
// when the reader comes near it. The programs are scripts, not modules, which a
// page that was opened from disk could not load.
//
// A program calls `figures.add(name, draw)`. `draw(box)` fills the box with
// controls and results, and returns `values`, a function without arguments that
// returns all numbers shown: the tests compare them with those of the library. A
// figure with data, `figures.add(name, draw, true)`, finds it in `figures.data`.
const figures = {
  folder: new URL("figures/", document.currentScript.src),
  waiting: {},
  data: {},

  add(name, draw, hasData = false) {
    const start = () => {
      for (const box of figures.waiting[name] ?? []) {
        box.replaceChildren();
        box.figureValues = draw(box);
        box.dataset.state = "ready";
      }
    };
    if (hasData) figures.run(`data/${name}.js`, start);
    else start();
  },

  run(path, then = null) {
    const script = document.createElement("script");
    script.src = new URL(path, figures.folder);
    script.onload = then;
    document.head.append(script);
  },

  load(box) {
    const name = box.dataset.figure;
    if (figures.waiting[name]) return;
    figures.waiting[name] = document.querySelectorAll(
      `.figure[data-figure=${name}]`,
    );
    figures.run(`${name}.js`);
  },

  // An element of HTML. Children are nodes and strings.
  make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  },

  // An element of SVG.
  shape(tag, attributes = {}, ...children) {
    const space = "http://www.w3.org/2000/svg";
    const element = document.createElementNS(space, tag);
    for (const [name, value] of Object.entries(attributes)) {
      element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  },

  // A labeled control of a form; calls `change` when the reader changes it.
  control(box, text, input, change, shown = null) {
    const label = figures.make("label", {}, `${text} `, input);
    if (shown) label.append(shown);
    box.append(label);
    input.addEventListener("input", change);
    return input;
  },

  // A slider with its value beside it; `format` turns a number into a text.
  slider(box, text, {min, max, step = 1, value, format = String}, change) {
    const input = figures.make("input", {type: "range", min, max, step, value});
    const shown = figures.make("output");
    const show = () => {
      shown.textContent = format(input.valueAsNumber);
      input.setAttribute("aria-valuetext", shown.textContent);
    };
    figures.control(box, text, input, () => (show(), change()), shown);
    show();
    return input;
  },

  check(box, text, checked, change) {
    const input = figures.make("input", {type: "checkbox"});
    input.checked = checked;
    const label = figures.make("label", {}, input, ` ${text}`);
    box.append(label);
    input.addEventListener("input", change);
    return input;
  },

  choice(box, text, options, value, change) {
    const input = figures.make("select");
    for (const [name, shown] of Object.entries(options)) {
      input.append(figures.make("option", {value: name}, shown));
    }
    input.value = value;
    return figures.control(box, text, input, change);
  },

  button(box, text, press) {
    const button = figures.make("button", {type: "button"}, text);
    button.addEventListener("click", press);
    box.append(button);
    return button;
  },

  // A line of text that screen readers read when it changes.
  status(box) {
    return box.appendChild(
      figures.make("p", {class: "figure-status", role: "status"}),
    );
  },

  // The opacity of the shade behind a weight from 0 to 1, as in the diagrams.
  opacity: (weight) => 0.03 + 0.62 * weight,

  // A cell of a table, shaded by a weight.
  shaded(tag, weight, text) {
    const share = `${(100 * figures.opacity(weight)).toFixed(1)}%`;
    const color = `color-mix(in srgb, var(--d-shade) ${share}, transparent)`;
    return figures.make(tag, {style: `background:${color}`}, text);
  },

  // A table without rows, but a caption.
  table: (title) =>
    figures.make(
      "table",
      {class: "figure-table"},
      figures.make("caption", {}, title),
    ),

  // A number as it is shown, with a real minus sign.
  number: (value, digits = 2) => value.toFixed(digits).replace("-", "−"),

  // A chart of lines over the same numbers: {x, lines: {name: {y, role}}}.
  chart(box, {label, across, up, x, lines, low, high}) {
    const {shape} = figures;
    const [width, height, left, bottom, upper] = [520, 300, 74, 50, 36];
    const place = (value, least, most, from, to) =>
      from + ((value - least) / (most - least || 1)) * (to - from);
    const first = x[0], last = x[x.length - 1];
    const px = (v) => place(v, first, last, left, width - 12);
    const py = (v) => place(v, low, high, height - bottom, upper);
    const picture = shape("svg", {
      class: "diagram",
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": label,
    });
    const text = (x, y, words, anchor = "middle") =>
      shape("text", {x, y, "text-anchor": anchor, "font-size": 16}, words);
    for (let i = 0; i <= 4; i++) {
      const [v, w] = [low + ((high - low) * i) / 4, first + ((last - first) * i) / 4];
      picture.append(
        shape("path", {
          class: "figure-grid",
          d: `M${left} ${py(v)}H${width - 12}`,
        }),
        text(left - 6, py(v) + 5, figures.short(v), "end"),
        text(px(w), height - bottom + 21, figures.short(w)),
      );
    }
    picture.append(
      text((left + width) / 2, height - 6, across),
      text(4, 18, up, "start"),
    );
    for (const {y, role, dashed} of Object.values(lines)) {
      const points = y.map((v, i) => `${px(x[i]).toFixed(1)} ${py(v).toFixed(1)}`);
      picture.append(
        shape("path", {
          class: `${role}-stroke`,
          d: `M${points.join("L")}`,
          "stroke-width": 2.2,
          ...(dashed && {"stroke-dasharray": "6 5"}),
        }),
      );
    }
    box.replaceChildren(picture);
  },

  // Pieces of subwords as text.
  words: (pieces) => pieces.join("").replaceAll("▁", " ").trim(),

  // At most three digits, for the ticks of a chart.
  short(value) {
    if (value === 0) return "0";
    const size = Math.abs(value);
    const text =
      size >= 1e4
        ? `${Number((value / 1e3).toPrecision(3))}k`
        : size < 1e-3
          ? value.toExponential(1)
          : String(Number(value.toPrecision(3)));
    return text.replace("-", "−");
  },

  // The softmax of an array; -Infinity gets 0.
  softmax(scores) {
    const most = Math.max(...scores);
    const powers = scores.map((s) => Math.exp(s - most));
    const total = powers.reduce((a, b) => a + b, 0);
    return powers.map((p) => p / total);
  },
};

document$.subscribe(() => {
  const near = new IntersectionObserver(
    (entries) => {
      for (const {isIntersecting, target} of entries) {
        if (isIntersecting) figures.load(target);
      }
    },
    {rootMargin: "400px"},
  );
  for (const box of document.querySelectorAll(".figure[data-figure]")) {
    box.dataset.state = "waiting";
    near.observe(box);
  }
});
