// Which keys each query sees, for rules that the reader combines.
figures.add("mask_builder", (box) => {
  const {make, shape} = figures;
  box.append(make("h4", {}, "Build a mask"));
  const controls = box.appendChild(make("div", {class: "figure-controls"}));
  const lengths = {min: 1, max: 12};
  const queries = figures.slider(
    controls, "queries T", {...lengths, value: 8}, () => show(),
  );
  const keys = figures.slider(
    controls, "keys S", {...lengths, value: 8}, () => show(),
  );
  const causal = figures.check(controls, "causal", true, () => show());
  const window_ = figures.slider(
    controls,
    "window",
    {min: 1, max: 13, value: 13, format: (n) => (n > 12 ? "off" : n)},
    () => show(),
  );
  const padding = figures.slider(
    controls,
    "padding tokens at the end",
    {min: 0, max: 11, value: 0},
    () => show(),
  );
  const cut = figures.slider(
    controls,
    "second sentence starts at",
    {min: 0, max: 11, value: 0, format: (n) => (n ? n : "off")},
    () => show(),
  );
  const picture = box.appendChild(make("div"));
  const status = figures.status(box);
  const code = box.appendChild(make("pre", {tabindex: 0}));

  function compute() {
    const [T, S] = [queries.valueAsNumber, keys.valueAsNumber];
    const real = (length) => Math.max(length - padding.valueAsNumber, 0);
    const size = window_.valueAsNumber > 12 ? null : window_.valueAsNumber;
    const segment = (i) => (cut.valueAsNumber && i >= cut.valueAsNumber ? 1 : 0);
    return Array.from({length: T}, (_, t) =>
      Array.from(
        {length: S},
        (_, s) =>
          t < real(T) &&
          s < real(S) &&
          (!causal.checked || s <= t) &&
          (size === null || Math.abs(t - s) < size) &&
          segment(t) === segment(s),
      ),
    );
  }

  function program() {
    const [T, S] = [queries.valueAsNumber, keys.valueAsNumber];
    const list = (length, value) =>
      `[[${Array.from({length}, (_, i) => value(i)).join(", ")}]]`;
    const position = (length) => (i) =>
      i < length - padding.valueAsNumber ? i : -1;
    const segment = (i) => (i >= cut.valueAsNumber ? 1 : 0);
    const names = [];
    if (causal.checked) names.push("causal=True");
    if (window_.valueAsNumber <= 12) names.push(`window=${window_.value}`);
    if (padding.valueAsNumber) {
      names.push(
        `query_positions=np.array(${list(T, position(T))})`,
        `key_positions=np.array(${list(S, position(S))})`,
        'padding="right"',
      );
    }
    if (cut.valueAsNumber) {
      names.push(
        `query_segment_ids=np.array(${list(T, segment)})`,
        `key_segment_ids=np.array(${list(S, segment)})`,
      );
    }
    const inside = names.map((name) => `    ${name},\n`).join("");
    const rules = names.length ? `\n${inside}` : "";
    return `see = keras_attn.ops.Visibility(${rules})\n` +
      `mask = see.to_mask(${T}, ${S})`;
  }

  function show() {
    const mask = compute();
    const [T, S] = [mask.length, mask[0].length];
    const cell = 28;
    const drawn = shape("svg", {
      class: "diagram",
      viewBox: `0 0 ${12 * cell + 60} ${T * cell + 40}`,
      role: "img",
    });
    const text = (x, y, words) =>
      shape("text", {x, y, "text-anchor": "middle", "font-size": 16}, words);
    drawn.append(text(50 + (S * cell) / 2, 14, "keys"));
    for (let s = 0; s < S; s++) {
      drawn.append(text(50 + (s + 0.5) * cell, 32, s));
    }
    mask.forEach((row, t) => {
      const y = 38 + t * cell;
      drawn.append(text(36, y + 19, t));
      row.forEach((sees, s) => {
        const x = 50 + s * cell;
        drawn.append(
          shape("rect", {
            class: sees ? "weight" : "masked",
            x,
            y,
            width: cell,
            height: cell,
          }),
        );
        if (!sees) {
          drawn.append(
            shape("path", {
              class: "masked-stroke",
              d: `M${x} ${y + cell}L${x + cell} ${y}`,
            }),
          );
        }
      });
    });
    drawn.append(
      shape(
        "text",
        {
          transform: `translate(14 ${38 + (T * cell) / 2}) rotate(-90)`,
          "text-anchor": "middle",
          "font-size": 16,
        },
        "queries",
      ),
    );
    const count = mask.flat().filter(Boolean).length;
    const blind = mask.filter((row) => !row.some(Boolean)).length;
    const none = blind
      ? ` ${blind} ${blind === 1 ? "query sees" : "queries see"} nothing: ` +
        "the output there is zero."
      : "";
    const words = `${count} of ${T * S} pairs of query and key are visible.${none}`;
    drawn.setAttribute("aria-label", `A mask of ${T} queries and ${S} keys. ${words}`);
    picture.replaceChildren(drawn);
    status.textContent = words;
    code.textContent = program();
  }

  show();
  return () => ({
    queries: queries.valueAsNumber,
    keys: keys.valueAsNumber,
    program: program(),
    mask: compute(),
  });
});
