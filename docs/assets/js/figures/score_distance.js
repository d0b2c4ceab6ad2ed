// How a score changes with the distance between query and key.
figures.add("score_distance", (box) => {
  const {make} = figures;
  box.append(make("h4", {}, "Scores by distance"));
  const controls = box.appendChild(make("div", {class: "figure-controls"}));
  const width = figures.slider(
    controls, "width of the head", {min: 2, max: 128, step: 2, value: 32}, () => show(),
  );
  const wave = figures.slider(
    controls,
    "longest wavelength",
    {min: 1, max: 5, step: 0.5, value: 4, format: (n) => figures.short(10 ** n)},
    () => show(),
  );
  const head = figures.slider(
    controls, "ALiBi: head", {min: 1, max: 8, value: 4}, () => show(),
  );
  const reach = figures.slider(
    controls,
    "largest distance",
    {min: 16, max: 256, step: 16, value: 64},
    () => show(),
  );
  const picture = box.appendChild(make("div"));
  const legend = box.appendChild(make("p"));
  const status = figures.status(box);

  function compute() {
    const D = width.valueAsNumber;
    const longest = 10 ** wave.valueAsNumber;
    const rates = Array.from({length: D / 2}, (_, i) => longest ** ((-2 * i) / D));
    const distance = Array.from({length: reach.valueAsNumber + 1}, (_, i) => i);
    // The product of two rows of the table.
    const sinusoidal = distance.map((d) =>
      rates.reduce((total, rate) => total + Math.cos(d * rate), 0),
    );
    return {
      width: D,
      longest,
      head: head.valueAsNumber,
      distance,
      sinusoidal,
      // Of a query and a key of ones, divided by the root of the width.
      rotary: sinusoidal.map((product) => (2 * product) / Math.sqrt(D)),
      alibi: distance.map((d) => -d * 2 ** -head.valueAsNumber),
    };
  }

  function show() {
    const values = compute();
    // Each line relative to its value at distance 0, so that they share an axis.
    const rotary = values.rotary.map((y) => y - values.rotary[0]);
    const alibi = values.alibi;
    const low = Math.min(...rotary, Math.max(Math.min(...alibi), -20));
    figures.chart(picture, {
      label: "Rotary scores fall and oscillate; ALiBi falls in a straight line.",
      across: "distance in tokens",
      up: "change of the score",
      x: values.distance,
      lines: {
        rotary: {y: rotary, role: "position"},
        alibi: {y: alibi.map((y) => Math.max(y, low)), role: "weight", dashed: true},
      },
      low,
      high: 0,
    });
    legend.textContent =
      "Solid: rotary, and sinusoids, whose products have the same shape. " +
      "Dashed: ALiBi, cut off at the lower edge.";
    const last = values.distance.length - 1;
    status.textContent =
      `From distance 0 to ${last}, the rotary score changes by ` +
      `${figures.number(rotary[last])} and ALiBi by ${figures.number(alibi[last])}. ` +
      `Wavelengths: from 6.3 to ` +
      `${figures.short(2 * Math.PI * values.longest ** (1 - 2 / values.width))} tokens.`;
  }

  show();
  return compute;
});
