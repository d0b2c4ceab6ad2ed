// The learning rate of the Transformer's schedule.
figures.add("warmup", (box) => {
  const {make} = figures;
  box.append(make("h4", {}, "Warmup"));
  const controls = box.appendChild(make("div", {class: "figure-controls"}));
  const width = figures.slider(
    controls, "width D", {min: 64, max: 2048, step: 64, value: 512}, () => show(),
  );
  const warmup = figures.slider(
    controls,
    "warmup steps",
    {min: 500, max: 16000, step: 500, value: 4000, format: (n) => n.toLocaleString("en")},
    () => show(),
  );
  const picture = box.appendChild(make("div"));
  const legend = box.appendChild(make("p", {}, "Dashed: the paper's base model, D = 512 and 4,000 steps."));
  const status = figures.status(box);
  const last = 40000;

  const rate = (step, D, steps) =>
    D ** -0.5 * Math.min(step ** -0.5, step * steps ** -1.5);

  function compute() {
    const [D, steps] = [width.valueAsNumber, warmup.valueAsNumber];
    const step = Array.from({length: 201}, (_, i) => Math.max((i * last) / 200, 1));
    return {
      width: D,
      warmup: steps,
      step,
      rate: step.map((s) => rate(s, D, steps)),
      peak: rate(steps, D, steps),
    };
  }

  function show() {
    const values = compute();
    const paper = values.step.map((s) => rate(s, 512, 4000));
    figures.chart(picture, {
      label: "The rate rises in a straight line, then falls.",
      across: "step",
      up: "learning rate",
      x: values.step,
      lines: {
        paper: {y: paper, role: "masked", dashed: true},
        chosen: {y: values.rate, role: "weight"},
      },
      low: 0,
      high: Math.max(values.peak, ...paper) * 1.05,
    });
    status.textContent =
      `The rate peaks at ${values.peak.toExponential(2).replace("-", "−")}, at step ` +
      `${values.warmup.toLocaleString("en")}: 1 / √(${values.width} · ${values.warmup}). ` +
      "Four times the width, or four times the warmup, halves the peak.";
  }

  show();
  return compute;
});
