// Scaled dot-product attention of three tokens, one step at a time.
figures.add("attention_steps", (box) => {
  const {make, number} = figures;
  const words = ["the", "cat", "sleeps"];
  const given = {
    q: {role: "query", rows: [[1, 0], [0, 2], [1, 1]]},
    k: {role: "key", rows: [[1, 1], [0, 2], [2, 0]]},
    v: {role: "value", rows: [[1, 0], [0, 1], [1, 1]]},
  };
  const width = 2;
  const steps = [
    "scores q · k",
    "divided by √d",
    "masked",
    "softmax: weights",
    "weights times values",
  ];
  let step = 0;

  box.append(make("h4", {}, "Attention, step by step"));
  const inputs = box.appendChild(make("div", {class: "figure-row"}));
  for (const [name, {role, rows}] of Object.entries(given)) {
    const table = figures.table(name);
    rows.forEach((row, t) => {
      const line = table.appendChild(make("tr"));
      line.append(make("th", {scope: "row"}, words[t]));
      row.forEach((value, i) => {
        const cell = make("input", {
          type: "number",
          step: 0.5,
          value,
          "aria-label": `${name} of ${words[t]}, feature ${i + 1}`,
          style: `background:var(--d-${role})`,
        });
        cell.addEventListener("input", () => {
          // While it is empty or half written, the last number stays.
          if (!Number.isFinite(cell.valueAsNumber)) return;
          row[i] = cell.valueAsNumber;
          show();
        });
        line.append(make("td", {}, cell));
      });
    });
    inputs.append(table);
  }

  const controls = box.appendChild(make("div", {class: "figure-controls"}));
  const back = figures.button(controls, "Back", () => go(-1));
  const next = figures.button(controls, "Next step", () => go(1));
  const query = figures.choice(
    controls,
    "query",
    Object.fromEntries(words.map((word, t) => [t, word])),
    1,
    () => show(),
  );
  const causal = figures.check(controls, "causal", false, () => show());
  const tables = box.appendChild(make("div", {class: "figure-row"}));
  const status = figures.status(box);

  function go(by) {
    step = Math.min(Math.max(step + by, 0), steps.length - 1);
    show();
  }

  function compute() {
    const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
    const {q, k, v} = given;
    const scores = q.rows.map((a) => k.rows.map((b) => dot(a, b)));
    const scaled = scores.map((row) => row.map((s) => s / Math.sqrt(width)));
    const masked = scaled.map((row, t) =>
      row.map((s, j) => (causal.checked && j > t ? -Infinity : s)),
    );
    const weights = masked.map(figures.softmax);
    const outputs = weights.map((row) =>
      v.rows[0].map((_, i) => dot(row, v.rows.map((value) => value[i]))),
    );
    return {scores, scaled, masked, weights, outputs};
  }

  function table(title, rows, heads, shaded) {
    const result = figures.table(title);
    result.append(
      make(
        "tr",
        {},
        make("td"),
        ...heads.map((head) => make("th", {scope: "col"}, head)),
      ),
    );
    rows.forEach((row, t) => {
      const line = make("tr", {}, make("th", {scope: "row"}, words[t]));
      if (t === Number(query.value)) line.className = "now";
      for (const value of row) {
        if (value === -Infinity) {
          line.append(make("td", {class: "masked"}, "−∞"));
        } else if (shaded) {
          line.append(figures.shaded("td", value, number(value)));
        } else {
          line.append(make("td", {}, number(value)));
        }
      }
      result.append(line);
    });
    return result;
  }

  function sentence(values) {
    const t = Number(query.value);
    const word = words[t];
    const {q, k, v} = given;
    const pair = (a, b) =>
      a.map((x, i) => `${number(x, 1)} · ${number(b[i], 1)}`).join(" + ");
    if (step === 0) {
      return `The score of “${word}” with “${words[0]}” is ` +
        `${pair(q.rows[t], k.rows[0])} = ${number(values.scores[t][0])}.`;
    }
    if (step === 1) {
      return `Divided by √${width}, so that wide heads have no larger scores: ` +
        `${number(values.scores[t][0])} / ${number(Math.sqrt(width))} = ` +
        `${number(values.scaled[t][0])}.`;
    }
    if (step === 2) {
      if (!causal.checked) return "Nothing is masked: “causal” is off.";
      const hidden = words.slice(t + 1).map((w) => `“${w}”`).join(" and ");
      return hidden
        ? `“${word}” may not see ${hidden}: the score becomes −∞.`
        : `“${word}” is the last token and sees all of them.`;
    }
    if (step === 3) {
      const row = values.weights[t].map((w) => number(w)).join(" + ");
      return `The weights of “${word}” sum to 1: ${row}.`;
    }
    const parts = values.weights[t]
      .map((w, s) => `${number(w)} · ${number(v.rows[s][0], 1)}`)
      .join(" + ");
    return `The first feature of the output of “${word}” is ${parts} = ` +
      `${number(values.outputs[t][0])}.`;
  }

  function show() {
    const values = compute();
    const features = ["1", "2"];
    const all = [
      table("1. scores q · k", values.scores, words),
      table("2. divided by √d", values.scaled, words),
      table("3. masked", values.masked, words),
      table("4. weights", values.weights, words, true),
      table("5. outputs", values.outputs, features),
    ];
    tables.replaceChildren(...all.slice(0, step + 1));
    back.disabled = step === 0;
    next.disabled = step === steps.length - 1;
    status.textContent =
      `Step ${step + 1} of ${steps.length}, ${steps[step]}. ${sentence(values)}`;
  }

  show();
  return () => ({
    step,
    causal: causal.checked,
    query: given.q.rows,
    key: given.k.rows,
    value: given.v.rows,
    ...compute(),
  });
});
